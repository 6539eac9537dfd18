"""A corpus of made-up product reviews, for demonstrations and tests."""

from __future__ import annotations

import json
import operator
import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PHRASES = json.loads(Path(__file__).with_name("products.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Style:
    """How clear reviews are: numbers of opinions in shared words, each as likely, and contrary shares."""

    n_shared: tuple[int, ...]
    contrary_shared: float  # of opinions in shared words, those against the verdict
    contrary_specific: float  # of opinions in words of the domain, those against the verdict


STYLES = {
    "clear": Style((0, 0, 0, 0, 0, 1, 2, 2, 3, 3), 0.1, 0.1),
    "mixed": Style((0, 0, 1, 1, 2, 2, 3, 3, 4, 4), 0.24, 0.28),
}


@dataclass(frozen=True)
class Product:
    """The language of one domain; ``{thing}``, ``{part}``, ``{who}``, ``{month}`` are slots."""

    things: list[str]  # on sale
    parts: list[str]  # of a thing, neither good nor bad
    facts: list[str]  # sentences without opinion
    praise: list[str]  # opinions that mean something in this domain alone
    complaints: list[str]


PRODUCTS = {name: Product(**phrases) for name, phrases in PHRASES["products"].items()}


@dataclass(frozen=True, eq=False)
class Domain:
    """Texts of one domain, their labels (NaN where unknown), and the numbers of the rows of each part.

    Examples
    --------
    >>> kitchen = make_reviews(10, domains=["kitchen"]).domains["kitchen"]
    >>> len(kitchen.train), len(kitchen.test), len(kitchen.unlabelled)
    (4, 2, 4)
    """

    name: str
    texts: list[str]
    y: np.ndarray
    train: np.ndarray  # labelled rows to learn from
    test: np.ndarray  # labelled rows to score when it is the target
    unlabelled: np.ndarray


@dataclass(frozen=True, eq=False)
class Corpus:
    """Domains by their names.

    Examples
    --------
    >>> list(make_reviews(10, domains=["books", "kitchen"]).domains)
    ['books', 'kitchen']
    """

    domains: dict[str, Domain]


def make_reviews(
    n_per_domain: int = 2000,
    *,
    domains: Sequence[str] = tuple(PRODUCTS),
    test_share: float = 0.2,
    unlabelled_share: float = 0.4,
    positive_share: float = 0.5,
    style: str = "clear",
    random_state: int | None = 0,
) -> Corpus:
    """Write readable reviews of books, kitchen ware, electronics and camping gear, as a `Corpus` of texts.

    A review mixes facts, opinions in words that every domain shares ("excellent", "what a waste of money")
    and opinions in words of its domain alone ("energy efficient", "page-turner"). Half of the reviews hold
    only the latter, on which a classifier from another domain has to guess; what they mean shows in the
    other half, where both occur together, and needs no labels to be learned. Labels are 1 (positive), 0
    (negative) and NaN on unlabelled rows.

    Parameters
    ----------
    n_per_domain : int, default=2000
        Reviews of each domain.
    domains : sequence of {"books", "kitchen", "electronics", "camping"}
        Default: all four. A domain's reviews do not depend on which others are asked for.
    test_share, unlabelled_share : float, default=0.2 and 0.4
        Shares of each domain's reviews; the rest are the labelled training rows.
    positive_share : float, default=0.5
        Share of positive reviews among test and unlabelled rows; of the training rows, half are positive.
    style : {"clear", "mixed"}, default="clear"
        Mixed reviews have opinions for and against, as real ones do: from one domain to another about 26% of
        the predictions of a linear SVM are wrong, and 16% after adaptation. Four in five of them hold words
        that every domain shares.
    random_state : int or None, default=0
        Equal seeds give equal reviews; None gives others every time.

    Returns
    -------
    Corpus

    Examples
    --------
    >>> corpus = make_reviews(10, domains=["kitchen"])
    >>> len(corpus.domains["kitchen"].texts)
    10
    """
    unknown = isinstance(domains, str) or not domains or any(name not in PRODUCTS for name in domains)
    is_too_much = min(test_share, unlabelled_share) < 0 or test_share + unlabelled_share > 1
    shares = f"got {test_share} and {unlabelled_share}"
    refused = {
        f"domains must be a list from {', '.join(PRODUCTS)}; got {domains!r}": unknown,
        f"n_per_domain must be at least 1; got {n_per_domain}": n_per_domain < 1,
        f"test_share and unlabelled_share must be at least 0 and together at most 1; {shares}": is_too_much,
        f"positive_share must be between 0 and 1; got {positive_share}": not 0 <= positive_share <= 1,
        f"style must be one of {', '.join(STYLES)}; got {style!r}": style not in STYLES,
    }
    for message, is_wrong in refused.items():
        if is_wrong:
            raise ValueError(message)
    n_test = round(test_share * n_per_domain)
    n_unlabelled = min(round(unlabelled_share * n_per_domain), n_per_domain - n_test)
    sizes = (n_per_domain - n_test - n_unlabelled, n_test, n_unlabelled)
    seed = secrets.randbits(64) if random_state is None else operator.index(random_state)
    made = {name: _write_domain(name, sizes, positive_share, STYLES[style], seed) for name in domains}
    return Corpus(made)


def _write_domain(
    name: str, sizes: tuple[int, int, int], positive_share: float, style: Style, seed: int
) -> Domain:
    """Write one domain: as many train, test and unlabelled rows as `sizes` says, in this order."""
    rng = random.Random(f"{seed} {name}")  # the domains do not depend on each other
    product = PRODUCTS[name]
    labels: list[int] = []
    for n, share in zip(sizes, (0.5, positive_share, positive_share), strict=True):
        n_positive = round(share * n)
        labels += rng.sample([1] * n_positive + [0] * (n - n_positive), n)
    texts = [_write_review(rng, product, style, is_liked=label == 1) for label in labels]
    train, test, unlabelled = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:2])
    y = np.array(labels, dtype=float)
    y[unlabelled] = np.nan
    return Domain(name, texts, y, train, test, unlabelled)


