"""Hear every story, let the readings vote, and learn the labels of target rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .jury import Estimate, estimate, find_mix, leave_one_out, mix, weigh
from .readings import Evidence, Reading, read
from .scores import SHARES, find_posteriors
from .settings import Settings
from .stories import LABELLED, SOURCE_ONLY, Story, mix_shares, tell_known, tell_stories, tell_taught


@dataclass(frozen=True)
class Verdict:
    """The readings, their votes for every target, and what follows for it."""

    readings: list[Reading]
    votes: np.ndarray  # (n_targets, n_readings), rows sum to 1
    estimates: list[Estimate]  # of every target
    p: list[np.ndarray]  # of every target, (n_readings, n_rows, n_classes) of its anchors
    stories: list[Story]  # all that could be told, with their votes
    unlabelled: list[Reading]  # those that were read before any label was learnt

    def mix(self, target: int) -> np.ndarray:
        """Return the probabilities of the anchors of a target by all readings: (n_rows, n_classes)."""
        return mix(self.votes[target], self.p[target])


def judge(evidence: Evidence, settings: Settings, last: Verdict | None = None) -> Verdict:
    """Read the targets under every story, weigh the readings by the labels, and learn these.

    `last` is the verdict on the same rows with other labels: what it said before any label serves again.
    """
    if not evidence.groups:
        story = Story("unmoved", "Rows are predicted as those of the source.", np.zeros(0))
        readings = [read(evidence, story, settings)]
        return Verdict(readings, np.zeros((0, 1)), [], [], [story], readings)
    facts = evidence.facts
    told = stories = last.stories if last else list_stories(evidence, settings)
    known = [group[evidence.anchors.is_known[group]] for group in evidence.groups]
    has_labels = any(map(len, known))
    if not has_labels:  # labels may speak for a story of few votes
        stories = [story for story in stories if _weigh_story(story, stories) >= settings.votes.least]
    heard = {reading.story.name: reading for reading in last.unlabelled} if last else {}
    readings = [heard.get(story.name) or read(evidence, story, settings) for story in stories]
    votes = np.array([story.votes for story in stories]).T
    votes = votes / votes.sum(axis=1, keepdims=True)
    p = list_probabilities(readings, evidence)
    if not has_labels:
        none = np.zeros((0, len(facts.classes))), np.zeros(0, dtype=int)
        mixtures = [mix(prior, each) for prior, each in zip(votes, p, strict=True)]
        estimates = [
            estimate(mixed, *none, settings.votes, is_balanced=facts.is_balanced) for mixed in mixtures
        ]
        return Verdict(readings, votes, _keep_known(estimates, facts.shares), p, told, readings)

    n_classes, doubt = len(facts.classes), settings.votes.doubt
    after, estimates, shares = [], [], []  # votes with all labels, and the mix of classes that they show
    for prior, group, rows, each in zip(votes, evidence.groups, known, p, strict=True):
        codes, place = evidence.codes[rows], np.searchsorted(group, rows)
        given = each[:, place, codes]
        after.append(weigh(prior, given, n_classes, doubt))
        without = leave_one_out(prior, given, n_classes, doubt)
        labelled = np.einsum("lr,rlc->lc", without, each[:, place])
        mixed = mix(after[-1], each)
        estimates.append(estimate(mixed, labelled, codes, settings.votes, is_balanced=facts.is_balanced))
        shares.append(find_mix(mix(after[-1], each), labelled, codes, settings.votes.spread))
    own_mix = _count_votes(known, settings)
    kept = np.flatnonzero(np.max(after, axis=0) >= settings.votes.least)
    unlabelled, stories = readings, [stories[r] for r in kept]
    heard = {reading.story.name: reading for reading in unlabelled if reading.story.name == SOURCE_ONLY}
    if not any(shares is not None for shares in facts.shares) and not any(evidence.lessons):
        sentence = "The mix of classes is what the labels show."
        stories.append(Story(LABELLED, sentence, own_mix, [mix_shares(mixed) for mixed in shares]))
    readings = [heard.get(story.name) or read(evidence, story, settings, learns=True) for story in stories]
    p, votes = list_probabilities(readings, evidence), np.empty((len(known), len(readings)))
    for i, weighed in enumerate(after):
        votes[i] = _join_votes(weighed[kept], own_mix[i], len(readings))
    return Verdict(readings, votes, _keep_known(estimates, facts.shares), p, told, unlabelled)


def list_stories(evidence: Evidence, settings: Settings) -> list[Story]:
    """Return the stories to read, with their votes."""
    source, raw, facts, lessons = evidence.source, evidence.raw_scores, evidence.facts, evidence.lessons
    posteriors = [find_posteriors(scores, source, settings.shares) for scores in raw]
    teachers = list(dict.fromkeys(name for each in lessons for name in each))
    if teachers:
        estimated = [posterior @ SHARES for posterior in posteriors]
        return [tell_taught(name, lessons, estimated, facts.shares, facts.has_source) for name in teachers]
    known = [source.shares] * len(raw) if facts.assumes_same else facts.shares
    stories = tell_stories(facts.classes.tolist(), source.shares, posteriors, settings)
    if any(shares is not None for shares in known):
        stories = tell_known(stories, known, assumes_same=facts.assumes_same)
    return [story for story in stories if story.votes.any()]


def _keep_known(estimates: Sequence[Estimate], known: Sequence[np.ndarray | None]) -> list[Estimate]:
    """Return the estimates with the shares that the user knows."""
    return [
        estimate
        if shares is None
        else replace(estimate, shares=shares, shares_interval=np.column_stack([shares, shares]))
        for estimate, shares in zip(estimates, known, strict=True)
    ]


def _weigh_story(story: Story, stories: Sequence[Story]) -> float:
    """Return the largest part of a target's votes that a story has."""
    total = np.sum([other.votes for other in stories], axis=0)
    return float((story.votes / total).max())


def list_probabilities(readings: Sequence[Reading], evidence: Evidence) -> list[np.ndarray]:
    """Return for every target (n_readings, n_rows, n_classes) probabilities of its anchors."""
    p = np.array([reading.find_probabilities(evidence.groups) for reading in readings])
    return [p[:, group] for group in evidence.groups]


def _count_votes(known: Sequence[np.ndarray], settings: Settings) -> np.ndarray:
    """Return the votes for the mix that labels show, against those of all stories together."""
    counts = np.array([len(rows) for rows in known])
    return counts / (counts + settings.votes.labelled)


def _join_votes(votes: np.ndarray, own_mix: float, n_readings: int) -> np.ndarray:
    """Return the votes of the readings that were kept, and of the mix that labels show if it is read."""
    votes = votes / votes.sum()
    return votes if len(votes) == n_readings else np.append((1 - own_mix) * votes, own_mix)
