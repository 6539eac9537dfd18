"""A denoising autoencoder trained by stochastic gradient descent, on torch tensors of any device.

The gradient is written out: with one hidden layer it is four products, each weight is then read and written
once a step, and columns that a minibatch does not touch are not visited at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

Columns = Tensor | slice
EVERY = slice(None)


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
    sampling: float | None  # share of the zeros that is reconstructed; None: all of them


@dataclass(frozen=True)
class Autoencoder:
    """Weights of an encoder and an untied decoder. `sgd_step` changes the tensors in place."""

    encoder: Tensor  # (d, h)
    hidden_bias: Tensor  # (h,)
    decoder: Tensor  # (d, h): a row for each feature reconstructed
    output_bias: Tensor  # (d,)


@dataclass(frozen=True)
class DeviceRows:
    """Sparse rows on a device, made dense a minibatch at a time."""

    starts: NDArray[np.int64]  # (n + 1,), on the host, so that slicing never waits for the device
    columns: Tensor
    values: Tensor
    n_features: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.starts) - 1

    def batches(self, order: NDArray[np.intp], size: int) -> Iterator[Tensor]:
        """Dense blocks of `size` rows, in the order given."""
        lengths = np.diff(self.starts)[order]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        entry = np.repeat(self.starts[order] - ends[:-1], lengths) + np.arange(ends[-1])
        where = torch.from_numpy(entry).to(self.columns.device)
        row = torch.from_numpy(np.repeat(np.arange(len(order)) % size, lengths)).to(where.device)
        columns, values = self.columns[where], self.values[where]
        for first in range(0, len(order), size):
            last = min(first + size, len(order))
            part = slice(ends[first], ends[last])
            block = torch.zeros(last - first, self.n_features, dtype=values.dtype, device=values.device)
            block[row[part], columns[part]] = values[part]
            yield block


def move_rows(X: Any, device: str) -> DeviceRows:
    """Put the CSR rows `X` on `device`."""
    columns = torch.from_numpy(X.indices.astype(np.int64)).to(device)
    values = torch.from_numpy(np.array(X.data)).to(device)
    return DeviceRows(X.indptr.astype(np.int64), columns, values, X.shape[1])


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
    net: Autoencoder, noisy: Tensor, clean: Tensor, importance: Tensor | None, recipe: Recipe
) -> Tensor:
    """One step of gradient descent in place; returns the minibatch's loss before it.

    The loss is the sum over features of the reconstruction loss (times `importance`, where given: entries
    of importance 0 are not reconstructed) + `sparsity` × the sum of hidden values, averaged over rows.
    """
    inputs = _nonzero_columns(noisy)
    outputs = EVERY if importance is None else _nonzero_columns(importance)
    hidden = encode(net.encoder[inputs], net.hidden_bias, noisy[:, inputs])
    decoder = net.decoder[outputs]
    logits = torch.addmm(net.output_bias[outputs], hidden, decoder.T)
    loss, slope = reconstruction_loss(logits, clean[:, outputs], recipe.decoder)
    if importance is not None:
        loss, slope = loss * importance[:, outputs], slope * importance[:, outputs]
    slope = slope / len(clean)
    hidden_slope = (slope @ decoder + recipe.sparsity / len(clean)) * (hidden > 0)
    _descend(net.decoder, outputs, slope.T, hidden, recipe.learning_rate)
    _descend(net.encoder, inputs, noisy[:, inputs].T, hidden_slope, recipe.learning_rate)
    net.output_bias[outputs] -= recipe.learning_rate * slope.sum(dim=0)
    net.hidden_bias.sub_(hidden_slope.sum(dim=0), alpha=recipe.learning_rate)
    return (loss.sum() + recipe.sparsity * hidden.sum()) / len(clean)


def draw_importance(clean: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Give each entry its importance: 1 to what is there, ``1 / share`` to a random `share` of the zeros.

    Its expectation is 1 everywhere, so the sampled loss and gradient are unbiased (Dauphin et al. 2011).
    """
    drawn = torch.rand(clean.shape, generator=generator, device=clean.device) < share
    return torch.where(clean > 0, 1.0, drawn.to(clean.dtype) / share)


