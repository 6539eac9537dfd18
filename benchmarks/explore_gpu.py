"""Alternatives for each part of a layer, timed side by side; called by ``speed_gpu.py --explore``."""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager

import torch
from speed_gpu import milliseconds, solve, synchronize

from undrift._core.scatter import scatter
from undrift._core.stack import fit_layers
from undrift._core.torch import inverse, ops
from undrift._core.torch.rows import DeviceBlocks, TensorBlock, split_for_device


def explore(report, X, rows, device):
    """Time everything on rows like those of a hidden layer."""
    n, d = X.shape
    H = torch.tanh(torch.randn(n, d, device=device))
    parts = {
        "gram": lambda: grams(H, device),
        "gram, stripes x streams": lambda: stripes(H, device),
        "gram, 16 bits": lambda: half_grams(H, device),
        "forward": lambda: forwards(H, device),
        "sums and systems": lambda: small_parts(H, device),
        "factor by size": lambda: factors(H, device),
        "inverse, parts": lambda: inverse_parts(H, device),
        "inverse, variants": lambda: inverses(H, device),
        "inverse, others": lambda: other_inverses(H, device),
        "inverse, errors": lambda: inverse_errors(H),
        "moves": lambda: moves(rows, d, device),
        "rows beyond the device": lambda: time_rows_beyond_the_device(H, device),
    }
    with ops.precision("high"):
        for name, part in parts.items():
            report.section(f"explore {name}", part)


def time_variants(variants, device):
    """Time each variant; one that fails says why."""
    times = {}
    for name, fn in variants.items():
        try:
            times[name] = milliseconds(fn, device, repeats=5)
        except Exception as error:
            times[name] = f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"
    return times


