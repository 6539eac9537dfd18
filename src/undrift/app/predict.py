"""Apply a saved model to new rows: every file is a target of its own, with its class shares and threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Rows as Matrix
from ..errors import count, warn
from ..method import predict_codes
from ..scoring import describe_expected, describe_shares, list_shares
from ..text import DistilledText, TextAdapter, load_adapter, load_text_model
from .domains import find_text, open_rows, refuse_overwriting
from .drift import N_BATCH, check_drift, find_reference
from .job import Job, ShowStage, ignore_stage
from .tables import Table, TableError, list_texts, with_added, write_table
from .terminal import describe_file

LEAST_KNOWN = 200  # rows with a known term from which a file is aligned
N_SAMPLED = 1500  # rows that stand for a file
MOST_GROUPS = 200
MOST_LABELLED = 0.5  # of the rows with a label, from which a file is the one that they are of

TextModel = TextAdapter | DistilledText


def open_model(job: Job, path: Path, load: Any = load_adapter) -> tuple[Any, str, tuple[str, ...]]:
    """Load the model of a job; return it, the name of its target, and the columns of the text of a file."""
    model = load(job.model)
    if job.device is not None and "device" in model.classifier_.get_params():  # not if it is distilled
        model.classifier_.set_params(device=job.device)
    names = model.classifier_.target_names_
    listed = ", ".join(map(str, names))
    if job.domain is None and len(names) != 1:
        raise ValueError(f"the model has {len(names)} target domains: choose one with --domain: {listed}")
    if job.domain is not None and job.domain not in names:
        raise ValueError(f"the model has no target domain {job.domain!r}: its target domains are {listed}")
    return model, job.domain or names[0], choose_text(model, job, path)


def choose_text(model: TextModel, job: Job, path: Path) -> tuple[str, ...]:
    """Return the columns of the text: those given, those of the model, or the only one in the file."""
    return tuple(job.text or model.facts_.get("text_columns", ())) or find_text(path, job.reading, ())


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of some rows of a target."""

    classes: Sequence[Any]
    codes: np.ndarray  # (n,) of the predicted classes
    score: np.ndarray  # (n,)
    probabilities: np.ndarray  # (n, n_classes)
    n_known: np.ndarray  # (n,) terms of every row that the model knows
    student: Any = ()  # (n,) labels without the teacher's scores, if there is a teacher
    student_score: Any = ()  # (n,)
    disagrees: Any = ()  # (n,) whether the student's label is not the teacher's; None where that is silent

    @property
    def labels(self) -> list[Any]:
        """Predicted labels, those of doubtful rows among them."""
        return [self.classes[code] for code in self.codes]

    @property
    def probability(self) -> np.ndarray:
        """Probability of the predicted label, of shape (n,)."""
        return np.take_along_axis(self.probabilities, self.codes[:, None], axis=1)[:, 0]

    def columns(
        self, names: Sequence[str], min_confidence: float | None = None, domain: str | None = None
    ) -> dict[str, Any]:
        """Return the columns to add; predictions that are doubtful or of no known term are left empty."""
        is_empty = (self.probability < (min_confidence or 0)) | (self.n_known == 0)
        predicted = np.array(self.labels, dtype=object)  # whole numbers stay so beside empty cells
        predicted[is_empty] = None
        values: dict[str, Any] = {
            "prediction": predicted,
            "score": self.score.tolist(),
            "probability": self.probability.tolist(),
            "domain": [domain] * len(self.codes),
            "known_terms": self.n_known.tolist(),
            "teacher_disagrees": self.disagrees,
        }
        for label, column in zip(self.classes, self.probabilities.T.tolist(), strict=True):
            values[f"p_{label}"] = column
        return {name: values[name] for name in names}

    def count(self, min_confidence: float | None = None) -> np.ndarray:
        """Count the rows of every predicted class, then the doubtful ones, then those of no known term.

        Rows of no known term have no prediction.
        """
        is_known = self.n_known > 0
        per_class = np.bincount(self.codes[is_known], minlength=len(self.classes))
        is_doubtful = self.probability < (min_confidence or 0)
        return np.array([*per_class, (is_doubtful & is_known).sum(), (~is_known).sum()])