def mask(clean: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """`clean` with each entry set to zero with probability `noise`."""
    return clean * (torch.rand(clean.shape, generator=generator, device=clean.device) >= noise)


def train_epoch(
    net: Autoencoder,
    clean_batches: Iterator[Tensor],
    recipe: Recipe,
    generator: torch.Generator,
    report: Callable[[int, Tensor], None],
) -> float:
    """Train on every minibatch once; returns the mean loss. `report` gets rows done and their summed loss."""
    n_done, total = 0, torch.zeros((), dtype=torch.float64, device=generator.device)
    for clean in clean_batches:
        importance = None
        if recipe.sampling is not None:
            importance = draw_importance(clean, recipe.sampling, generator)
        loss = sgd_step(net, mask(clean, recipe.noise, generator), clean, importance, recipe)
        total += loss * len(clean)
        n_done += len(clean)
        report(n_done, total)
    return float(total) / n_done


def train_layer(
    rows: DeviceRows,
    below: list[tuple[Any, Any]],
    recipe: Recipe,
    rng: np.random.RandomState,
    report: Callable[[int, int, Tensor], None],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Train one more layer: its encoder weights and bias, and the mean loss of each epoch.

    What the layers `below` make of a minibatch is worked out when it is needed, so no hidden values of all
    rows are ever held. Training stops at a loss that is not finite.
    """
    device, dtype = rows.values.device, rows.values.dtype
    generator = torch.Generator(device).manual_seed(int(rng.randint(2**31 - 1)))
    lower = [(torch.from_numpy(coef).to(device), torch.from_numpy(bias).to(device)) for coef, bias in below]
    net = draw_weights(len(lower[-1][1]) if lower else rows.n_features, recipe.n_hidden, dtype, generator)
    losses: list[float] = []
    for number in range(recipe.n_epochs):
        batches = rows.batches(rng.permutation(rows.n_rows), recipe.batch_size)
        clean = (_pass_through(lower, batch) for batch in batches)
        losses.append(train_epoch(net, clean, recipe, generator, partial(report, number)))
        if not np.isfinite(losses[-1]):
            break
    return net.encoder.cpu().numpy(), net.hidden_bias.cpu().numpy(), np.array(losses)


def encode_rows(rows: DeviceRows, coef: Any, bias: Any, size: int) -> NDArray[Any]:
    """Hidden values of all rows, `size` of them at a time on the device."""
    device = rows.values.device
    coef, bias = torch.from_numpy(coef).to(device), torch.from_numpy(bias).to(device)
    batches = rows.batches(np.arange(rows.n_rows), size)
    return np.concatenate([encode(coef, bias, batch).cpu().numpy() for batch in batches])


@contextmanager
def allow_tf32(device: str) -> Iterator[None]:
    """Let float32 products on a GPU use TF32, and put the setting back afterwards."""
    before = torch.get_float32_matmul_precision()
    if device != "cpu":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _pass_through(layers: list[tuple[Tensor, Tensor]], rows: Tensor) -> Tensor:
    for coef, bias in layers:
        rows = encode(coef, bias, rows)
    return rows


def _nonzero_columns(block: Tensor) -> Columns:
    """Columns of a minibatch that hold something; all of them where leaving some out would not pay."""
    columns = block.any(dim=0).nonzero().squeeze(1)
    return columns if len(columns) < block.shape[1] / 2 else EVERY


def _descend(weights: Tensor, rows: Columns, left: Tensor, right: Tensor, learning_rate: float) -> None:
    """Subtract ``learning_rate · left @ right`` from some rows of `weights`, in place."""
    if isinstance(rows, slice):
        weights.addmm_(left, right, alpha=-learning_rate)
    else:
        weights.index_add_(0, rows, left @ right, alpha=-learning_rate)
