"""Stories: how the targets may differ from the source, and how much each counts before any label."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logit

from .settings import Settings, VoteSettings

SOURCE_ONLY, UNMOVED, SAME_MIX = "source only", "unmoved", "same mix"
LABELLED = "labels"  # the story of the mix that labels show
_LEAST_SHARE = 1e-3  # of a story, so that no class is excluded


@dataclass(frozen=True)
class Story:
    """An assumption about how the targets differ from the source."""

    name: str
    sentence: str
    votes: np.ndarray  # (n_targets,)
    shares: Sequence[np.ndarray] | None = None  # of every target; None: they follow from the scores
    is_centred: bool = False  # whether the domains' centres are one point


def tell_stories(
    classes: Sequence[Hashable],
    source: np.ndarray,
    posteriors: Sequence[np.ndarray],
    settings: Settings,
) -> list[Story]:
    """Return the stories of targets of unknown shares, that of logistic regression first.

    `source` are the class shares of the source, and `posteriors`, (n_classes, n_shares) for every target,
    those of its shares, evenly spaced from 0 to 1.
    """
    votes, n = settings.votes, len(posteriors)
    stories = [
        Story(
            SOURCE_ONLY,
            "Words mean what they mean in the source, and words that only the target has mean nothing.",
            np.ones(n),
        ),
        Story(
            UNMOVED,
            "Words mean what they mean in the source. The mix of classes follows from them.",
            np.ones(n),
        ),
        Story(
            SAME_MIX,
            "The mix of classes is as in the source, and words moved.",
            np.ones(n),
            is_centred=True,
        ),
    ]
    if votes.only is not None:
        return [story for story in stories if story.name == votes.only]
    if len(classes) == 2:
        return stories + _tell_grid(classes, source, posteriors, votes)
    grid = np.linspace(0, 1, posteriors[0].shape[1])
    estimated = [mix_shares(posterior @ grid) for posterior in posteriors]
    return [
        *stories,
        Story(
            "estimated mix",
            "The mix of classes is what the scores suggest.",
            np.full(n, votes.estimated + votes.flat),
            estimated,
        ),
        Story(
            "source's mix",
            "The mix of classes is exactly that of the source.",
            np.full(n, votes.near),
            [mix_shares(source)] * n,
        ),
    ]


def _tell_grid(
    classes: Sequence[Hashable], source: np.ndarray, posteriors: Sequence[np.ndarray], votes: VoteSettings
) -> list[Story]:
    """Return stories of two classes whose shares are on a grid."""
    edges = np.linspace(0, 1, votes.n_shares + 1)
    shares = (edges[1:] + edges[:-1]) / 2
    grid = np.linspace(0, 1, posteriors[0].shape[1])
    cell = np.minimum((grid * votes.n_shares).astype(int), votes.n_shares - 1)
    near = np.exp(-np.abs(logit(shares) - logit(np.clip(source[1], _LEAST_SHARE, 1 - _LEAST_SHARE))))
    mixed = []
    for posterior in posteriors:
        estimated = np.bincount(cell, posterior[1], votes.n_shares) ** votes.tempering
        parts = zip(
            (estimated, near, np.ones(len(shares))), (votes.estimated, votes.near, votes.flat), strict=True
        )
        mixed.append(sum(weight * part / part.sum() for part, weight in parts))
    by_story = np.array(mixed).T
    return [
        Story(
            f"{share:.0%} {classes[1]}",
            f"{share:.0%} of the rows are {classes[1]}.",
            by_target,
            [np.array([1 - share, share])] * len(posteriors),
        )
        for by_target, share in zip(by_story, shares, strict=True)
    ]


def tell_known(
    stories: Sequence[Story], known: Sequence[np.ndarray | None], *, assumes_same: bool
) -> list[Story]:
    """Return stories where the shares of some targets are known: only those that have them vote for these.

    With `assumes_same` all are the source's, and the story of the same mix votes as well.
    """
    if all(shares is not None for shares in known):
        sentence = (
            "The mix of classes is as in the source." if assumes_same else "The mix of classes is as given."
        )
        mixes = [mix_shares(shares) for shares in known if shares is not None]
        told = Story("given mix", sentence, np.ones(len(known)), mixes)
        return [told, *(story for story in stories if assumes_same and story.is_centred)]
    is_known = np.array([shares is not None for shares in known])
    changed = []
    for story in stories:
        if story.shares is None:
            changed.append(replace(story, votes=np.where(is_known, 0.0, story.votes)))
            continue
        pairs = zip(story.shares, known, strict=True)
        mixes = [mixed if shares is None else mix_shares(shares) for mixed, shares in pairs]
        changed.append(replace(story, shares=mixes))
    return changed


def mix_shares(shares: np.ndarray) -> np.ndarray:
    """Return shares of a story: no class is excluded."""
    shares = np.maximum(shares, _LEAST_SHARE)
    return shares / shares.sum()
