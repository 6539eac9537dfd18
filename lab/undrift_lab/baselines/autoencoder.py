"""A denoising autoencoder trained by stochastic gradient descent, on torch tensors of any device.

The gradient is written out: with one hidden layer it is four products, each weight is then read and written
once a step, and input columns that a minibatch does not touch are not visited at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

Weights = tuple[NDArray[Any], NDArray[Any]]  # of an encoder: (d_in, d_out), (d_out,)


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
    net: Autoencoder, noisy: Tensor, clean: Tensor, importance: Tensor | None, recipe: Recipe
) -> Tensor:
    """One step of gradient descent in place; returns the minibatch's loss before it.

    The loss is the sum over features of the reconstruction loss (times `importance`, where given: entries
    of importance 0 are not reconstructed) + `sparsity` × the sum of hidden values, averaged over rows.
    """
    columns, rate, n = noisy.any(dim=0).nonzero().squeeze(1), recipe.learning_rate, len(clean)
    outputs: Any = slice(None) if importance is None else importance.any(dim=0).nonzero().squeeze(1)
    inputs, decoder = noisy[:, columns], net.decoder[outputs]
    hidden = encode(net.encoder[columns], net.hidden_bias, inputs)
    logits = torch.addmm(net.output_bias[outputs], hidden, decoder.T)
    loss, slope = reconstruction_loss(logits, clean[:, outputs], recipe.decoder)
    if importance is not None:
        loss, slope = loss * importance[:, outputs], slope * importance[:, outputs]
    slope = slope / n
    hidden_slope = (slope @ decoder + recipe.sparsity / n) * (hidden > 0)
    if importance is None:
        net.decoder.addmm_(slope.T, hidden, alpha=-rate)
    else:
        net.decoder.index_add_(0, outputs, slope.T @ hidden, alpha=-rate)
    net.encoder.index_add_(0, columns, inputs.T @ hidden_slope, alpha=-rate)
    net.output_bias[outputs] -= rate * slope.sum(dim=0)
    net.hidden_bias.sub_(hidden_slope.sum(dim=0), alpha=rate)
    return (loss.sum() + recipe.sparsity * hidden.sum()) / n


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
        for start in range(0, len(order), recipe.batch_size):
            clean = torch.from_numpy(X[order[start : start + recipe.batch_size]].toarray()).to(device)
            for coef, bias in lower:
                clean = encode(coef, bias, clean)
            importance = None
            if recipe.sampling is not None:
                importance = draw_importance(clean, recipe.sampling, generator)
            noisy = mask(clean, recipe.noise, generator)
            total += sgd_step(net, noisy, clean, importance, recipe) * len(clean)
        losses.append(float(total) / len(order))
    return net.encoder.cpu().numpy(), net.hidden_bias.cpu().numpy(), np.array(losses)
