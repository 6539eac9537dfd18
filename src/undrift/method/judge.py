"""Hear every story, let the readings vote, and learn the labels of target rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .jury import Estimate, estimate, find_mix, leave_one_out, mix, weigh
from .readings import Evidence, Reading, read
from .scores import SHARES, find_posteriors
from .settings import Settings
from .stories import LABELLED, SOURCE_ONLY, UNMOVED, Story, mix_shares, tell_known, tell_stories


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
        story = Story(UNMOVED, "Rows are predicted as those of the source.", np.zeros(0))
        readings = [read(evidence, story, settings)]
        return Verdict(readings, np.zeros((0, 1)), [], [], [story], readings)
    facts, least = evidence.facts, settings.votes.least
    told = stories = last.stories if last else list_stories(evidence, settings)
    known = [group[evidence.anchors.is_known[group]] for group in evidence.groups]
    has_labels = any(map(len, known))
    if not has_labels:  # labels may speak for a story of few votes
        total = np.sum([story.votes for story in stories], axis=0)
        stories = [story for story in stories if (story.votes / total).max() >= least]
    heard = {reading.story.name: reading for reading in last.unlabelled} if last else {}
    unlabelled = [heard.get(story.name) or read(evidence, story, settings) for story in stories]
    p, votes = list_probabilities(unlabelled, evidence), np.array([story.votes for story in stories]).T
    votes = votes / votes.sum(axis=1, keepdims=True)
    estimates, mixes = [], []  # the mix of classes that labels show
    for i, (group, rows, each) in enumerate(zip(evidence.groups, known, p, strict=True)):
        codes, place = evidence.codes[rows], np.searchsorted(group, rows)
        given = votes[i], each[:, place, codes], len(facts.classes), settings.votes.doubt
        labelled = np.einsum("lr,rlc->lc", leave_one_out(*given), each[:, place])
        votes[i] = weigh(*given) if len(rows) else votes[i]
        mixed = mix(votes[i], each)
        learnt = estimate(mixed, labelled, codes, settings.votes, is_balanced=facts.is_balanced)
        if (shares := facts.shares[i]) is not None:
            learnt = replace(learnt, shares=shares, shares_interval=np.column_stack([shares, shares]))
        estimates.append(learnt)
        if has_labels:
            mixes.append(mix_shares(find_mix(mixed, labelled, codes, settings.votes.spread)))
    if not has_labels:
        return Verdict(unlabelled, votes, estimates, p, told, unlabelled)

    kept = np.flatnonzero(votes.max(axis=0) >= least)
    votes, stories = votes[:, kept] / votes[:, kept].sum(axis=1, keepdims=True), [stories[r] for r in kept]
    if all(shares is None for shares in facts.shares) and not any(evidence.lessons):
        counts = np.array(list(map(len, known)))
        new = counts / (counts + settings.votes.labelled)  # against all other stories together
        stories.append(Story(LABELLED, "The mix of classes is what the labels show.", new, mixes))
        votes = np.column_stack([(1 - new)[:, None] * votes, new])
    heard = {reading.story.name: reading for reading in unlabelled if reading.story.name == SOURCE_ONLY}
    readings = [heard.get(story.name) or read(evidence, story, settings, learns=True) for story in stories]
    return Verdict(readings, votes, estimates, list_probabilities(readings, evidence), told, unlabelled)


def list_stories(evidence: Evidence, settings: Settings) -> list[Story]:
    """Return the stories to read, with their votes."""
    source, facts = evidence.source, evidence.facts
    posteriors = [find_posteriors(scores, source, settings.shares) for scores in evidence.raw_scores]
    teachers = list(dict.fromkeys(name for told in evidence.lessons for name in told))
    if teachers:
        estimated = [posterior @ SHARES for posterior in posteriors]
        return [tell_taught(teacher, evidence, estimated) for teacher in teachers]
    known = [source.shares] * len(posteriors) if facts.assumes_same else facts.shares
    stories = tell_stories(facts.classes.tolist(), source.shares, posteriors, settings)
    if any(shares is not None for shares in known):
        stories = tell_known(stories, known, assumes_same=facts.assumes_same)
    return [story for story in stories if story.votes.any()]


def tell_taught(teacher: str, evidence: Evidence, estimated: Sequence[np.ndarray]) -> Story:
    """Return the story of a teacher, whose labels show the mix of classes.

    With a source, they are averaged with the shares that its scores show, `estimated`, as far as the teacher
    was silent.
    """
    lessons, known, has_source = evidence.lessons, evidence.facts.shares, evidence.facts.has_source
    mixes, votes, sentence = [], np.zeros(len(lessons)), f"The labels of {teacher} are right but for noise."
    for i, (by_teacher, told, shares) in enumerate(zip(lessons, estimated, known, strict=True)):
        votes[i] = teacher in by_teacher or not by_teacher
        if lesson := by_teacher.get(teacher):
            part = (1 + lesson.coverage) / 2 if has_source else 1.0
            told = part * lesson.shares + (1 - part) * told
            sentence = lesson.words.story or sentence
        mixes.append(mix_shares(told if shares is None else shares))
    return Story(teacher, sentence, votes, mixes)


def list_probabilities(readings: Sequence[Reading], evidence: Evidence) -> list[np.ndarray]:
    """Return for every target (n_readings, n_rows, n_classes) probabilities of its anchors."""
    p = np.array([reading.find_probabilities(evidence.groups) for reading in readings])
    return [p[:, group] for group in evidence.groups]
