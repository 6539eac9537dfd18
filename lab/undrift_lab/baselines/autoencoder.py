"""A denoising autoencoder trained by stochastic gradient descent, on torch tensors of any device.

The gradient is written out: with one hidden layer it is four products, and each weight is then read and
written once a step. On a processor, input columns that a minibatch does not touch are not visited. A GPU
visits all: it would have to wait for their number in every step, which takes longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

Weights = tuple[NDArray[Any], NDArray[Any]]  # of an encoder: (d_in, d_out), (d_out,)
ALL = slice(None)  # columns


@dataclass(frozen=True)
class Recipe:
    """How one layer is trained; the names are those of `SDA`'s parameters."""

    n_hidden: int
    noise: float
    learning_rate: float
    sparsity: float
    n_epochs: int
    batch_size: int
    decoder: str  # "sigmoid" with cross-entropy, or "softplus" with squared error
    sampling: float | None = None  # share of the zeros that is reconstructed; None: all of them


@dataclass(frozen=True)
class Autoencoder:
    """Weights of an encoder and an untied decoder. `sgd_step` changes the tensors in place."""

    encoder: Tensor  # (d, h)
    hidden_bias: Tensor  # (h,)
    decoder: Tensor  # (d, h): a row for each feature reconstructed
    output_bias: Tensor  # (d,)


def draw_weights(
    n_features: int, n_hidden: int, dtype: torch.dtype, generator: torch.Generator
) -> Autoencoder:
    """Draw weights uniform within ``±sqrt(6 / (d + h))``, biases zero."""
    bound = (6 / (n_features + n_hidden)) ** 0.5
    encoder, decoder = (
        torch.empty(n_features, n_hidden, dtype=dtype, device=generator.device).uniform_(
            -bound, bound, generator=generator
        )
        for _ in range(2)
    )
    return Autoencoder(encoder, encoder.new_zeros(n_hidden), decoder, decoder.new_zeros(n_features))


def encode(encoder: Tensor, bias: Tensor, rows: Tensor) -> Tensor:
    """Hidden values of dense rows: the rectified affine map."""
    return torch.relu(torch.addmm(bias, rows, encoder))


def reconstruction_loss(logits: Tensor, clean: Tensor, decoder: str) -> tuple[Tensor, Tensor]:
    """Loss of each entry and its slope in the logit."""
    if decoder == "sigmoid":  # cross-entropy from logits
        return softplus(logits) - clean * logits, torch.sigmoid(logits) - clean
    difference = softplus(logits) - clean
    return difference**2, 2 * difference * torch.sigmoid(logits)


def sgd_step(
    net: Autoencoder,
    noisy: Tensor,
    clean: Tensor,
    importance: Tensor | None,
    recipe: Recipe,
    *,
    visits_all: bool = False,
) -> Tensor:
    """One step of gradient descent in place; returns the minibatch's loss before it.

    The loss is the sum over features of the reconstruction loss (times `importance`, where given: entries
    of importance 0 are not reconstructed) + `sparsity` × the sum of hidden values, averaged over rows.
    With `visits_all`, columns without an entry are visited too, and nothing waits for the device.
    """
    columns = ALL if visits_all else _find_columns(noisy)
    outputs = ALL if visits_all or importance is None else _find_columns(importance)
    rate, n = recipe.learning_rate, len(clean)
    inputs, decoder = noisy[:, columns], net.decoder[outputs]
    hidden = encode(net.encoder[columns], net.hidden_bias, inputs)
    logits = torch.addmm(net.output_bias[outputs], hidden, decoder.T)
    loss, slope = reconstruction_loss(logits, clean[:, outputs], recipe.decoder)
    if importance is not None:
        loss, slope = loss * importance[:, outputs], slope * importance[:, outputs]
    slope = slope / n
    hidden_slope = (slope @ decoder + recipe.sparsity / n) * (hidden > 0)
    _subtract_product(net.decoder, outputs, slope.T, hidden, rate)
    _subtract_product(net.encoder, columns, inputs.T, hidden_slope, rate)
    net.output_bias[outputs] -= rate * slope.sum(dim=0)
    net.hidden_bias.sub_(hidden_slope.sum(dim=0), alpha=rate)
    return (loss.sum() + recipe.sparsity * hidden.sum()) / n


def _find_columns(rows: Tensor) -> Tensor:
    return rows.any(dim=0).nonzero().squeeze(1)


def _subtract_product(weights: Tensor, places: Any, left: Tensor, right: Tensor, rate: float) -> None:
    """Subtract ``rate * left @ right`` from rows of weights, in place."""
    if places is ALL:
        weights.addmm_(left, right, alpha=-rate)
    else:
        weights.index_add_(0, places, left @ right, alpha=-rate)


def draw_importance(clean: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Give each entry its importance: 1 to what is there, ``1 / share`` to a random `share` of the zeros.

    Its expectation is 1 everywhere, so the sampled loss and gradient are unbiased (Dauphin et al. 2011).
    """
    drawn = torch.rand(clean.shape, generator=generator, device=clean.device) < share
    return torch.where(clean > 0, 1.0, drawn.to(clean.dtype) / share)


def mask(clean: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """`clean` with each entry set to zero with probability `noise`."""
    return clean * (torch.rand(clean.shape, generator=generator, device=clean.device) >= noise)


def train_layer(
    X: Any,
    below: list[Weights],
    recipe: Recipe,
    rng: np.random.RandomState,
    device: str,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Train one more layer on CSR rows: its encoder weights and bias, and the mean loss of each epoch.

    What the layers `below` make of a minibatch is worked out when it is needed, so no hidden values of all
    rows are ever held. Training stops at a loss that is not finite.
    """
    generator = torch.Generator(device).manual_seed(int(rng.randint(2**31 - 1)))
    lower = [tuple(torch.from_numpy(part).to(device) for part in weights) for weights in below]
    dtype = torch.from_numpy(X.data[:0]).dtype
    net = draw_weights(len(lower[-1][1]) if lower else X.shape[1], recipe.n_hidden, dtype, generator)
    losses: list[float] = []
    while len(losses) < recipe.n_epochs and np.isfinite(losses).all():
        order, total = rng.permutation(X.shape[0]), torch.zeros((), dtype=torch.float64, device=device)
        for clean in _take_batches(X[order], recipe.batch_size, device):
            for coef, bias in lower:
                clean = encode(coef, bias, clean)
            importance = None
            if recipe.sampling is not None:
                importance = draw_importance(clean, recipe.sampling, generator)
            noisy = mask(clean, recipe.noise, generator)
            loss = sgd_step(net, noisy, clean, importance, recipe, visits_all=device != "cpu")
            total += loss * len(clean)
        losses.append(float(total) / len(order))
    return net.encoder.cpu().numpy(), net.hidden_bias.cpu().numpy(), np.array(losses)


def _take_batches(X: Any, size: int, device: str) -> Iterator[Tensor]:
    """Yield CSR rows as dense minibatches; their entries travel to the device together."""
    rows = np.repeat(np.arange(X.shape[0]) % size, np.diff(X.indptr))
    entries = [torch.from_numpy(part).to(device) for part in (rows, X.indices.astype(np.int64), X.data)]
    for start in range(0, X.shape[0], size):
        end = min(start + size, X.shape[0])
        row, column, value = (part[X.indptr[start] : X.indptr[end]] for part in entries)
        batch = value.new_zeros(end - start, X.shape[1])
        batch[row, column] = value
        yield batch
