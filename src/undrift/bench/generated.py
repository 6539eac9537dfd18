"""Made-up reviews of many domains, written in the public format of the 2007 set.

They stand in for the public full set where that cannot be had: the runner, the loader and the split are
tried on the same format and number of domains. Records have every tag of the public files, some
of them twice, as occurs there. Errors on them say nothing about real reviews.
"""

from __future__ import annotations

import random
from pathlib import Path

LIKED = ("excellent", "wonderful", "great", "love it", "perfect", "highly recommend", "superb", "delighted")
DISLIKED = ("terrible", "awful", "broken", "waste of money", "poor", "disappointed", "useless", "returned it")
PLAIN = (
    "the", "it", "and", "with", "this", "bought", "for", "my", "after", "week", "one", "used", "box", "price",
)  # fmt: skip
SYLLABLES = ("ba", "co", "di", "fe", "gu", "ka", "lo", "mi", "nu", "pe", "ra", "so", "ti", "vo", "zu")


def write_domains(folder: str | Path, n_domains: int = 20, n_reviews: int = 1000, seed: int = 0) -> Path:
    """Write ``sorted_data/<domain>/all.review`` of made-up domains below `folder`.

    Half of a domain's opinions are in words that no other domain has. The loader drops
    domains of fewer than 1,000 reviews unless given another bound (`min_reviews`).
    """
    if n_domains < 2 or n_reviews < 1:
        raise ValueError(
            f"n_domains={n_domains}, n_reviews={n_reviews}: give at least 2 domains and 1 review"
        )
    root = Path(folder) / "sorted_data"
    for number in range(n_domains):
        rng = random.Random(f"{seed} {number}")
        name = f"domain_{number:02d}"
        words = _invent_words(rng, 60)
        (root / name).mkdir(parents=True, exist_ok=True)
        reviews = [_format_record(name, i, *_write_review(rng, words)) for i in range(n_reviews)]
        path = root / name / "all.review"
        path.write_text("".join(reviews), encoding="latin-1")
    return root


def _invent_words(rng: random.Random, n: int) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < n:
        words["".join(rng.choices(SYLLABLES, k=4))] = None
    return list(words)


def _write_review(rng: random.Random, words: list[str]) -> tuple[float, str, str]:
    """Rating, title, and a text that agrees with the rating nine times out of ten."""
    rating = rng.choice((1.0, 2.0, 4.0, 5.0))
    liked, disliked, neutral = words[:15], words[15:30], words[30:]
    said: list[str] = rng.choices(PLAIN, k=rng.randint(8, 20)) + rng.choices(neutral, k=rng.randint(3, 8))
    for _ in range(rng.randint(2, 5)):
        good = (rating > 3) == (rng.random() < 0.9)
        everywhere, here = (LIKED, liked) if good else (DISLIKED, disliked)
        said.append(rng.choice(everywhere if rng.random() < 0.5 else here))
    rng.shuffle(said)
    text = " ".join(said) + (" & caf\xe9" if rng.random() < 0.1 else "")
    return rating, said[0], text


def _format_record(domain: str, number: int, rating: float, title: str, text: str) -> str:
    """Write one review as the public files do, with their tags in their order."""
    product = number // 10  # ten reviews of each
    fields = (
        ("unique_id", f"{domain}_{product}:{title.replace(' ', '_')}:reviewer_{number}"),
        ("unique_id", str(number)),
        ("asin", f"{domain}_{product}"),
        ("product_name", f"Item & Co. no. {product}: {domain}: Miscellaneous"),
        ("product_type", domain),
        ("product_type", domain),
        ("helpful", f"{number % 8} of {number % 8 + 2}" if number % 3 else ""),
        ("rating", str(rating)),
        ("title", title),
        ("date", f"May {number % 28 + 1}, 2006"),
        ("reviewer", f"Reviewer {number}"),
        ("reviewer_location", ""),
        ("review_text", text),
    )
    lines = "".join(f"<{tag}>\n{value}\n</{tag}>\n" for tag, value in fields)
    return f"<review>\n{lines}</review>\n"