def _write_review(rng: random.Random, product: Product, style: Style, is_liked: bool) -> str:
    """Write one review: up to two facts, opinions in words of its domain and, mostly, in shared words."""
    facts = rng.sample(PHRASES["common_facts"] + product.facts, rng.randint(0, 2))
    n_specific = rng.randint(1, 3)
    specific = []
    for _ in range(n_specific):
        contrary = rng.random() < style.contrary_specific
        opinion = rng.choice(product.praise if is_liked != contrary else product.complaints)
        specific.append(f"Others may say: {opinion}" if contrary else opinion)
    n_shared = rng.choice(style.n_shared)
    shared = [_write_shared_opinion(rng, style, is_liked) for _ in range(n_shared)]
    sentences = list(dict.fromkeys(facts + specific + shared))
    rng.shuffle(sentences)
    for i, sentence in enumerate(sentences):
        if "{" not in sentence:
            continue
        who = rng.choice(PHRASES["people"])
        sentences[i] = sentence.format(
            thing=rng.choice(product.things),
            part=rng.choice(product.parts),
            month=rng.choice(PHRASES["months"]),
            who=who,
            Who=who[0].upper() + who[1:],
        )
    return " ".join(sentences)


def _write_shared_opinion(rng: random.Random, style: Style, positive: bool) -> str:
    """Write an opinion in words of every domain, which may go against the verdict."""
    contrary = rng.random() < style.contrary_shared
    liked = positive != contrary
    if rng.random() < 0.5:
        opinion = rng.choice(PHRASES["liking" if liked else "disliking"])
    else:
        word, word2 = rng.sample(PHRASES["good" if liked else "bad"], 2)
        opinion = rng.choice(PHRASES["opinions"]).replace("{word}", word).replace("{word2}", word2)
        opinion = opinion.replace("{Word}", word.capitalize())
    return f"Others may say: {opinion}" if contrary else opinion
