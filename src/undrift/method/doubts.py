"""Safeguard: if label-free diagnostics say that adaptation will not help, warn or keep source-only.

The thresholds come from `lab/scripts/safeguard.py`, which prints every signal beside the true gain, on real
pairs of domains and on cases made so that nothing can be gained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core import Rows, array_ops
from ..errors import warn
from ..inputs import on_cluster
from . import constants
from .calibrate import Target
from .domains import UNLABELLED
from .self_train import retained_auc, round_trip_auc
from .shares import Shares
from .solve import confidence, mean_auc, predict_codes
from .source_only import SourceOnly
from .train import Fit


@dataclass(frozen=True)
class Signals:
    """Diagnostics of a fit that need no target labels; None where one was not measured.

    Adapted and source-only are compared by scores for classes that count alike, before the shift for
    the target's shares is added: a target of uneven classes is then no disagreement.
    """

    n_target: int  # rows of the smallest target
    empty: float  # share of target rows that are all zero
    unseen: float  # share of the target's nonzero entries in features that no labelled row has
    sure_disagreement: float | None = None  # share of labels that differ in the half source-only is surer of
    retained: float | None = None  # of the source's area under the ROC curve above chance, after a round trip
    source_only_retained: float | None = None  # the same for the source-only classifier
    held_out_auc: float | None = None  # area under the ROC curve of held-out labelled rows


@dataclass(frozen=True)
class Reason:
    """One reason against adapting, with its remedy. A blocking reason leads to the fallback."""

    code: str
    text: str
    is_blocking: bool = False


def measure_rows(targets: Sequence[Rows], labelled_counts: np.ndarray) -> Signals | None:
    """Return the signals that need the rows alone; None without a target.

    `labelled_counts` says in how many labelled rows each feature is not zero.
    """
    if not targets:
        return None
    total = np.sum([_count_nonzero(X) for X in targets], axis=0)
    counts, n_nonempty, n_rows = total[:-1], total[-1], [X.shape[0] for X in targets]
    unseen = counts[labelled_counts == 0].sum() / max(counts.sum(), 1)
    return Signals(min(n_rows), float(1 - n_nonempty / max(sum(n_rows), 1)), float(unseen))


def _count_nonzero(X: Rows) -> np.ndarray:
    """Count the rows in which each feature is not zero, then the rows that are not empty."""
    if on_cluster(X):
        return X.total(_count_nonzero)
    ops = array_ops(X)
    if sp.issparse(X):
        n_nonempty = len(np.unique(X.nonzero()[0]))
    else:
        n_nonempty = int(np.count_nonzero(ops.to_numpy(X.any(axis=1))))
    return np.append(ops.to_numpy(ops.nonzero_counts(X)), n_nonempty)


def compare_with_source_only(
    signals: Signals, scores: np.ndarray, retained: float | None, source_only: SourceOnly
) -> Signals:
    """Add signals that compare the adapted classifier with the source-only classifier."""
    differs = predict_codes(source_only.scores) != predict_codes(scores)
    surer = np.argsort(-confidence(source_only.scores), kind="stable")[: max(len(differs) // 2, 1)]
    return replace(
        signals,
        sure_disagreement=float(differs[surer].mean()),
        retained=retained,
        source_only_retained=source_only.retained,
    )


def find_reasons(signals: Signals, shares: Sequence[Shares] = (), faded: str = "one class") -> list[Reason]:
    """Return reasons against adapting, blocking ones first.

    `shares` are those of aligned targets, and `faded` is the class that hardly seems to occur there.
    """
    is_unknown = bool(shares) and all(estimate.is_unknown for estimate in shares)
    blocking = _blocking_reasons(signals, faded if is_unknown else None)
    reasons = [*blocking, *_doubts(signals)]
    is_blocked = any(reason.is_blocking for reason in reasons)
    if any(estimate.is_doubtful for estimate in shares) and not is_blocked:
        reasons.append(
            Reason(
                "error-not-known",
                "scores do not separate the classes of the target, so its error is not known: label about 30 "
                "rows drawn at random (undrift label)",
            )
        )
    elif any(estimate.is_uncertain for estimate in shares):
        reasons.append(
            Reason(
                "uncertain-shares",
                "the class shares of the target are uncertain, and predictions depend on them: give them "
                "(target_shares, --target-shares), or label about 30 rows drawn at random",
            )
        )
    return reasons


def _fails_round_trip(s: Signals) -> bool:
    """Tell whether adapting fails the round trip, and falling back is better.

    Where few words are shared source-only is worse still, unless it makes the round trip.
    """
    if s.n_target < constants.FEW_TARGET_ROWS or s.retained is None or s.retained >= constants.LEAST_RETAINED:
        return False
    return s.unseen <= constants.FAR_APART or (s.source_only_retained or 0.0) >= constants.LEAST_RETAINED


def _blocking_reasons(s: Signals, faded: str | None) -> Iterator[Reason]:
    """Yield the reasons for the fallback; `faded` is a class that hardly occurs, or is not recognised."""
    if s.held_out_auc is not None and s.held_out_auc < constants.LEAST_HELD_OUT_AUC:
        yield Reason(
            "not-learnable",
            "labels can hardly be predicted even in the source: the area under the ROC curve of held-out "
            f"rows is {s.held_out_auc:.2f}, and 0.5 is chance; check the columns of text and labels",
            is_blocking=True,
        )
        return
    if s.unseen > constants.NOTHING_SHARED:
        yield Reason(
            "nothing-shared",
            f"the domains share almost no vocabulary: {s.unseen:.0%} of the target's entries are features "
            "(words of a text) that no labelled row has; check that both are in one language, or label rows "
            "of an intermediate domain",
            is_blocking=True,
        )
    elif _fails_round_trip(s):
        yield Reason(
            "round-trip",
            "a classifier trained on the target's pseudo-labels recovers only "
            f"{max(s.retained or 0, 0):.0%} of the separation of the source's classes "
            f"({constants.LEAST_RETAINED:.0%} are needed): check that labels mean the same in both domains, "
            "then add target rows",
            is_blocking=True,
        )
    elif faded is not None:
        yield Reason(
            "not-known",
            f"either hardly any row is {faded}, or the words of {faded} have changed; scores cannot tell "
            "which, so the source's class shares are used: label about 30 rows drawn at random (undrift "
            "label)",
            is_blocking=True,
        )


def _doubts(s: Signals) -> Iterator[Reason]:
    if s.n_target < constants.FEW_TARGET_ROWS:
        yield Reason(
            "few-rows",
            f"the target has {s.n_target} rows, too few to learn which features occur together "
            f"({constants.FEW_TARGET_ROWS} are better): add unlabelled rows",
        )
    if s.empty > constants.MANY_EMPTY:
        yield Reason(
            "empty-rows",
            f"{s.empty:.0%} of the target's rows are empty, and all of them get one label: check or remove "
            "them",
        )
    if constants.FAR_APART < s.unseen <= constants.NOTHING_SHARED:
        yield Reason(
            "far-apart",
            f"{s.unseen:.0%} of the target's entries are features (words of a text) that no labelled row "
            "has: add rows of an intermediate domain, labelled or not",
        )
    elif s.sure_disagreement is not None and s.sure_disagreement > constants.SURE_DISAGREEMENT:
        yield Reason(
            "disagreement",
            f"adapted and source-only classifiers disagree on {s.sure_disagreement:.0%} of the rows where "
            "source-only is surer, class shares aside: label a random sample to see which is right",
        )


def decide_fallback(
    signals: Signals, can_fall_back: bool, shares: Sequence[Shares] = (), faded: str = "one class"
) -> dict[str, Any]:
    """Decide whether to fall back; return the decision, its signals, and its reasons in words and codes."""
    reasons = find_reasons(signals, shares, faded)
    blocking = [reason.text for reason in reasons if reason.is_blocking]
    if blocking and can_fall_back:  # the shares were estimated for a classifier that is not used
        reasons = [reason for reason in reasons if reason.code != "uncertain-shares"]
    return {
        "signals": asdict(signals),
        "reasons": [reason.text for reason in reasons],
        "codes": [reason.code for reason in reasons],
        "blocking": blocking,
        "fell_back": bool(blocking) and can_fall_back,
    }


def warn_of_blocking(caution: dict[str, Any] | None) -> None:
    """Warn of blocking reasons, and name the classifier that is used."""
    if caution is None:
        return
    done = "used the source-only classifier instead" if caution["fell_back"] else "adapted nevertheless"
    for text in caution["blocking"]:
        code = "fell-back" if caution["fell_back"] else ""
        warn(f"adaptation is likely not to help ({done}): {text}", code=code)


def judge_fit(fit: Fit, targets: Sequence[Target] | None, signals: Signals | None) -> dict[str, Any] | None:
    """Return the warnings of a fit, and whether it falls back to the source alone; None without a target.

    `signals` are those of the rows alone. With labels of target rows, also of a teacher, it never does.
    """
    base, trained, held_out, has_teacher = fit.base, fit.trained, fit.held_out, fit.has_teacher
    source_only, chosen = base.source_only, base.chosen
    if signals is None:
        return None
    if source_only is not None:
        trips = [r.round_trip for r in trained.rounds if r.kept] or [r.round_trip for r in trained.rounds[:1]]
        trip = trips[-1] if trips else round_trip_auc(chosen.K, base.labels, chosen.C, trained.scores)
        auc = mean_auc(fit.labelled_scores, base.labels.codes)
        retained = None if trip is None else retained_auc(trip, auc)
        signals = compare_with_source_only(signals, trained.scores, retained, source_only)
    if len(held_out.codes) >= constants.FEW_TARGET_ROWS:
        signals = replace(signals, held_out_auc=mean_auc(held_out.scores, held_out.codes))
    has_labels = bool((base.anchors.target_codes != UNLABELLED).any())
    can_fall_back = source_only is not None and not has_labels and not has_teacher
    shares = [target.shares for target in targets or []]
    return decide_fallback(signals, can_fall_back, shares, _name_faded(fit, shares))


def _name_faded(fit: Fit, shares: Sequence[Shares]) -> str:
    """Name the class that seems to occur far less in a target than in the source."""
    source, classes = fit.held_out.class_shares, fit.base.domains.classes
    drops = np.max([source - estimate.mean for estimate in shares], axis=0) if shares else np.zeros(1)
    return repr(classes[drops.argmax()].item()) if drops.max() > constants.FADED else "one class"