def list_added(
    job: Job, classes: Sequence[Any], *, has_domain: bool = False, has_known_terms: bool = False
) -> dict[str, set[Any]]:
    """Return the columns that predictions add, in order, and the type of each."""
    kinds: dict[str, set[Any]] = {"prediction": {type(classes[0])}, "score": {float}, "probability": {float}}
    kinds |= {f"p_{label}": {float} for label in classes} if job.probabilities else {}
    kinds |= {"domain": {str}} if has_domain else {}
    kinds |= {"teacher_disagrees": {bool}} if job.teacher else {}
    return kinds | ({"known_terms": {int}} if has_known_terms else {})


def predict_rows(classifier: Any, X: Matrix, target: str | None = None, scores: Any = None) -> Predictions:
    """Predict rows of a target, in one pass through the layers; numbers have six digits.

    `scores` are those of `decision_function`, if they are known.
    """
    if scores is None:
        scores = classifier.decision_function(X, target=target)
    probabilities = classifier.scores_to_proba(scores, target=target).astype(float)
    probabilities = classifier.fill_unknown(probabilities, X, target).round(6)
    scores = np.asarray(scores, dtype=float).reshape(X.shape[0], -1)
    labels, score = classifier.classes_.tolist(), np.round(scores.max(axis=1), 6)
    return Predictions(labels, predict_codes(scores), score, probabilities, np.diff(X.indptr))


def predict_taught(
    X: Matrix, said: np.ndarray, classifier: Any, target: str, scores: Any = None
) -> Predictions:
    """Predict rows of a target by student and teacher together; without a teacher, `said` has no column.

    `scores` are those of the student, if they are known.
    """
    student = predict_rows(classifier, X, target, scores)
    if not said.shape[1]:
        return student
    scores = classifier.decision_function(X, target=target, **name_said(said))
    both = predict_rows(classifier, X, target, scores)
    labels = np.array(student.labels, dtype=object)
    is_silent = np.array([label is None for label in said[:, 0]], dtype=bool)
    disagrees = np.where(is_silent, None, (labels != said[:, 0]) & (student.n_known > 0))
    return replace(both, student=labels, student_score=student.score, disagrees=disagrees)


def name_said(said: np.ndarray) -> dict[str, np.ndarray]:
    """Return what a teacher says of rows, by parameters of `decision_function`."""
    return dict(zip(("teacher", "teacher_confidence"), said.T, strict=False))


def join_predictions(parts: Sequence[Predictions], order: Any = slice(None)) -> Predictions:
    """Return the predictions of all parts, one after another or in another order."""
    names = [each.name for each in fields(Predictions)[1:] if len(getattr(parts[0], each.name))]
    joined = {name: np.concatenate([getattr(part, name) for part in parts])[order] for name in names}
    return replace(parts[0], **joined)


