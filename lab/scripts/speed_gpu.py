"""Five layers on one GPU: times, shares of the measured matrix-multiply rate, and errors.

    python lab/scripts/speed_gpu.py [--data FOLDER] [--out FILE]

FOLDER holds amazon-bow's svmlight files; without it the rows are synthetic, of the same sparsity. Times
are medians, by device events after a warm-up. A section that fails says so, and the next one runs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
import traceback
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from harness import check_device

from undrift.core.blocks import StoredBlocks
from undrift.core.denoise import denoise
from undrift.core.scatter import scatter
from undrift.core.stack import fit_layers
from undrift.core.torch import ops
from undrift.core.torch.blocks import DeviceShelf, split_for_device, to_host
from undrift.core.torch.ops import precision

N_LAYERS, NOISE, D = 5, 0.5, 5000
SMALL, LARGE = 27_677, 340_000
solve = partial(denoise, noise=NOISE)
OPTIONS = {"noise": NOISE, "ridge": 1e-5, "activation": "tanh"}


def event(device):
    if device.type != "cuda":
        return time.perf_counter()
    mark = torch.cuda.Event(enable_timing=True)
    mark.record()
    return mark


def between(start, stop):
    """Milliseconds between two events, once the device has finished."""
    return 1e3 * (stop - start) if isinstance(start, float) else start.elapsed_time(stop)


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def milliseconds(fn, device, repeats=7, warm_up=2):
    """Return the median time of `fn`."""
    times = []
    for i in range(warm_up + repeats):
        synchronize(device)
        start = event(device)
        fn()
        stop = event(device)
        synchronize(device)
        if i >= warm_up:
            times.append(between(start, stop))
    return statistics.median(times)


def flops(n, d, n_layers=N_LAYERS):
    """Count the work that cannot be avoided: symmetric scatters, inverses, forward passes."""
    return n_layers * (n * d**2 + d**3 + 2 * n * d**2)


# -- rows --------------------------------------------------------------------------------------------


def synthetic(n, d, device, seed=0, n_topics=50):
    """Binary rows on the device: Zipf column frequencies, 77 terms a row, topics that correlate them."""
    generator = torch.Generator(device).manual_seed(seed)
    frequency = 1 / (torch.arange(d, device=device) + 20.0)
    topics = torch.exp(torch.randn(n_topics, d, generator=generator, device=device))
    topics *= frequency / topics.mean(dim=0)
    chance = (topics * (77 / frequency.sum())).clamp_(max=0.95)
    X = torch.empty((n, d), device=device)
    for start in range(0, n, 20_000):
        rows = X[start : start + 20_000]
        which = torch.randint(n_topics, (len(rows),), generator=generator, device=device)
        rows.copy_(torch.rand(rows.shape, generator=generator, device=device) < chance[which])
    return X


def amazon_bow(folder):
    """Presence of the terms in all reviews of the four domains, as float32 CSR."""
    indices, indptr = [], [0]
    for path in sorted(Path(folder).glob("*.svmlight.gz")):
        with gzip.open(path, "rt") as file:
            for line in file:
                indices.extend(int(pair.partition(":")[0]) for pair in line.split()[1:])
                indptr.append(len(indices))
    values = np.ones(len(indices), dtype=np.float32)
    X = sp.csr_matrix((values, np.array(indices, np.int32), np.array(indptr, np.int32)), (len(indptr) - 1, D))
    X.sort_indices()
    return X


def to_csr(X):
    """Bring binary rows to the host as float32 CSR."""
    rows, columns = (part.cpu().numpy() for part in X.nonzero(as_tuple=True))
    indptr = np.concatenate([[0], np.bincount(rows, minlength=len(X)).cumsum()]).astype(np.int32)
    return sp.csr_matrix(
        (np.ones(len(columns), np.float32), columns.astype(np.int32), indptr), tuple(X.shape)
    )


# -- sections ----------------------------------------------------------------------------------------


def rates(device, size):
    """Measure the ceilings: matrix products of float32 rows, and a copy."""
    results = {}
    for name, dtype, how in [
        ("tf32", torch.float32, "high"),
        ("fp32", torch.float32, "highest"),
        ("fp64", torch.float64, "highest"),
    ]:
        A, B = (torch.randn(size, size, dtype=dtype, device=device) for _ in range(2))
        with precision(how):
            best = min(milliseconds(partial(torch.mm, A, M), device, repeats=5) for M in (B, B.T))
        results[f"{name}_tflops"] = 2 * size**3 / best / 1e9
    A = torch.randn(size, 4 * size, device=device)
    B = torch.empty_like(A)
    results["copy_tb_s"] = 2 * A.nbytes / milliseconds(lambda: B.copy_(A), device) / 1e9
    return results


def store(X, device, memory_budget=None):
    return StoredBlocks(split_for_device(X), DeviceShelf(device, memory_budget))


def five_layers(X, device, memory_budget=None):
    """Fit, and pass all rows through the last layer."""
    *_, last = fit_layers([store(X, device, memory_budget)], N_LAYERS, OPTIONS)
    for _ in last.domains[0]:
        pass


def by_stage(X, device):
    """Return the milliseconds of scatter, solve and forward, each summed over the layers."""
    rows, marks = store(X, device), [event(device)]
    for _ in range(N_LAYERS):
        stats = rows.total(scatter)
        marks.append(event(device))
        layer = solve(stats)
        marks.append(event(device))
        del stats
        rows = rows.map(layer)
        for _ in rows:
            pass
        marks.append(event(device))
    synchronize(device)
    steps = [between(a, b) for a, b in pairwise(marks)]
    return {"scatter": sum(steps[::3]), "solve": sum(steps[1::3]), "forward": sum(steps[2::3])}


def resident(X, device, how, rate, repeats=5):
    """Time five layers of rows that are on the device."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    with precision(how):
        total = milliseconds(lambda: five_layers(X, device), device, repeats=repeats)
        stages = [by_stage(X, device) for _ in range(3)]
    results = {"n": len(X), "d": X.shape[1], "precision": how, "dtype": str(X.dtype), "total_ms": total}
    results |= {f"{name}_ms": statistics.median(run[name] for run in stages) for name in stages[0]}
    results["tflops"] = flops(*X.shape) / total / 1e9
    results["share_of_rate"] = results["tflops"] / rate if rate else None
    if device.type == "cuda":
        results["peak_gb"] = torch.cuda.max_memory_allocated(device) / 1e9
    return results


