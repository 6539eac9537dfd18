"""Fitted models of several domains: results for every target, and its alignment to another batch.

A batch changes class shares, decision threshold and expected error of a target, from scores alone. Scores of
the classifier that was trained on the source alone tell the shares, beside those of held-out labelled rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from ..core import Rows
from ..inputs import savable
from .calibrate import HeldOut, Target, describe_target
from .constants import BATCH_ROWS
from .domains import Name, check_domain_numbers
from .shares import estimate_shares, thin_rows

if TYPE_CHECKING:
    from .train import Fit


@savable
@dataclass(frozen=True)
class BatchReference:
    """Numbers of a fit that a later batch is aligned by."""

    weights: list[np.ndarray]  # of every layer, (d_t, n_outputs): the classifier trained on the source alone
    intercept: np.ndarray  # (n_outputs,), or one for each domain of a distilled classifier
    held_out: HeldOut
    error_ratio: float  # errors after self-training over errors before it
    is_balanced: bool
    fitted: list[np.ndarray]  # for every target, (n, n_outputs) scores by the source alone of rows of the fit

    def describe(self, i: int, scores: np.ndarray, first_scores: np.ndarray, temperature: float) -> Target:
        """Estimate the shares of a batch of target i, its decision threshold, and the error to expect.

        `scores` are of the classifier, `first_scores` of the one that was trained on the source alone.
        """
        held_out, n_classes = self.held_out, max(2, scores.shape[1])
        given = first_scores, held_out.scores, held_out.codes, n_classes
        shares = estimate_shares(*given, transfer=held_out.transfer, fitted=self.fitted[i])
        parts = scores, temperature, first_scores, held_out, shares, self.error_ratio
        return describe_target(*parts, is_balanced=self.is_balanced)


def keep_batch_reference(fit: Fit, error_ratio: float, dtype: str) -> BatchReference | None:
    """Return the numbers of a fit that batches are aligned by; None where its targets are not aligned."""
    if fit.aligned is None:
        return None
    first = [w.astype(dtype) for w in fit.weights.first]
    intercept = fit.weights.first_intercept - fit.aligned.center
    scores = [fit.aligned.scores[group].astype(dtype) for group in fit.aligned.groups]
    fitted = [thin_rows(each, each[:, 0], BATCH_ROWS) for each in scores]
    return BatchReference(first, intercept, fit.held_out, error_ratio, fit.is_balanced, fitted)


class TargetModel:
    """A fitted classifier with an intercept for every domain, and results for every target."""

    classes_: np.ndarray
    domains_: list[Name]  # sources first
    n_sources_: int
    domain_sizes_: list[int]
    intercept_: np.ndarray  # (n_domains, n_outputs)
    temperature_: float
    prior_: np.ndarray  # (n_domains, n_outputs) added to scores for probabilities
    source_shares_: np.ndarray  # (n_classes,) of the labelled rows
    target_shares_: list[dict[Any, float] | None]
    target_shares_interval_: list[dict[Any, tuple[float, float]] | None]
    expected_error_: list[dict[str, Any] | None]
    batch_: BatchReference | None  # None where targets are not aligned

    @property
    def target_names_(self) -> list[Name]:
        """Names of the target domains."""
        return self.domains_[self.n_sources_ :]

    @property
    def targets_(self) -> dict[Name, dict[str, Any]]:
        """Results for every target, by its name."""
        warnings = list((getattr(self, "caution_", None) or {}).get("reasons", []))
        keys = "shares", "shares_interval", "expected_error", "warnings"
        lists = self.target_shares_, self.target_shares_interval_, self.expected_error_
        results = [dict(zip(keys, (*parts, warnings), strict=True)) for parts in zip(*lists, strict=True)]
        return dict(zip(self.target_names_, results, strict=True))

    def find_target(self, target: Name | None = None) -> int:
        """Return the position of a domain; the name may be left out if there is one target."""
        names = self.target_names_
        if target is None and len(names) == 1:
            return self.n_sources_
        if target not in self.domains_:
            seen = "name one of them: target=" if target is None else f"target={target!r} is not among them: "
            raise ValueError(f"the model has {len(names)} targets; {seen}{', '.join(map(repr, names))}")
        return self.domains_.index(target)

    def find_domains(self, target: Name | None, sample_domain: Any, n: int) -> np.ndarray:
        """Return the position of the domain of each of n rows."""
        if sample_domain is None:
            return np.full(n, self.find_target(target))
        if target is not None:
            raise ValueError("pass either target or sample_domain, not both")
        numbers = check_domain_numbers(sample_domain, n).tolist()
        unknown = sorted(set(numbers) - set(self.domains_))
        if unknown:
            raise ValueError(
                f"sample_domain holds {unknown[:5]}, but fit saw only the domains {self.domains_}; "
                "leave it out for rows of the target"
            )
        return np.array([self.domains_.index(number) for number in numbers], dtype=int)

    def take_by_domain(
        self, values: np.ndarray, target: Name | None, sample_domain: Any, n: int
    ) -> np.ndarray:
        """Return the row of `values` that belongs to the domain of each of n rows.

        Without targets, and where no domain is named, the mean over the sources by their sizes.
        """
        if target is None and sample_domain is None and not self.target_names_:
            sizes = np.array(self.domain_sizes_)
            return np.tile(sizes @ values / sizes.sum(), (n, 1))
        return values[self.find_domains(target, sample_domain, n)]

    def fill_unknown(self, p: np.ndarray, X: Rows, target: Name | None = None) -> np.ndarray:
        """Give sparse rows without any known feature the class shares of their target as probabilities.

        Where those were not estimated, they are the shares of the source.
        """
        i = self.find_target(target) - self.n_sources_ if self.target_names_ else -1
        shares = self.target_shares_[i] if i >= 0 else None
        p[np.diff(X.indptr) == 0] = self.source_shares_ if shares is None else list(shares.values())
        return p

    def _keep_targets(self, targets: Sequence[Target] | None) -> None:
        """Keep the results of every target; None where they were not aligned."""
        none = [None] * len(self.target_names_)
        self.target_shares_, self.target_shares_interval_, self.expected_error_ = [*none], [*none], [*none]
        self.prior_ = np.zeros_like(self.intercept_)
        for i, target in enumerate(targets or []):
            self._keep_target(i, target)

    def _keep_target(self, i: int, target: Target) -> None:
        labels, intervals = self.classes_.tolist(), target.shares.interval().tolist()
        self.target_shares_[i] = dict(zip(labels, target.shares.mean.tolist(), strict=True))
        self.target_shares_interval_[i] = dict(zip(labels, map(tuple, intervals), strict=True))
        expected = target.expected_error
        self.expected_error_[i] = None if expected is None else expected.describe()
        self.prior_[self.n_sources_ + i] = target.prior

    def align(self, X: Rows, *, target: Name | None = None) -> Any:
        """Return a copy with a target's class shares, threshold and expected error set from a batch.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            Rows of one target, or some that were drawn at random: 200 or more.
        target : str, optional
            Its name; needed where `fit` had several.
        """
        if self.batch_ is None:
            raise ValueError(
                'a batch is aligned by its class shares: fit with center="classes" and a target that it can '
                "adapt to"
            )
        k, aligned = self.find_target(target), copy(self)
        rows = np.sort(check_random_state(0).permutation(X.shape[0])[:BATCH_ROWS])
        scores, first_scores = self._score_both(X[rows], k)
        found = self.batch_.describe(k - self.n_sources_, scores, first_scores, self.temperature_)
        for name in ("intercept_", "prior_", "target_shares_", "target_shares_interval_", "expected_error_"):
            setattr(aligned, name, copy(getattr(self, name)))
        aligned.intercept_[k] += found.shift
        aligned._keep_target(k - self.n_sources_, found)
        return aligned

    def _score_both(self, X: Rows, k: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return scores of rows of the domain at position k, and those by the source alone."""
        raise NotImplementedError
