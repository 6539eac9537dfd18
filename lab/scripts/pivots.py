"""Section 4 at size: 30,000 terms of processed_acl, 5,000 pivots. Time, memory, and new rows."""

from __future__ import annotations

import argparse
import sys

import numpy as np
from harness import acl_presence, peak_gigabytes, print_record, report, run_contender, time_call


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="reviews to take; all 8,000 by default")
    parser.add_argument("--terms", type=int, default=30000)
    parser.add_argument("--pivots", type=int, default=5000)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--noise", type=float, default=0.7)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("--contender", choices=["undrift"], help=argparse.SUPPRESS)
    return parser.parse_args()


def run_undrift(args: argparse.Namespace) -> None:
    """Fit on nine rows of ten, transform the others."""
    from undrift import MSDA

    X = acl_presence(args.rows, args.terms, args.dtype)
    new = np.arange(X.shape[0]) % 10 == 9
    before = peak_gigabytes()
    model = MSDA(args.layers, args.noise, n_pivots=args.pivots, random_state=0)
    model, fit_seconds = time_call(lambda: model.fit(X[~new]))
    hidden, transform_seconds = time_call(lambda: list(model.hidden(X[new])))
    if not all(np.isfinite(h).all() for h in hidden):
        raise SystemExit("hidden rows are not finite")
    print_record(
        {
            "seconds": fit_seconds,
            "transform_seconds": transform_seconds,
            "n_fitted": int((~new).sum()),
            "n_new": int(new.sum()),
            "n_terms": X.shape[1],
            "n_parts": len(model.parts_),
            "shapes": str([layer.coef.shape for layer in model.layers_]),
            "gigabytes_before_fit": before,
        }
    )


def main() -> None:
    args = parse_arguments()
    if args.contender:
        return run_undrift(args)
    record = run_contender("undrift", sys.argv[1:], args.repeats)
    return report(f"section 4: {args.terms} terms, {args.pivots} pivots", {"undrift": record})


if __name__ == "__main__":
    main()
