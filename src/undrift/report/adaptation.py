"""The report of an adaptation: its sections as plain data, and the charts beside them."""

from __future__ import annotations

import platform
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._version import __version__
from ..inputs import Column, on_cluster, spell_label
from ..method import MSDAClassifier, Readings, is_open, list_heard
from ..results import (
    Score,
    confuse,
    confuse_labels,
    find_suspects,
    list_mistakes,
    measure_classes,
    pick_shares,
    rate_classes,
)
from ..text import TextAdapter, count_words, unseen_share
from .charts import (
    MOST_CLASSES,
    CoveragePoint,
    chart_coverage,
    chart_errors,
    chart_shares,
    chart_words,
    draw_idea,
)
from .data import DomainRows, PredictedRows, ReportData, shares
from .evidence import difference_terms, explain_changes, find_idea, measure_dullness
from .packed import make_decks, pack_sentence_model
from .page import Report
from .svg import N_COLOURS
from .verdict import Verdict, judge, write_percent

LEAST_MEASURED = 10  # labelled rows that a point of the curve stands for
COVERAGES = np.arange(1, 21) / 20
MOST_MISTAKES = 12  # pairs of classes that are listed
CONFUSION_DIGITS = 5
DOUBTED = 0.1  # probability of a label of the source below which it is shown
MOST_SUSPECTS, SNIPPET = 20, 160  # such labels, and characters of each text
N_CHIPS = 6  # words on the first screen


def adaptation_report(
    model: TextAdapter | MSDAClassifier,
    source: Any,
    y: Column,
    target: Any,
    *,
    truth: Column | None = None,
    terms: Sequence[str] | None = None,
    names: tuple[str, str] = ("source", "target"),
    max_rows: int = 3_000,
) -> Report:
    """Report a fitted estimator on the data it was fitted on.

    Parameters
    ----------
    model : TextAdapter or MSDAClassifier
        Fitted on `source`, `y` and `target`.
    source, target : sequence of str, or matrix of shape (n, d)
        Documents for a TextAdapter, rows for an MSDAClassifier.
    y, truth : sequence
        Labels of the source, None where there is none; and, to score with, of the target.
    terms : sequence of str, optional
        Names of the columns, for an MSDAClassifier.
    names : (str, str), default=("source", "target")
        Names of the two domains.
    max_rows : int, default=3000
        Target rows to predict and show; of more a random sample is taken, and the page says so.

    Returns
    -------
    Report
        For one target; ``undrift adapt --report`` shows several.

    Examples
    --------
    >>> from undrift import TextAdapter, adaptation_report
    >>> from undrift.datasets import make_reviews
    >>> books, kitchen = make_reviews(60, domains=("books", "kitchen"), random_state=0).domains.values()
    >>> adapter = TextAdapter().fit(books.texts, books.y, kitchen.texts)
    >>> adaptation_report(adapter, books.texts, books.y, kitchen.texts, names=("books", "kitchen"))
    <Report: books → kitchen>
    """
    if not isinstance(model, TextAdapter | MSDAClassifier):
        raise TypeError(f"a report is of a TextAdapter or an MSDAClassifier, got {type(model).__name__}")
    check_is_fitted(model)
    n_targets = len(model.target_shares_)
    if n_targets > 1 or isinstance(target, Mapping):
        raise ValueError(
            f"adaptation_report shows one target, given without a name; the model has {n_targets}: "
            "`undrift adapt --report` shows several"
        )
    labels, known = _to_list(y), None if truth is None else _to_list(truth)
    if isinstance(model, TextAdapter):
        texts: list[Any] = [list(source), list(target)]
        rows = [model.vectorizer_.transform(documents) for documents in texts]
        classifier, terms, vectorizer = model.classifier_, model.terms_, model.vectorizer_
        tokens = vectorizer.tokens_
        words = [count_words(documents, tokens) for documents in texts]
        unseen = unseen_share(words[1], words[0])
    else:
        rows, texts, classifier, vectorizer, unseen = [source, target], [None, None], model, None, None
        terms = list(terms) if terms is not None else [f"column {j}" for j in range(rows[0].shape[1])]
    for name, column, domain in (("y", labels, rows[0]), ("truth", known, rows[1])):
        if column is not None and len(column) != domain.shape[0]:
            raise ValueError(
                f"{name} has {len(column)} entries for {domain.shape[0]} rows; give one for each"
            )
    sources = [DomainRows(names[0], rows[0], texts[0], labels)]
    targets = [_sample_rows(DomainRows(names[1], rows[1], texts[1], known, unseen_share=unseen), max_rows)]
    return report_adaptation(ReportData(classifier, terms, sources, targets, vectorizer=vectorizer))