def run_predict(job: Job, show_stage: ShowStage = ignore_stage) -> dict[str, Any]:
    """Predict a file block by block, and return a summary."""
    model, target, text = open_model(job, job.input, load_text_model)
    reference = find_reference(model, target) if job.check else None
    batch = Sample(N_BATCH)
    refuse_overwriting(job.out, [job.input, job.model])
    table = open_rows(job.input, job.reading, [*text, *filter(None, [job.by])])
    table.require_rows()
    classes = model.classes_.tolist()
    added = list_added(job, classes, has_known_terms=True)
    kinds = with_added(table.path, table.kinds, added)
    groups = align_groups(job, model, target, table, text, show_stage)
    counts: Any = np.zeros(len(classes) + 2, dtype=int)
    with write_table(job.out, kinds) as write:
        for frame in table:
            documents = list_texts(frame, text)
            X = model.vectorizer_.transform(documents)
            predictions = _predict_groups(groups, _name_groups(job, frame), X, target)
            if reference is not None:
                batch.add(documents)
            write(frame.assign(**predictions.columns(list(added), job.min_confidence)))
            counts = counts + predictions.count(job.min_confidence)
            show_stage(f"predicting {table.path.name}", table.share_read)
    *per_class, n_doubtful, n_unknown = counts.tolist()
    summary: dict[str, Any] = {"input": str(job.input), "out": str(job.out)}
    summary |= {"rows": sum(per_class) + n_unknown, "bad_rows": table.n_bad, "unknown_rows": n_unknown}
    shares = [n / max(sum(per_class), 1) for n in per_class]
    summary["predicted_shares"] = dict(zip(map(str, classes), shares, strict=True))
    summary |= groups[None].describe(target)
    if job.by is not None:
        named = {name: group.describe(target) for name, group in groups.items() if name is not None}
        summary |= {"groups": named, "aligned": any(group["aligned"] for group in named.values())}
    if job.min_confidence is not None:
        summary["n_doubtful"] = n_doubtful
    if reference is not None:
        summary["check"] = check_drift(model, reference, batch.documents)
        for reason in summary["check"]["reasons"]:
            warn(reason)
    return summary


@dataclass(frozen=True)
class Group:
    """The classifier of a file, or of the rows with one value of a column."""

    classifier: Any
    reason: str | None = None  # why it predicts as fitted; None where it was aligned

    def describe(self, target: str) -> dict[str, Any]:
        """Return its class shares and expected error, ready for JSON."""
        return {
            "aligned": self.reason is None,
            "as_fitted_because": self.reason,
            **describe_shares(self.classifier, target),
        }


class Sample:
    """A random sample of documents, of bounded size."""

    def __init__(self, size: int) -> None:
        self.documents: list[str] = []
        self.n_rows, self._size = 0, size
        self._rng = np.random.default_rng(0)

    def add(self, documents: Sequence[str]) -> None:
        """Add documents; each has the same chance to stay."""
        for document in documents:
            self.n_rows += 1
            if len(self.documents) < self._size:
                self.documents.append(document)
            elif (place := int(self._rng.integers(self.n_rows))) < self._size:
                self.documents[place] = document


def _name_groups(job: Job, frame: Any) -> Sequence[str | None]:
    """Return the name of every row's group: its cell of the column that makes groups, else None."""
    return list_texts(frame, job.by) if job.by else [None] * len(frame)


def align_groups(
    job: Job, model: TextModel, target: str, table: Table, text: Sequence[str], show_stage: ShowStage
) -> dict[str | None, Group]:
    """Return the classifier of a file, and of every group of its rows if a column makes groups.

    Reads the file once. The classifier of the name None is that of the whole file.
    """
    if job.as_fitted:
        return {None: Group(model.classifier_, "--as-fitted")}
    if model.classifier_.batch_ is None:
        return {None: Group(model.classifier_, "the model is not aligned with its target")}
    samples: dict[str | None, Sample] = {}
    for frame in table:
        names = np.array(_name_groups(job, frame), dtype=object)
        documents = np.array(list_texts(frame, text), dtype=object)
        for name in dict.fromkeys(names.tolist()):
            samples.setdefault(name, Sample(N_SAMPLED)).add(documents[names == name].tolist())
        if len(samples) > MOST_GROUPS:
            raise TableError(
                f"{table.path}: column {job.by!r} has over {MOST_GROUPS} different values: is it the column "
                "of groups?"
            )
        show_stage(f"estimating class shares of {table.path.name}", table.share_read)
    groups = {name: align_sample(model, target, sample) for name, sample in samples.items()}
    return {None: Group(model.classifier_, "--as-fitted"), **groups}


