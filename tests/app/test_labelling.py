"""A labelling session: what it asks, saves, learns and measures."""

import copy
import csv
import errno

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from undrift.app.labelling import ESTIMATE, PREDICTIONS, LabelSession, advise


@pytest.fixture
def start(adapted, tmp_path):
    """Start a session on the same file of labels, as often as asked."""
    adapter, texts, _ = adapted
    return lambda texts=texts, **options: LabelSession(adapter, texts, tmp_path / "labels.csv", **options)


def label_rows(session, truth, n, purpose=ESTIMATE):
    rows = []
    for _ in range(n):
        found = session.next_row(purpose)
        rows.append(found["row"])
        session.answer(found["row"], truth[found["text"]], purpose)
    return rows


def read_file(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_answer_is_in_the_file_at_once_and_other_lines_stay(start, adapted):
    session, truth = start(), adapted[2]
    for n in range(1, 4):
        label_rows(session, truth, 1)
        lines = read_file(session.path)
        assert len(lines) == n
    assert [line["label"] for line in lines] == [truth[line["text"]] for line in lines]
    assert {line["sampled"] for line in lines} == {"estimate"}
    with open(session.path, "a", encoding="utf-8") as file:
        file.write("a text of another file,positive,estimate,1\n")
    again = start()
    label_rows(again, truth, 1)
    assert len(again.answers) == 4
    assert read_file(again.path)[-1]["text"] == "a text of another file"
    session = start()
    session.path.write_text("text,label\nmine,positive\n", encoding="utf-8")
    with pytest.raises(ValueError, match="another program changed"):
        label_rows(session, truth, 1)
    assert "mine" in session.path.read_text()


def test_a_session_goes_on_where_it_was(start, adapted):
    first = start()
    rows = label_rows(first, adapted[2], 7)
    again = start()
    assert again.answers == first.answers
    assert again.state()["error"] == pytest.approx(error_by_hand(again) | {"n": 7, "measured": True})
    assert again.next_row()["row"] not in rows


def test_labels_are_learnt_every_five_and_predictions_follow(start, adapted):
    session, truth = start(), adapted[2]
    rows = label_rows(session, truth, 4)
    assert session.state()["n_learnt"] == 0
    rows += label_rows(session, truth, 1)
    state = session.state()
    assert state["n_learnt"] == 5
    adapter, texts, _ = adapted
    X = adapter.vectorizer_.transform(texts)
    y = np.array([truth[texts[row]] for row in rows], dtype=object)
    learnt = copy.copy(adapter.classifier_).update(X[rows], y)
    before, after = (model.predict(X) for model in (adapter.classifier_, learnt))
    assert state["changed"]["n"] == (before != after).sum()
    for row in state["changed"]["rows"]:
        assert (before[row["row"]], after[row["row"]]) == (row["from"], row["to"])
    assert state["shares"] == pytest.approx({str(k): v for k, v in learnt.target_shares_[0].items()})
    assert adapter.classifier_.predict(X).tolist() == before.tolist(), "the model given is not changed"


def test_rows_drawn_at_random_alone_measure_the_error(start, adapted):
    session, truth = start(), adapted[2]
    label_rows(session, truth, 6)
    n = session.state()["error"]["n"]
    label_rows(session, truth, 3, PREDICTIONS)
    assert session.state()["error"]["n"] == n == 6
    lines = read_file(session.path)
    assert [line["sampled"] for line in lines] == ["estimate"] * 6 + ["predictions"] * 3
    assert_allclose(list(session.state()["error"].values())[:3], list(error_by_hand(session).values())[:3])


def error_by_hand(session):
    """The error by public methods alone: each row is predicted by a model without its fold."""
    rows, drawn = list(session.answers), [r for r, a in session.answers.items() if a.purpose == ESTIMATE]
    X = session.adapter.vectorizer_.transform(session.documents)
    learnt = rows[: session.state()["n_learnt"]]
    wrong = []
    for i, row in enumerate(drawn):
        rest = [r for r in learnt if r not in drawn or drawn.index(r) % 5 != i % 5]
        if row not in learnt:
            rest = learnt
        model = copy.copy(session.adapter.classifier_)
        if rest:
            model.update(X[rest], np.array([session.answers[r].label for r in rest], dtype=object))
        wrong.append(model.predict(X[[row]])[0] != session.answers[row].label)
    low, high = stats.binomtest(int(sum(wrong)), len(wrong)).proportion_ci(method="wilson")
    return {"error": np.mean(wrong), "low": low, "high": high}


def test_undo_takes_back_label_file_and_error(start, adapted):
    session, truth = start(), adapted[2]
    label_rows(session, truth, 3)
    before = session.state()["error"]["n"], session.path.read_text()
    (row,) = label_rows(session, truth, 1)
    assert session.undo() == row
    assert (session.state()["error"]["n"], session.path.read_text()) == before
    assert session.next_row()["row"] == row
    for _ in range(3):
        session.undo()
    assert session.undo() is None
    assert read_file(session.path) == []
    assert not session.state()["error"]["measured"]


def test_skipped_rows_and_tabs(start):
    session = start()
    row = session.next_row()["row"]
    session.answer(row, None)
    assert session.next_row()["row"] != row
    assert not session.path.exists()
    session.undo()
    assert session.next_row()["row"] == row
    session = start()
    one, two = (session.next_row(tab=tab)["row"] for tab in "ab")
    assert one != two
    assert session.next_row(tab="a")["row"] == one, "asking again changes nothing"
    session.answer(one, "negative", tab="a")
    session.answer(two, "positive", tab="b")
    assert session.undo("a") == one
    assert list(session.answers) == [two]
    session.answer(two, "negative", tab="b")
    session.undo("b")
    assert session.answers[two].label == "positive", "undo gives a replaced label back"


def test_a_full_disk_loses_nothing_and_claims_nothing(start, fail, monkeypatch):
    session = start()
    first = session.next_row()["row"]
    session.answer(first, "negative")
    saved, state = session.path.read_text(), session.state()
    row = session.next_row()["row"]
    fail("undrift.app.labelling.write_text_atomically", OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(OSError, match="No space"):
        session.answer(row, "positive")
    with pytest.raises(OSError, match="No space"):
        session.undo()
    assert (session.path.read_text(), session.state()) == (saved, state)
    monkeypatch.undo()
    session.answer(row, "positive")
    assert [line["label"] for line in read_file(session.path)] == ["negative", "positive"]


@pytest.mark.parametrize(
    ("content", "said"),
    [("text,label\nx,maybe\n", "row 1 has the label 'maybe'"), ("a,b\n1,2\n", "has no column 'text'")],
)
def test_a_file_that_holds_something_else_is_refused(start, tmp_path, content, said):
    (tmp_path / "labels.csv").write_text(content)
    with pytest.raises(ValueError, match=said):
        start()


@pytest.mark.parametrize("row", [-1, 10**6, "0", None, True, 0.0])
def test_only_rows_of_the_file_take_labels(start, row):
    with pytest.raises(ValueError, match="row is a number"):
        start().answer(row, "positive")


@pytest.mark.parametrize("label", ["maybe", 1, ["positive"], "<b>"])
def test_only_classes_are_labels(start, label):
    session = start()
    with pytest.raises(ValueError, match="the label is one of negative, positive"):
        session.answer(session.next_row()["row"], label)
    assert not session.path.exists()


def test_equal_and_empty_texts_are_shown_once_or_not_at_all(start, adapted):
    texts = [*adapted[1][:3], adapted[1][0].upper(), "  "]
    session = start(texts)
    rows = []
    while (row := session.next_row()["row"]) is not None:
        rows.append(row)
        session.answer(row, "negative")
    assert sorted(rows) == [0, 1, 2]
    assert session.next_row()["text"] is None


def test_a_model_that_cannot_learn_still_measures(start, adapted):
    adapter = copy.copy(adapted[0])
    adapter.classifier_ = copy.copy(adapter.classifier_)
    adapter.classifier_.update_state_ = None
    session = LabelSession(adapter, adapted[1], start().path)
    label_rows(session, adapted[2], 6)
    state = session.state()
    assert not session.can_learn
    assert (state["n_learnt"], state["changed"]["n"], state["error"]["n"]) == (0, 0, 6)


@pytest.mark.parametrize(("n", "wrong"), [(10, 2), (30, 6), (60, 0), (100, 25)])
def test_the_advice_reaches_the_width_that_it_names(n, wrong):
    """Follow it: after that many more labels with the same error, the interval is about that wide."""
    low, high = stats.binomtest(wrong, n).proportion_ci(method="wilson")
    said = advise({"error": wrong / n, "low": low, "high": high, "n": n}, can_learn=True)
    if "you can stop" in said:
        assert (high - low) / 2 <= 0.04
        return
    more, width = (float(part) for part in np.array(said.replace("±", " ").split())[[1, -2]])
    p, total = (wrong + 2) / (n + 4), n + more
    low, high = stats.binomtest(round(p * total), int(total)).proportion_ci(method="wilson")
    assert (high - low) / 2 == pytest.approx(width / 100, rel=0.25)