def _sample_rows(domain: DomainRows, max_rows: int) -> DomainRows:
    """Draw `max_rows` rows of a domain at random, where it has more."""
    n = len(domain)
    if n <= max_rows:
        return domain
    keep = np.sort(np.random.default_rng(0).choice(n, max_rows, replace=False)).tolist()
    texts, labels = (
        None if column is None else [column[i] for i in keep] for column in (domain.documents, domain.labels)
    )
    return replace(domain, X=domain.X[keep], documents=texts, labels=labels, n_rows=n)


def _to_list(values: Any) -> list[Any]:
    return values.tolist() if hasattr(values, "tolist") else list(values)


def report_adaptation(given: ReportData) -> Report:
    """Return the report of an adaptation."""
    facts, classes, targets = given.facts, given.classes, given.targets
    verdict, decks, difference = judge(given), make_decks(given), difference_terms(given)
    idea, coverage = find_idea(given, difference), measure_coverage(given, verdict)
    source, target = (
        " + ".join(domain.name for domain in domains) for domains in (given.sources, given.target_rows)
    )
    doubts = [doubt for known in given.classifier.targets_.values() for doubt in known["warnings"]]
    plain = [word for word in difference.terms if measure_dullness(word.term)[0] < len(word.term.split(" "))]
    domains = [describe_domain(rows, "source") for rows in given.sources]
    domains += [describe_domain(each.rows, "target") | _describe_shares(each) for each in targets]
    data = {
        "kind": "adaptation",
        "title": f"{source} → {target}",
        "source_name": source,
        "target_name": target,
        "classes": classes,
        "verdict": verdict,
        "settings": {name: float(value) for name, value in given.classifier.best_params_.items()},
        "seconds": facts.seconds,
        "warnings": facts.warnings,
        "notes": list(dict.fromkeys([*doubts, *facts.notes])),
        "readings": [
            tell_readings(each.name, each.known.readings if each.known else [], each.are_shares_given)
            for each in targets
        ],
        "teachers": facts.teachers or describe_teachers(given),
        "taught_by": facts.taught_by,  # labels that the baseline is trained on
        "domains": domains,
        "by_class": [describe_classes(each) for each in targets],
        "decks": decks,
        "difference": difference,
        "chips": plain[:N_CHIPS],
        "idea": idea,
        "changes": explain_changes(given),
        "sentence": pack_sentence_model(given),
        "coverage": coverage,
        "suspects": list_suspects(given),
        "reproduce": record_run(facts.command, given.classifier.random_state, facts.files),
        "next": verdict.advise(len(decks["estimate"]) if decks else 0),
    }
    charts = {
        "errors": chart_errors(verdict, targets),
        "shares": [chart_shares(each, i) for i, each in enumerate(targets)],
        "all_shares": [chart_shares(each, i, len(classes)) for i, each in enumerate(targets)]
        if len(classes) > MOST_CLASSES
        else [],
        "has_colours": len(classes) <= N_COLOURS,
        "words": chart_words(difference, classes) if difference.terms else None,
        "idea": draw_idea(idea, classes) if idea else None,
        "coverage": chart_coverage(coverage),
        "files": [list(file.values()) for file in facts.files],
        "domains": [_list_cells(rows) for rows in domains],
    }
    return Report(data, charts)


def tell_readings(name: str, readings: Readings, are_shares_given: bool = False) -> dict[str, object]:
    """Tell the readings of a target that have some weight, the heaviest first, and whether they differ."""
    heard = list_heard(readings)
    told = [{**reading, "told": few} for reading, few in zip(heard, pick_shares(heard), strict=True)]
    return {"name": name, "readings": told, "differ": not are_shares_given and is_open(readings)}


def describe_teachers(given: ReportData) -> list[str]:
    """Say of every target that it had a teacher, and how good its labels look."""
    sentences = []
    for name, known in given.classifier.targets_.items():
        if "teacher_noise" not in known:
            continue
        noise = known["teacher_noise"]
        of = noise if isinstance(noise, dict) else {"": noise}
        share = ", ".join(f"{who} {write_percent(part)}".strip() for who, part in of.items())
        sentences.append(f"{name} had a teacher: {share} of its labels look exchanged at random.")
    return sentences


def describe_domain(rows: DomainRows, role: str) -> dict[str, object]:
    """Describe rows, labels and vocabulary of a domain."""
    return {
        "name": rows.name,
        "role": role,
        "n_rows": rows.size,
        "n_sampled": len(rows) if rows.n_rows else None,  # rows that are reported on, where these are not all
        "n_labelled": rows.n_labelled,
        "n_terms": None if rows.read else int(np.count_nonzero(shares(rows.X))),  # None in another language
        "unseen_share": rows.unseen_share,
    }