def parts(X, device):
    """Time each part of one layer on rows like those of a hidden layer, in milliseconds."""
    H = torch.tanh(torch.randn(*X.shape, device=device))
    with precision("high"):
        stats = scatter(H)
        sums = stats.moments
        system = ops.denoising_system(stats.gram, sums.n, sums.centre, 0.5, 0.5 * sums.energy, torch.float32)
        layer = solve(stats)
        steps = {
            "gram": lambda: ops.gram(H),
            "column_sums": lambda: ops.column_sums(H),
            "system": lambda: ops.denoising_system(
                stats.gram, sums.n, sums.centre, 0.5, sums.energy, torch.float32
            ),
            "inverse": lambda: ops.spd_inverse(system),
            "solve": lambda: solve(stats),
            "affine": lambda: ops.affine(H, layer.coef, layer.intercept),
            "layer": lambda: layer(H),
        }
        return {name: milliseconds(step, device) for name, step in steps.items()}


def from_host(X, device, repeats=5):
    """Time a host CSR matrix to fitted layers on the host; `first_ms` is without a warm-up."""
    runs = []
    for _ in range(repeats + 2):
        synchronize(device)
        start = time.perf_counter()
        rows = store(X, device)
        synchronize(device)
        moved = time.perf_counter()
        with precision("high"):
            layers = [to_host(grown.layer) for grown in fit_layers([rows], N_LAYERS, OPTIONS)]
        stop = time.perf_counter()
        assert all(isinstance(layer.coef, np.ndarray) for layer in layers)
        runs.append([stop - start, moved - start, stop - moved])
    names = ("total_ms", "move_ms", "fit_ms")
    medians = (1e3 * statistics.median(column) for column in zip(*runs[2:], strict=True))
    results = {"n": X.shape[0], "nnz": X.nnz, "first_ms": 1e3 * runs[0][0]}
    return results | dict(zip(names, medians, strict=True))


