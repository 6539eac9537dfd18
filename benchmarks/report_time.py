"""What a report costs beyond the fit: seconds of the clock and of the processor, as a line of JSON.

    python benchmarks/report_time.py [--rows 27677] [--terms 5000] [--layers 5] [--repeats 5] [--labels]

Reviews of fdu-mtl: half of the rows are a source, of which 2,000 have labels, and half are a target; with
--labels the target's are scored. The report is made and written `repeats` times from one fit; the least of
each time is given: other programs on the machine can only add to it. The bar is 20 s.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from harness import data_folder

from undrift import TermVectorizer, TextAdapter, text_classifier
from undrift.datasets import load_fdu_mtl
from undrift.jobs import AdaptJob, run_adapt
from undrift.report import job_report
from undrift.tables import Rows, write_table


def write_reviews(path: Path, rows: list[tuple[str, str]]) -> None:
    """Write texts and labels as CSV."""
    with write_table(path, ("text", "label")) as out:
        out.write(Rows(("text", "label"), tuple(map(list, zip(*rows, strict=True)))))


def read_reviews() -> list[list[tuple[str, str]]]:
    """Return the texts and labels of the two halves of the domains, labelled rows first."""
    names = {0.0: "negative", 1.0: "positive"}
    domains = list(load_fdu_mtl(data_folder() / "fdu-mtl").domains.values())
    halves = []
    for part in (domains[::2], domains[1::2]):
        rows = [
            (text, names.get(float(y), ""))
            for domain in part
            for text, y in zip(domain.texts, domain.y, strict=True)
        ]
        halves.append(sorted(rows, key=lambda row: not row[1]))
    return halves


def main() -> None:
    """Fit once, report several times, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("rows", 27_677), ("terms", 5_000), ("layers", 5), ("repeats", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--labels", action="store_true")
    options = parser.parse_args()
    n_each = -(-options.rows // 2)
    source, target = (
        rows[-n_each:] if is_target else rows[:n_each] for is_target, rows in enumerate(read_reviews())
    )
    source = [(text, label if i < 2_000 else "") for i, (text, label) in enumerate(source)]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{name}.csv" for name in ("source", "target")]
        for path, rows in zip(paths, (source, target[: options.rows - n_each]), strict=True):
            write_reviews(path, rows)
        job = AdaptJob(
            paths[:1], paths[1:], "text", "label", Path(folder) / "out.csv",
            target_label="label" if options.labels else None, report=Path(folder) / "report.html",
        )  # fmt: skip
        adapter = TextAdapter(
            TermVectorizer(options.terms), text_classifier(n_layers=options.layers, random_state=0)
        )
        result = run_adapt(job, adapter)
        times = []
        for _ in range(options.repeats):
            began = time.perf_counter(), time.process_time()
            job_report(job, result).save(job.report)
            times.append((time.perf_counter() - began[0], time.process_time() - began[1]))
        clock, processor = (min(column) for column in zip(*times, strict=True))
        record = {
            "rows": sum(entry["rows"] for entry in result.summary["sources"] + result.summary["targets"]),
            "terms": result.summary["vocabulary"], "layers": options.layers, "labels": options.labels,
            "fit_seconds": result.summary["seconds"], "clock_seconds": round(clock, 2),
            "processor_seconds": round(processor, 2), "page_bytes": job.report.stat().st_size,
        }  # fmt: skip
    print(json.dumps(record))


if __name__ == "__main__":
    main()