def _list_cells(domain: Mapping[str, object]) -> list[object]:
    """Return the row of a domain in the table; of what is not known, nothing."""
    *cells, unseen = (
        domain[name] for name in ("name", "role", "n_rows", "n_labelled", "n_terms", "unseen_share")
    )
    cells.append(None if unseen is None else f"{unseen:.1%}")
    return ["" if cell is None else cell for cell in cells]


def _describe_shares(target: PredictedRows) -> dict[str, object]:
    """Describe the class shares of a target: predicted, known and those of its labels; its expected error."""
    known = target.known
    return {
        "are_shares_given": target.are_shares_given,
        "predicted_shares": target.predicted_shares,
        "labelled_shares": target.labelled_shares,
        "target_shares": known and known.shares,
        "target_shares_interval": known and known.intervals,
        "expected_error": known and known.expected,
    }


def describe_classes(target: PredictedRows) -> dict[str, object]:
    """Describe the errors of a target by class: expected, and measured where there are labels."""
    classes, known = target.classes, target.is_scored
    expected = confuse(target.P, target.codes)
    measured = rates = None
    if known.any():
        labelled = target.truth[known], target.codes[known], target.weight[known]
        measured, rates = confuse_labels(*labelled, classes), measure_classes(*labelled, classes)
    shown = expected if measured is None else measured
    return {
        "name": target.name,
        "n_labelled": int(known.sum()),
        "predicted": np.bincount(target.codes, minlength=len(classes)).tolist(),  # rows of every class
        "expected": target.known.by_class if target.known else rate_classes(expected, classes),
        "measured": rates,
        "confusion": {  # shares of rows
            "expected": expected.round(CONFUSION_DIGITS).tolist(),
            "measured": None if measured is None else measured.round(CONFUSION_DIGITS).tolist(),
        },
        "basis": "expected" if measured is None else "measured",
        "mistakes": list_mistakes(shown, classes, MOST_MISTAKES),
    }


def measure_coverage(given: ReportData, verdict: Verdict) -> list[CoveragePoint]:
    """Return the error, measured and expected, among growing shares of the surest predictions."""
    p, codes, truth, weight = (
        np.concatenate([getattr(target, name) for target in given.targets])
        for name in ("certainty", "codes", "truth", "weight")
    )
    expected = verdict.errors.after if verdict.errors and verdict.is_cross_fitted else verdict.expected
    # the expected error includes the loss from one domain to the other, probabilities do not
    scale = expected.error / max(float(np.mean(1 - p)), 1e-9) if expected else 1.0
    order = np.argsort(-p, kind="stable")
    points = []
    for coverage in COVERAGES.tolist():
        kept = order[: max(1, round(coverage * len(p)))]
        known = kept[truth[kept] >= 0]
        is_enough = len(known) >= LEAST_MEASURED
        measured = Score.measure(codes[known] != truth[known], weight[known]) if is_enough else None
        error = min(1.0, scale * float(np.mean(1 - p[kept])))
        points.append(CoveragePoint(coverage, float(p[kept[-1]]), error, measured))
    return points


def list_suspects(given: ReportData) -> dict[str, object] | None:
    """List labels of the sources that other labels contradict, and count them.

    Models that have not seen a label find it improbable. None where labels came from elsewhere, or the rows
    are not here.
    """
    memory = given.classifier.memory_
    if memory is None or not memory.facts.has_source:
        return None
    suspects = list[tuple[float, dict[str, object]]]()
    for source in given.sources:
        if source.documents is None or on_cluster(source.X) or len(source.documents) != len(source):
            return None
        places = np.flatnonzero(source.known)
        y, p = given.classifier.predict_held_out(source.X[places])
        for i in find_suspects(y.tolist(), p, given.classes).tolist():
            row, label, best = int(places[i]), spell_label(y[i]), int(p[i].argmax())
            own = float(p[i, given.classes.index(label)])
            if own > DOUBTED:
                break
            suspect = {
                "source": source.name,
                "row": row + 1,
                "label": label,
                "suggested": given.classes[best],
                "probability": float(p[i, best]),  # of the suggested class
                "own": own,  # of the label
                "text": textwrap.shorten(source.documents[row], SNIPPET, placeholder=" …"),
            }
            suspects.append((own, suspect))
    suspects.sort(key=lambda pair: pair[0])
    n_labels = sum(int(source.known.sum()) for source in given.sources)
    return {"n": len(suspects), "of": n_labels, "rows": [suspect for _, suspect in suspects[:MOST_SUSPECTS]]}


def record_run(
    command: str | None, seed: object = None, files: Sequence[Mapping[str, object]] = ()
) -> dict[str, object]:
    """Describe a run that ends now: command, settings, files, and the versions of what it used."""
    versions = {"undrift": __version__, "Python": platform.python_version()}
    return {
        "command": command,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seed": seed if seed is None or isinstance(seed, int) else str(seed),
        "versions": versions | {name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        "files": files,
    }