@contextmanager
def settings(**values):
    """Change constants of the inverse temporarily."""
    before = {name: getattr(inverse, name) for name in values}
    for name, value in values.items():
        setattr(inverse, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(inverse, name, value)


def with_settings(fn, **values):
    def run():
        with settings(**values):
            return fn()

    return run


def grams(H, device):
    """Compare Gram products, with and without a transposed copy first."""
    Ht = H.T.contiguous()
    return time_variants(
        {
            "full": lambda: H.T @ H,
            "full, transposed rows": lambda: Ht @ Ht.T,
            "the copy": lambda: H.T.contiguous(),
            "lower": lambda: inverse.lower_product(H),
            "lower, transposed rows": lambda: inverse.lower_product(Ht.T),
            "copy + lower": lambda: inverse.lower_product(H.T.contiguous().T),
        },
        device,
    )


def stripes(H, device):
    Ht = H.T.contiguous().T
    sizes = [H.shape[1] * size // 5000 // 8 * 8 for size in (512, 640, 1024, 1280, 1672, 2504)]
    return time_variants(
        {
            f"{size}/{n_streams}{name}": with_settings(
                lambda rows=rows: inverse.lower_product(rows), STRIPE=size, N_STREAMS=n_streams
            )
            for (name, rows), size, n_streams in itertools.product([("", H), ("t", Ht)], sizes, (1, 2, 3, 4))
        },
        device,
    )


def half_grams(H, device):
    """Time 16-bit products: FP16 has TF32's 11 bits at twice its rate, for rows within [-1, 1]."""
    times, d = {}, H.shape[1]
    exact = H.double().T @ H.double()
    for name, dtype in {"fp16": torch.float16}.items():
        K = H.to(dtype)
        times |= time_variants(
            {
                f"{name} cast": lambda dtype=dtype: H.to(dtype),
                f"{name} full": lambda K=K: torch.mm(K.T, K, out_dtype=torch.float32),
                f"{name} lower": lambda K=K: half_lower(K, d),
                **{
                    f"{name} lower {size}/{n}": with_settings(
                        lambda K=K: half_lower(K, d), STRIPE=size, N_STREAMS=n
                    )
                    for size in (1024, 1280, 1672, 2504)
                    for n in (1, 2, 3)
                },
            },
            device,
        )
        product = half_lower(K, d).tril().double()
        times[f"{name} error"] = (torch.linalg.norm(product - exact.tril()) / torch.linalg.norm(exact)).item()
    product = (H.T @ H).double()
    times["tf32 error"] = (torch.linalg.norm(product - exact) / torch.linalg.norm(exact)).item()
    return times


def half_lower(K, d):
    G = torch.empty((d, d), device=K.device)

    def fill(stripe):
        G[stripe, : stripe.stop] = torch.mm(K[:, stripe].T, K[:, : stripe.stop], out_dtype=torch.float32)

    inverse.side_by_side(fill, reversed(inverse.stripes(d)), K.device)
    return G


def forwards(H, device):
    d = H.shape[1]
    W, b = torch.randn(d, d, device=device) / d**0.5, torch.randn(d, device=device)
    Wt = W.T.contiguous().T
    out = torch.empty_like(H)
    W16, H16 = Wt.half(), H.half()
    return time_variants(
        {
            "mm, rows of W inside": lambda: torch.mm(H, Wt, out=out),
            "mm, columns of W inside": lambda: torch.mm(H, W, out=out),
            "affine, rows inside": lambda: ops.affine(H, Wt, b),
            "affine, columns inside": lambda: ops.affine(H, W, b),
            "tanh in place": lambda: out.tanh_(),
            "fp16": lambda: torch.mm(H16, W16, out_dtype=torch.float32),
            "transposed output": lambda: torch.mm(Wt.T, H.T),
        },
        device,
    )


def small_parts(H, device):
    n, d = H.shape
    G, mean, damping = ops.gram(H), ops.column_sums(H) / n, torch.rand(d, device=device).double()
    ones = torch.ones(1, n, device=device)
    return time_variants(
        {
            "column sums": lambda: ops.column_sums(H),
            "column sums, float32": lambda: H.sum(dim=0),
            "column sums, product": lambda: ones @ H,
            "system, by float64 steps": lambda: (0.5 * (G - n * torch.outer(mean, mean))).float(),
            "system": lambda: ops.denoising_system(G, n, mean, 0.5, damping, torch.float32),
            "coef": lambda: ops.denoising_coef(G, 0.5, damping * 0),
            "mirror": lambda: inverse.mirror(G),
        },
        device,
    )


def system(H, d=0):
    """Lower triangle of the system of hidden rows, as the second layer has it."""
    stats = scatter(H[:, : d or H.shape[1]])
    damping = 0.5 * stats.energy
    return ops.denoising_system(stats.gram, stats.n, stats.mean, 0.5, damping, stats.gram.dtype)


def factors(H, device):
    """Time the library's factorisation and substitution at growing sizes."""
    variants = {}
    for d in (64, 128, 256, 512, 640, 1250, 2500, 5000):
        if d <= H.shape[1]:
            A = system(H, d)
            L = torch.linalg.cholesky_ex(A)[0]
            eye = torch.eye(d, device=device)
            variants[f"factor {d}"] = lambda A=A: torch.linalg.cholesky_ex(A)
            variants[f"substitute {d}"] = lambda L=L, eye=eye: torch.linalg.solve_triangular(
                L, eye, upper=False
            )
            variants[f"inverse {d}"] = lambda L=L: inverse.lower_inverse(L)
    return time_variants(variants, device)


def inverse_parts(H, device):
    A = system(H)
    L = torch.linalg.cholesky_ex(A)[0]
    root = inverse.lower_inverse(L)
    times = time_variants(
        {
            "factor": lambda: torch.linalg.cholesky_ex(A),
            "inverse of the factor": lambda: inverse.lower_inverse(L),
            "product": lambda: inverse.lower_product(root, triangular=True),
            "mirror": lambda: inverse.mirror(A.clone()),
            "clone": lambda: A.clone(),
            "all": lambda: ops.spd_inverse(A),
            "solve": lambda: solve(scatter_of(H)),
        },
        device,
    )
    for library in ("cusolver", "magma"):
        try:
            torch.backends.cuda.preferred_linalg_library(library)
            times |= time_variants({f"factor, {library}": lambda: torch.linalg.cholesky_ex(A)}, device)
        except Exception as error:
            times[f"factor, {library}"] = repr(error)[:80]
    torch.backends.cuda.preferred_linalg_library("default")
    return times


_STATS = {}


def scatter_of(H):
    """Scatter of `H`, once."""
    if id(H) not in _STATS:
        _STATS[id(H)] = scatter(H)
    return _STATS[id(H)]


def inverses(H, device):
    A, d = system(H), H.shape[1]
    widths = [d * width // 5000 + 8 for width in (256, 512, 640, 1250, 2500, 5000)]
    variants = {
        f"factor {width}, block {block}": with_settings(lambda: ops.spd_inverse(A), FACTOR=width, BLOCK=block)
        for width, block in itertools.product(widths, (32, 64, 128))
    }
    for size, n_streams in itertools.product((640, 1024, 1672, 2504), (1, 2, 3)):
        variants[f"stripe {size}/{n_streams}"] = with_settings(
            lambda: ops.spd_inverse(A), STRIPE=size, N_STREAMS=n_streams
        )
    return time_variants(variants, device)


def full(A):
    return A.tril() + A.tril(-1).T


def schur_inverse(A, least):
    """Invert a full symmetric matrix by Schur complements, recursively: 4/3 d^3 flops, all in products."""
    n = len(A)
    if n <= least:
        L = torch.linalg.cholesky_ex(A)[0]
        root = inverse.lower_inverse(L)
        return root.T @ root
    h = min(n - 1, -(-n // 16) * 8)
    B11 = schur_inverse(A[:h, :h], least)
    T = A[h:, :h] @ B11
    B = torch.empty_like(A)
    B[h:, h:] = schur_inverse(torch.addmm(A[h:, h:], T, A[:h, h:], alpha=-1), least)
    B[h:, :h] = -(B[h:, h:] @ T)
    B[:h, h:] = B[h:, :h].T
    B[:h, :h] = torch.addmm(B11, T.T, B[h:, :h], alpha=-1)
    return B


def other_inverses(H, device):
    A = full(system(H))
    d = len(A)
    variants = {
        f"schur {least}": (lambda least=least: schur_inverse(A, least))
        for least in (d * width // 5000 + 8 for width in (128, 256, 512, 1250, 2500))
    }
    variants["library's potri"] = lambda: torch.cholesky_inverse(torch.linalg.cholesky_ex(A)[0])
    variants["library's solve"] = lambda: torch.cholesky_solve(
        torch.eye(d, device=device), torch.linalg.cholesky_ex(A)[0]
    )
    variants["library's inv"] = lambda: torch.linalg.inv_ex(A)
    return time_variants(variants, device)


def inverse_errors(H):
    A = full(system(H))
    exact = torch.linalg.inv(A.double())
    times = {}
    for name, how in itertools.product(("ours", "schur", "library"), ("high", "highest")):
        invert = {
            "ours": lambda: ops.spd_inverse(A),
            "schur": lambda: schur_inverse(A, 512),
            "library": lambda: torch.cholesky_inverse(torch.linalg.cholesky_ex(A)[0]),
        }[name]
        with ops.precision(how):
            error = torch.linalg.norm(invert().double() - exact) / torch.linalg.norm(exact)
        times[f"{name}, {how}"] = error.item()
    return times


def moves(rows, d, device):
    """Time copies to the device and back, by the wall clock where the host works too."""
    here = TensorBlock.of(rows).map_tensors(lambda part: part.to(device))
    coef = torch.randn(d, d, device=device)
    times = time_variants({"make dense": here.dense}, device)

    def wall(fn):
        times = []
        for _ in range(5):
            synchronize(device)
            start = time.perf_counter()
            kept = fn()
            synchronize(device)
            times.append(1e3 * (time.perf_counter() - start))
            del kept
        return {"first": times[0], "median": sorted(times)[2]}

    times["csr to device"] = wall(lambda: TensorBlock.of(rows).map_tensors(lambda part: part.to(device)))
    times["coef to host"] = wall(lambda: coef.cpu())
    times["coef to host, C order of a transposed"] = wall(lambda: ops.to_numpy(coef.T))
    if device.type == "cuda":
        times["coef to pinned"] = wall(lambda: torch.empty(coef.shape, pin_memory=True).copy_(coef))
        pinned = torch.empty(coef.shape, pin_memory=True)
        times["coef to pinned and on"] = wall(lambda: pinned.copy_(coef).clone())
    return times


def time_rows_beyond_the_device(H, device):
    """Time three layers with memory for a quarter of the hidden rows, against memory for all."""
    records = {}
    H_host = H.cpu()
    for name, budget in {"all fits": float("inf"), "a quarter fits": H.nbytes / 4, "none fits": 0}.items():
        times = []
        for _ in range(3):
            synchronize(device)
            start = time.perf_counter()
            blocks = [block for whole in split_for_device(H_host) for block in whole.split(len(H) // 8 + 1)]
            for grown in fit_layers([DeviceBlocks(blocks, device, memory_budget=budget)], 3, solve):
                coef = grown.layer.coef
            synchronize(device)
            times.append(1e3 * (time.perf_counter() - start))
        records[name] = {"first": times[0], "last": times[-1], "coef_norm": torch.linalg.norm(coef).item()}
    return records