def beyond_memory(X, device, repeats=2):
    """Time five layers of host rows none of which may stay on the device, as if it were full.

    Rows in CSR, dense rows in ordinary memory, and dense ones in page-locked memory; hidden rows wait in
    page-locked memory in any case.
    """
    dense = X.cpu()
    forms = {"csr": to_csr(X), "dense": dense, "locked": dense.pin_memory() if X.is_cuda else dense}
    results = {"n": len(X), "gigabytes": dense.nbytes / 1e9}
    with precision("high"):
        for name, rows in forms.items():
            fit = partial(five_layers, rows, device, memory_budget=0)
            results[f"{name}_ms"] = milliseconds(fit, device, repeats, warm_up=1)
    return results


def errors(X, device):
    """Compare weights and hidden rows with those of float64, layer by layer, as relative norms."""

    def stack(X, how):
        with precision(how):
            for grown in fit_layers([store(X, device)], N_LAYERS, OPTIONS):
                yield grown.layer.coef, torch.cat(list(grown.domains[0]))

    def relative(ours, exact):
        return (torch.linalg.norm(ours.double() - exact) / torch.linalg.norm(exact)).item()

    results, exact = {}, list(stack(X.double(), "highest"))  # one stack at a time: precision is global
    for how in ("high", "highest"):
        pairs = zip(stack(X, how), exact, strict=True)
        steps = [(relative(w, w64), relative(h, h64)) for (w, h), (w64, h64) in pairs]
        results[how] = {"weights": [w for w, _ in steps], "hidden": [h for _, h in steps]}
    return results


def small_problem(device):
    """Time one layer of 500 x 200, which should be instant."""
    X = torch.rand(500, 200, device=device)
    rows = store(X, device)
    return {"total_ms": milliseconds(lambda: solve(rows.total(scatter)), device, repeats=20)}


# -- the run -----------------------------------------------------------------------------------------


class Report:
    """Sections by name, printed as they finish and written as JSON."""

    def __init__(self, path):
        self.path, self.sections = path, {}

    def section(self, name, fn, *args, **options):
        try:
            self.sections[name] = fn(*args, **options)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            message = str(error).splitlines()[0][:200] if str(error) else ""
            self.sections[name] = {
                "failed": f"{type(error).__name__}: {message} ({where.name}, line {where.lineno})"
            }
        print(f"{name:28s}", short(self.sections[name]), flush=True)
        if self.path:
            Path(self.path).write_text(json.dumps(self.sections, indent=1))
        return self.sections[name]


def short(value):
    """Format numbers with four digits."""
    if isinstance(value, dict):
        return "  ".join(f"{key} {short(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "[" + " ".join(short(item) for item in value) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def about(device):
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    return {"device": name, "torch": torch.__version__, "cuda": str(torch.version.cuda)}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with amazon-bow's svmlight files")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, ...; cpu to try the script out")
    parser.add_argument("--out", help="JSON file for the results")
    parser.add_argument("--shrink", type=int, default=1, help="divide all sizes, to try the script out")
    return parser.parse_args()


def main():
    args = parse_arguments()
    device, report, shrink = torch.device(check_device(args.device)), Report(args.out), args.shrink
    torch.manual_seed(0)
    report.section("about", about, device)
    ceilings = report.section("rates", rates, device, 8192 // shrink)
    n, d = SMALL // shrink, D // shrink
    if args.data:
        rows = amazon_bow(args.data)[:n, :d]
        X = torch.tensor(rows.toarray(), device=device)
    else:
        X = synthetic(n, d, device)
        rows = to_csr(X)
    measure(report, X, rows, device, ceilings, LARGE // shrink)
    if not args.out:
        print(json.dumps(report.sections))


def measure(report, X, rows, device, ceilings, n_large):
    tf32, fp32, fp64 = (ceilings.get(f"{name}_tflops", 0) for name in ("tf32", "fp32", "fp64"))
    report.section("small, parts of a layer", parts, X, device)
    report.section("small, high", resident, X, device, "high", tf32)
    report.section("small, host to host", from_host, rows, device)
    report.section("small, full float32", resident, X, device, "highest", fp32, repeats=3)
    report.section("500 x 200, one layer", small_problem, device)
    report.section("errors against float64", errors, X, device)
    report.section("small, float64", lambda: resident(X.double(), device, "highest", fp64, repeats=2))
    large = synthetic(n_large, X.shape[1], device, seed=1)
    report.section("large, high", resident, large, device, "high", tf32, repeats=4)
    report.section("large, full float32", resident, large, device, "highest", fp32, repeats=1)
    report.section("large, none of it kept on the device", beyond_memory, large, device)


if __name__ == "__main__":
    main()
