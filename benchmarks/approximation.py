"""Task error against approximations of the upper layers: fewer rows, or only the leading directions of W.

    python benchmarks/approximation.py --data FOLDER --device cuda

FOLDER holds amazon-bow and fdu-mtl. Everything else is as in `family.py`: tf-idf of length 5, five layers at
noise 0.7 that count alike, centred domains, least squares, before and after self-training; differences
to all rows are paired. Only errors are measured here: the rows are sampled after all of them have passed.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from family import Variant, compare_variants, format_table, make_parser
from family_layers import Rows, Scatters, masking

from undrift._core.denoise import Layer
from undrift._core.scatter import scatter
from undrift._inputs.device import check_place
from undrift.bench.corpora import CorpusSpec, load_corpus
from undrift.corpora import Corpus
from undrift.representation.subsample import share_rows


def draw_rows(corpus: Corpus, n_sampled: int, seed: int) -> dict[str, np.ndarray]:
    """Draw row numbers of each domain, as many as `max_upper_rows` would draw."""
    n_rows = {name: len(domain) for name, domain in corpus.domains.items()}
    sizes = share_rows([*n_rows.values()], min(n_sampled, sum(n_rows.values())))
    rng = np.random.default_rng(seed)
    return {
        name: np.sort(rng.choice(n, size, replace=False))
        for (name, n), size in zip(n_rows.items(), sizes, strict=True)
    }


def solve_on_fewer_rows(
    depth: int, rows: Rows, stats: Scatters, sample: dict[str, np.ndarray]
) -> dict[str, Layer]:
    """Learn layers from the second on from the rows in `sample` only."""
    if depth:
        where = {name: torch.as_tensor(index, device=rows[name].device) for name, index in sample.items()}
        stats = {name: scatter(rows[name][index]) for name, index in where.items()}
    return masking(depth, rows, stats)


def solve_in_leading_directions(depth: int, rows: Rows, stats: Scatters, rank: int) -> dict[str, Layer]:
    """Reduce W of layers from the second on to its `rank` leading singular directions."""
    layers = masking(depth, rows, stats)
    layer = next(iter(layers.values()))
    if depth:
        U, s, V = torch.linalg.svd(layer.coef, full_matrices=False)
        layer = replace(layer, coef=U[:, :rank] * s[:rank] @ V[:rank])
    return dict.fromkeys(layers, layer)


def list_variants(corpus: Corpus, args: argparse.Namespace) -> list[Variant]:
    sampled = [
        Variant(f"{n} rows, seed {seed}", partial(solve_on_fewer_rows, sample=draw_rows(corpus, n, seed)))
        for n in args.upper_rows
        for seed in range(args.seeds)
    ]
    cut = [
        Variant(f"{rank} directions", partial(solve_in_leading_directions, rank=rank))
        for rank in args.low_rank
    ]
    return [Variant("all rows", masking), *sampled, *cut]


def parse_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--upper-rows", type=int, nargs="*", default=[20000, 12000, 8000, 5000, 3000])
    parser.add_argument("--low-rank", type=int, nargs="*", default=[1000, 500])
    parser.add_argument("--seeds", type=int, default=2, help="samples of each size")
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    place = check_place(args.device, args.precision)
    results: dict[str, list[dict]] = {}
    for name in args.corpora.split(","):
        corpus = load_corpus(CorpusSpec(name, max_rows=args.rows), args.data, args.terms)
        results[name] = compare_variants(corpus, place, list_variants(corpus, args))
        print(f"\n{format_table(name, results[name])}\n", flush=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
