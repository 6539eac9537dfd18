"""The closed-form family: one function per kind of layer, from scatters of the domains to their layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
import torch

from undrift._core.array import Array
from undrift._core.denoise import Layer, denoise
from undrift._core.scatter import Scatter
from undrift._core.torch.ops import centred, precision, spd_inverse

NOISE, N_LAYERS, RIDGE = 0.7, 5, 1e-5
KEEP = 1 - NOISE


@dataclass(frozen=True)
class Task:
    """Names of two domains."""

    source: str
    target: str


Rows = Mapping[str, Array]  # by domain: its rows at some depth, on the device
Scatters = Mapping[str, Scatter]
# depth from 0, the rows and their scatters -> the layer of each domain
Solve = Callable[[int, Rows, Scatters], Mapping[str, Layer]]


def pool_scatters(stats: Scatters) -> Scatter:
    return reduce(add, stats.values())  # not in place: the variants share the scatters of the input


def same_layer_everywhere(layer: Layer, rows: Rows) -> dict[str, Layer]:
    return dict.fromkeys(rows, layer)


def masking(depth: int, rows: Rows, stats: Scatters, noise=(NOISE,) * N_LAYERS) -> dict[str, Layer]:
    """One probability for each layer."""
    return same_layer_everywhere(denoise(pool_scatters(stats), noise[depth], RIDGE), rows)


def per_feature(
    depth: int, rows: Rows, stats: Scatters, probability: np.ndarray, in_all_layers: bool = False
) -> dict[str, Layer]:
    """One probability for each term, in the first layer alone or in all of them."""
    noise = probability if depth == 0 or in_all_layers else NOISE
    return same_layer_everywhere(denoise(pool_scatters(stats), noise, RIDGE), rows)


def gaussian(depth: int, rows: Rows, stats: Scatters, share: float) -> dict[str, Layer]:
    """Normal noise whose variance is `share` of the mean square of a feature."""
    whole = pool_scatters(stats)
    coef = denoise_moments(centred_scatter(whole), 1.0, share * whole.energy.mean())
    return same_layer_everywhere(Layer(coef, intercept(coef, whole.mean, 1.0)), rows)


def poisson(depth: int, rows: Rows, stats: Scatters) -> dict[str, Layer]:
    """Poisson noise of |x| with the sign of x, since hidden rows have one: variance |x|."""
    sizes = sum(X.abs().sum(dim=0, dtype=torch.float64) for X in rows.values())
    whole = pool_scatters(stats)
    coef = denoise_moments(centred_scatter(whole), 1.0, sizes)
    return same_layer_everywhere(Layer(coef, intercept(coef, whole.mean, 1.0)), rows)


def structured(depth: int, rows: Rows, stats: Scatters) -> dict[str, Layer]:
    """Structured dropout, the limit of noise 1: ``W = C D^-1`` and ``b = mean``, with no solve."""
    whole = pool_scatters(stats)
    coef = centred_scatter(whole) / (whole.energy + RIDGE).to(whole.gram.dtype)[:, None]
    return same_layer_everywhere(Layer(coef, whole.mean.to(coef.dtype)), rows)


def mmd(depth: int, rows: Rows, stats: Scatters, weight: float) -> dict[str, Layer]:
    """Masking, and a penalty on how far the domains' means are apart after corruption and map.

    The expectation of ``B = sum_k n_k (m_k - m)(m_k - m)'`` over corruptions of m_k, the mean of domain k, is
    ``q^2 B`` plus, on the diagonal, ``p q (sum_k D_k / n_k - D / n)``.
    """
    whole = pool_scatters(stats)
    apart = [math.sqrt(domain.n) * (domain.mean - whole.mean) for domain in stats.values()]
    between = torch.stack(apart).T @ torch.stack(apart)
    domain_energy = sum(domain.energy / domain.n for domain in stats.values()) - whole.energy / whole.n
    C = centred_scatter(whole)
    system = KEEP**2 * (C + (weight * between).to(C.dtype))
    variance = NOISE * KEEP * (whole.energy + weight * domain_energy) + RIDGE
    system.diagonal().add_(variance.to(C.dtype))
    coef = solve_system(system, KEEP * C)
    return same_layer_everywhere(Layer(coef, intercept(coef, whole.mean)), rows)


def within(depth: int, rows: Rows, stats: Scatters) -> dict[str, Layer]:
    """An intercept for each domain, which leaves the scatter within the domains."""
    whole = pool_scatters(stats)
    gram = sum(centred(domain.gram, domain.n, domain.mean, domain.mean) for domain in stats.values())
    coef = denoise_moments(symmetric(gram), KEEP, NOISE * KEEP * whole.energy)
    return {name: Layer(coef, intercept(coef, domain.mean)) for name, domain in stats.items()}


def target_regularised(
    depth: int, rows: Rows, stats: Scatters, task: Task, eta: float, alpha: float = 1.0, free: bool = True
) -> dict[str, Layer]:
    """Push all outputs to the target's side of `z`, a ridge regression of source -1 against target +1.

    With a free intercept the push is a projection: ``W (I + eta z z')^-1``. Without one, as published,
    ``Q^-1 (P + eta (1-p) X'1 z')(I + eta z z')^-1``, which is one right side more.
    """
    z, whole = domain_direction(stats[task.source], stats[task.target], alpha), pool_scatters(stats)
    if free:
        layer = denoise(whole, NOISE, RIDGE)
        coef, shift = layer.coef, layer.intercept + eta * z
    else:
        S = symmetric(whole.gram)
        system = KEEP**2 * S
        system.diagonal().add_((NOISE * KEEP * whole.energy + RIDGE).to(S.dtype))
        push = torch.outer(whole.total.to(S.dtype), eta * z)
        coef, shift = solve_system(system, KEEP * (S + push)), torch.zeros_like(z)
    shrink = eta / (1 + eta * float(z @ z))  # Sherman and Morrison: (I + eta z z')^-1 = I - shrink z z'
    coef = coef - shrink * torch.outer(coef @ z, z)
    if free:
        shift = shift - shrink * float(shift @ z) * z
    return same_layer_everywhere(Layer(coef, shift), rows)


def source_alone(
    depth: int, rows: Rows, stats: Scatters, task: Task, rates: Mapping[str, np.ndarray], slope: float
) -> dict[str, Layer]:
    """More noise on terms that the source has and the target lacks: ``max(0, 1 - rate_t / rate_s)``."""
    source, target = rates[task.source], rates[task.target]
    missing = np.maximum(0, 1 - target / np.maximum(source, 1e-9)) * (source > 0)
    return per_feature(depth, rows, stats, np.clip(NOISE + slope * (missing - missing.mean()), 0.05, 0.95))


def intercept(coef: Array, mean: Array, keep: float = KEEP) -> Array:
    mean = mean.to(coef.dtype)
    return mean - keep * (mean @ coef)


def denoise_moments(C: Array, keep: float, variance: Array) -> Array:
    """``W' = (q^2 C + diag(v + ridge))^-1 q C``, for a noise of mean ``q x`` and variance v."""
    system = keep**2 * C
    system.diagonal().add_((variance + RIDGE).to(C.dtype))
    return solve_system(system, keep * C)


def solve_system(system: Array, right: Array) -> Array:
    """Solve ``system^-1 right``, in full precision."""
    with precision("highest"):
        return spd_inverse(system) @ right


def symmetric(gram: Array) -> Array:
    """The full matrix whose lower triangle is that of `gram`."""
    return gram.tril() + gram.tril(-1).T


def centred_scatter(stats: Scatter) -> Array:
    return symmetric(centred(stats.gram, stats.n, stats.mean, stats.mean))


def domain_direction(source: Scatter, target: Scatter, alpha: float) -> Array:
    """``z = (S + a I)^-1 (X_t'1 - X_s'1)`` over the rows of both, a in units of the mean energy."""
    both = source + target
    system = symmetric(both.gram)
    system.diagonal().add_(alpha * float(both.energy.mean()))
    return solve_system(system, (target.total - source.total).to(system.dtype))