def align_sample(model: TextModel, target: str, sample: Sample) -> Group:
    """Return the classifier that follows a sample of a file, or the one of the fit and a reason."""
    X = model.vectorizer_.transform(sample.documents)
    known = np.flatnonzero(np.diff(X.indptr) > 0)
    n_known = round(len(known) / max(len(sample.documents), 1) * sample.n_rows)
    if n_known < LEAST_KNOWN:
        reason = f"{n_known:,} rows have a known word, and {LEAST_KNOWN} are needed"
        return Group(model.classifier_, reason)
    if _holds_labelled(model.classifier_, target, X, len(sample.documents) / sample.n_rows):
        return Group(model.classifier_, "labels of its rows were learnt, and have set the threshold")
    aligned = model.classifier_.align(X[known], target=target)
    expected = aligned.targets_[target]["expected_error"]
    if expected is None or expected["error"] is None:
        return Group(model.classifier_, "its class shares cannot be known from its words")
    return Group(aligned)


def _holds_labelled(classifier: Any, target: str, X: Matrix, share: float) -> bool:
    """Tell whether some rows of a file hold their portion of the rows with learnt labels."""
    state = getattr(classifier, "update_state_", None)
    if state is None or state.labelled is None:
        return False
    labelled, position = state.labelled, classifier.find_target(target)
    rows = np.flatnonzero((labelled.domain == position) & labelled.is_current)
    keys = set(state.list_keys(labelled.columns[0][rows], labelled.domain[rows]))
    found = keys & set(state.list_keys(X, np.full(X.shape[0], position)))
    return len(found) > MOST_LABELLED * share * len(keys)


def _predict_groups(
    groups: dict[str | None, Group], names: Sequence[str | None], X: Matrix, target: str
) -> Predictions:
    """Predict rows, each by the classifier of its group."""
    present = list(dict.fromkeys(names)) if len(groups) > 1 else [None]
    if len(present) == 1:
        return predict_rows(groups[present[0]].classifier, X, target)
    of_rows = np.array(names, dtype=object)
    places = [np.flatnonzero(of_rows == name) for name in present]
    parts = [
        predict_rows(groups[name].classifier, X[rows], target)
        for name, rows in zip(present, places, strict=True)
    ]
    return join_predictions(parts, np.argsort(np.concatenate(places)))


def describe_predict(summary: dict[str, Any]) -> Iterator[str]:
    """Say what was read, predicted and written, and what a check found."""
    n_rows, unknown = summary["rows"], summary["unknown_rows"]
    bad = f", {summary['bad_rows']:,} skipped as unreadable" if summary["bad_rows"] else ""
    yield f"Read {summary['input']}: {count(n_rows, 'row')}{bad}."
    if unknown:
        yield f"Left empty, as they have no known word: {unknown:,} of {n_rows:,} rows."
    if "n_doubtful" in summary:
        yield (
            f"Left empty as doubtful (--min-confidence): {summary['n_doubtful']:,} of {n_rows:,} predictions "
            f"for {summary['input']}."
        )
    predicted = f"Predicted: {list_shares(summary['predicted_shares'])}."
    if "groups" not in summary:
        yield f"{predicted} {_describe_group(summary)}"
    else:
        yield predicted
        yield from (f"{name}: {_describe_group(group)}" for name, group in summary["groups"].items())
    yield f"Wrote {describe_file(summary['out'])}."
    if "check" in summary:
        is_drift = summary["check"]["drifted"]
        same = "No drift: the rows are like those that the model was adapted to."
        yield "Drift: the rows are not what the model was adapted to." if is_drift else same


def _describe_group(group: dict[str, Any]) -> str:
    if not group["aligned"]:
        reason = group["as_fitted_because"]
        return "As fitted." if reason == "--as-fitted" else f"As fitted: {reason}."
    shares = list_shares(group["target_shares"], group["target_shares_interval"])
    return f"Class shares of this file: {shares}; {describe_expected(group['expected_error'])}."
