"""Every tuned number of the method, in one frozen object that is passed down and saved with every record.

A comment gives the unit. `docs/decisions` says how a number was chosen, and which command chooses it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class LayerSettings:
    """Layers, and the least squares on top of them."""

    n_layers: int = 5
    noise: float = 0.7  # probability that a feature is missing
    ridge: float = 1e-5  # the paper's
    C: float = 1.0  # weight of the squared errors, for inner products of mean square norm 1
    n_pivots: int | Literal["auto", "few", "many"] | None = "auto"  # features that layer 1 reconstructs
    most_pivots: int = 5_000  # with "auto"; of few rows half as many, at least
    pivots_per_row: int = 4  # fewer rows need fewer pivots, though not in proportion


@dataclass(frozen=True)
class AnchorSettings:
    """Rows whose inner products are kept. Limits of memory and time, not of accuracy."""

    labelled: int = 10_000
    targets: int = 5_000  # of all targets together, unless that leaves one with fewer than `least`
    least: int = 20
    n_folds: int = 5  # of held-out scores
    kept_entries: int = 250_000_000  # of hidden rows in memory; more are computed again


@dataclass(frozen=True)
class RoundSettings:
    """Rounds of pseudo-labels."""

    portions: tuple[float, ...] = (0.18, 0.36, 0.54, 0.72, 0.9)  # of the target rows, round by round
    weight: float = 0.5  # of a pseudo-label, against a label
    label_weight: float = 4.0  # of a label of a target row, against a label of the source


@dataclass(frozen=True)
class ShareSettings:
    """Priors of a target's class shares, and of the effect of another domain on scores.

    Separation is half the distance of the classes' scores in standard deviations.
    """

    separation_slope: float = 1.9  # of the log separation, by the log of the standard deviation in classes
    separation_spread: float = 0.21  # scale of the log separation around that line
    midpoint_spread: float = 0.4  # standard deviation of the midpoint, in standard deviations of a class
    same: float = 0.5  # probability that a target has the source's shares
    same_spread: float = 0.02  # standard deviation of such a share around the source's
    shift: float = 2.0  # scale of the difference of log odds of other shares
    tail: int = 5  # degrees of freedom of these priors
    effective_rows: int = 300  # that a target counts as, at most: scores are only nearly normal
    many_class_temperature: float = 1.43  # of target rows over that of held-out rows; 1 for two classes


@dataclass(frozen=True)
class VoteSettings:
    """Votes of the readings before any label, and how labels change them."""

    only: Literal["unmoved", "same mix"] | None = None  # the story that votes alone
    source_only_C: float = 25.0  # of logistic regression on the input, for rows of mean square norm 1
    estimated: float = 2.0  # of the stories of shares together, by what the scores say; others have 1 each
    near: float = 0.2  # the same, by how near they are to the source's
    flat: float = 0.2  # the same, all alike
    tempering: float = 0.5  # power of the posterior of the shares
    n_shares: int = 10  # on the grid of two classes
    doubt: float = 0.2  # part of a reading's probability that is spread over all classes
    spread: float = 1.0  # standard deviation of the error of the mixture's log odds, one for each class
    error_spread: float = 1.2  # standard deviation of the log odds of the error, around those expected
    labelled: float = 25.0  # labels whose own mix counts as much as the stories together
    batch: float = 20.0  # rows that the mix of the fit counts as, when that of a batch is found
    interval_trust: float = 0.4  # of a label in an interval: labelled rows are not drawn independently
    least: float = 0.01  # votes below which a story is not read, or no longer once labels have spoken


@dataclass(frozen=True)
class TeacherSettings:
    """Learning from a teacher."""

    portions: tuple[float, ...] = (0.6, 0.9, 1.0)  # of the target rows with a pseudo-label, round by round
    weight: float = 1.0  # of a pseudo-label that a teacher had a part in, against a label
    most_trust: float = 1.75  # weight of a teacher against a student, in units of their root mean squares
    full_trust: float = 2.25  # log odds of a right label, against its being exchanged, at which that is 1
    reviewed: int = 3_000  # rows that its noise is found from
    sure_rows: int = 2_000  # that serve as source where there is none: the first portion, at most these
    least: int = 20  # labels


@dataclass(frozen=True)
class Settings:
    """Settings of the method."""

    layers: LayerSettings = field(default_factory=LayerSettings)
    anchors: AnchorSettings = field(default_factory=AnchorSettings)
    rounds: RoundSettings = field(default_factory=RoundSettings)
    shares: ShareSettings = field(default_factory=ShareSettings)
    votes: VoteSettings = field(default_factory=VoteSettings)
    teacher: TeacherSettings = field(default_factory=TeacherSettings)


PARTS = (LayerSettings, AnchorSettings, RoundSettings, ShareSettings, VoteSettings, TeacherSettings)
