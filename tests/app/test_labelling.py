"""A labelling session: what it asks, saves, learns and measures."""

import copy
import errno

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from tests.app.conftest import QUESTIONS
from tests.helpers.review_files import read_csv, write_csv
from undrift import save_model
from undrift.app import update
from undrift.app.job import LabelJob, ignore_stage
from undrift.app.label import finish_session
from undrift.app.labelling import LabelSession, advise, set_goal
from undrift.results import Score, measure_margins


@pytest.fixture
def start(adapted, tmp_path):
    """Start a session on the same file of labels, as often as asked."""
    adapter, texts, _ = adapted
    return lambda texts=texts, **options: LabelSession(adapter, texts, tmp_path / "labels.csv", **options)


def label_rows(session, truth, n):
    rows = []
    for _ in range(n):
        found = session.next_row()
        rows.append(found["row"])
        session.answer(found["row"], truth[found["text"]])
    return rows


def test_every_answer_is_in_the_file_at_once_and_other_lines_stay(start, adapted):
    session, truth = start(), adapted[2]
    for n in range(1, 4):
        label_rows(session, truth, 1)
        lines = read_csv(session.file.path)
        assert len(lines) == n
    assert [line["label"] for line in lines] == [truth[line["text"]] for line in lines]
    assert {(line["sampled"], line["weight"]) for line in lines} == {("predictions", "")}
    with open(session.file.path, "a", encoding="utf-8") as file:
        file.write("a text of another file,positive,estimate,1\n")
    again = start()
    label_rows(again, truth, 1)
    assert len(again.answers) == 4
    assert read_csv(again.file.path)[-1]["text"] == "a text of another file"
    session = start()
    session.file.path.write_text("text,label\nmine,positive\n", encoding="utf-8")
    with pytest.raises(ValueError, match="another program changed"):
        label_rows(session, truth, 1)
    assert "mine" in session.file.path.read_text()


def test_texts_of_any_kind_are_read_again(start):
    texts = ["one\rtwo", 'a "quoted", text\n', "plain", "=1+1\r\n"]
    session = start(texts)
    label_rows(session, dict.fromkeys(texts, "negative"), 3)
    assert start(texts).answers.keys() == session.answers.keys()


def test_a_session_goes_on_where_it_was(start, adapted):
    first = start()
    rows = label_rows(first, adapted[2], 12)
    again = start()
    assert [given.label for given in again.answers.values()] == [g.label for g in first.answers.values()]
    weights = np.array([[given.weight for given in own.answers.values()] for own in (first, again)])
    assert_allclose(weights[1], weights[0] / weights[0, QUESTIONS:].mean(), rtol=1e-5)
    assert again.state()["error"] == pytest.approx(error_by_hand(again) | {"n": 7, "measured": True})
    assert again.next_row()["row"] not in rows
    assert not again.next_row()["is_question"]


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


def test_questions_come_first_and_every_other_row_measures(start, adapted):
    session, truth = start(), adapted[2]
    asked = []
    for left in range(QUESTIONS, 0, -1):
        assert session.state()["n_questions"] == left
        found = session.next_row()
        assert found["is_question"]
        asked.append(found["row"])
        session.answer(found["row"], truth[found["text"]])
    X = session._X[session._compared]
    assert asked == [session._compared[i] for i in session._base.ask(X, QUESTIONS, random_state=0)]
    assert session.state()["error"]["measured"] is False
    label_rows(session, truth, 6)
    assert session.state()["error"]["n"] == 6
    lines = read_csv(session.file.path)
    assert [line["sampled"] for line in lines] == ["predictions"] * 5 + ["estimate"] * 6
    weights = [float(line["weight"]) for line in lines[5:]]
    assert_allclose(weights, [given.weight for given in session.answers.values()][5:], rtol=1e-5)
    assert_allclose(list(session.state()["error"].values())[:3], list(error_by_hand(session).values())[:3])


def error_by_hand(session):
    """The error by public methods alone: each row is predicted by a model without its fold."""
    rows, drawn = list(session.answers), [r for r, a in session.answers.items() if a.weight]
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
    n, N = len(drawn), len(session._compared) - QUESTIONS
    factors = (N - n) / (N - np.arange(1, n + 1))
    weight = 1 + factors * (np.array([session.answers[row].weight for row in drawn]) - 1)
    return Score.measure(np.array(wrong), weight).to_dict()


def test_undo_takes_back_label_file_and_error(start, adapted):
    session, truth = start(), adapted[2]
    label_rows(session, truth, QUESTIONS + 3)
    before = session.state()["error"]["n"], session.file.path.read_text()
    (row,) = label_rows(session, truth, 1)
    assert session.undo() == row
    assert (session.state()["error"]["n"], session.file.path.read_text()) == before
    assert session.next_row()["row"] == row
    for _ in range(QUESTIONS + 3):
        session.undo()
    assert session.undo() is None
    assert read_csv(session.file.path) == []
    assert not session.state()["error"]["measured"]


def test_skipped_rows_and_tabs(start):
    session = start()
    row = session.next_row()["row"]
    session.answer(row, None)
    assert session.next_row()["row"] != row
    assert not session.file.path.exists()
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
    saved, state = session.file.path.read_text(), session.state()
    row = session.next_row()["row"]
    fail("os.replace", OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(OSError, match="No space"):
        session.answer(row, "positive")
    with pytest.raises(OSError, match="No space"):
        session.undo()
    assert (session.file.path.read_text(), session.state()) == (saved, state)
    monkeypatch.undo()
    session.answer(row, "positive")
    assert [line["label"] for line in read_csv(session.file.path)] == ["negative", "positive"]


def test_a_file_that_holds_something_else_is_refused(start, tmp_path):
    for content, said in (
        ("text,label\nx,maybe\n", "row 1 has the label 'maybe'"),
        ("a\n1\n", "no column 'text'"),
    ):
        (tmp_path / "labels.csv").write_text(content)
        with pytest.raises(ValueError, match=said):
            start()


def test_only_rows_of_the_file_and_classes_are_answers(start):
    session = start()
    row = session.next_row()["row"]
    bad_rows = [(bad, "positive", "row is a number") for bad in (-1, 10**6, "0", None, True, 0.0)]
    said = "the label is one of negative, positive"
    for given, label, fault in [*bad_rows, *((row, bad, said) for bad in ("maybe", 1, ["positive"], "<b>"))]:
        with pytest.raises(ValueError, match=fault):
            session.answer(given, label)
    assert not session.file.path.exists()


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
    adapter.classifier_.memory_ = None
    session = LabelSession(adapter, adapted[1], start().file.path)
    label_rows(session, adapted[2], 6)
    state = session.state()
    assert not session.can_learn
    assert (state["n_learnt"], state["changed"]["n"], state["error"]["n"]) == (0, 0, 6)


@pytest.mark.parametrize(
    ("expected", "n_rows", "goal"),
    [(0.25, 500, 80), (0.2, 500, 70), (0.01, 500, 30), (0.5, 500, 100), (0.2, 12, 12)],
)
def test_the_goal_measures_to_ten_points(expected, n_rows, goal):
    assert set_goal(Score(expected, 0.0, 1.0), n_rows) == goal
    low, high = stats.binomtest(round(goal * expected), goal).proportion_ci(method="wilson")
    assert (high - low) / 2 < 0.105 or n_rows < 30


def test_the_goal_does_not_move_and_the_advice_says_what_more_labels_add(start, adapted):
    session, truth = start(), adapted[2]
    goal = session.goal
    assert session.state()["advice"].startswith("5 questions to decide between the stories.")
    label_rows(session, truth, QUESTIONS)
    assert session.state()["advice"] == f"Label {goal} rows: each measures the error and teaches."
    for n in range(1, 7):
        label_rows(session, truth, 1)
        assert session.state()["goal"] == goal
        assert session.state()["advice"].startswith(f"{n} of {goal} rows are labelled. Go on to {goal}")
    assert start().goal == goal, "nor with another session"
    said = advise(Score(0.2, 0.1, 0.3, 60), 60)
    assert said.startswith(
        "The goal of 60 rows is reached: you can stop. 20 more would narrow the interval by 1.3"
    )


def test_labels_compare_the_model_before_and_after(start, adapted):
    session, truth = start(), adapted[2]
    rows = label_rows(session, truth, QUESTIONS + 12)[QUESTIONS:]
    state, (adapter, texts, _) = session.state(), adapted
    labels = np.array([truth[texts[row]] for row in rows])
    first = adapter.predict([texts[row] for row in rows]) != labels
    assert state["before"]["error"] == pytest.approx(np.average(first, weights=session._weigh(rows)))
    gain = state["difference"]
    assert gain["gain"] == pytest.approx(state["before"]["error"] - state["error"]["error"])
    assert gain["low"] <= gain["gain"] <= gain["high"]
    assert state["expected"] == {**state["expected"], "measured": False}
    assert sum(own["n"] for own in state["by_class"]["measured"].values()) == 12
    wrong = sum(pair["share"] for pair in state["mistakes"])
    assert wrong == pytest.approx(state["error"]["error"])


def test_labels_of_another_file_count_by_the_rows_that_they_stand_for(start, adapted):
    texts, truth = adapted[1], adapted[2]
    lines = [
        f'"{text}",{truth[text]},estimate,{weight}'
        for text, weight in zip(texts[:8], [9, 3] * 4, strict=True)
    ]
    session = start()
    session.file.path.write_text("text,label,sampled,weight\n" + "\n".join(lines) + "\n")
    session = start()
    assert [given.weight for given in session.answers.values()] == pytest.approx([1.5, 0.5] * 4)
    assert session.state()["error"]["n"] == 8
    assert session._questions == [], "five labels have settled it"


def test_finishing_writes_the_files_and_measures_nothing_again(adapted, tmp_path, spy):
    adapter, texts, truth = adapted
    save_model(adapter, tmp_path / "k.model", updatable=True)
    write_csv(tmp_path / "k.csv", {"text": texts})
    labels = {"text": texts[:24], "label": [truth[text] for text in texts[:24]]}
    path = write_csv(tmp_path / "k.labels.csv", labels)
    session = LabelSession(adapter, texts, path)
    job = LabelJob(model=tmp_path / "k.model", input=tmp_path / "k.csv")
    calls = spy(update, "cross_fit")
    lines = finish_session(job, session, ignore_stage)
    assert lines[0].startswith("Error, measured on 24 labels: ")
    assert calls == []
    assert {path.name for path in tmp_path.iterdir()} >= {"k-labelled.model", "k.predictions.csv"}


def test_doubtful_rows_have_the_smallest_margins():
    P = np.array([[0.5, 0.5, 0.0], [0.4, 0.3, 0.3], [0.9, 0.05, 0.05], [0.48, 0.1, 0.42]])
    assert_allclose(measure_margins(P), [0.0, 0.1, 0.85, 0.06])
    assert_allclose(measure_margins(np.array([[0.3, 0.7]])), [0.4])


def test_of_several_classes_doubtful_rows_are_drawn_more_often(adapt_topics, tmp_path):
    adapter, texts, _ = adapt_topics(10, 250)
    session = LabelSession(adapter, texts, tmp_path / "labels.csv")
    session._questions = []
    rows = [session.next_row(tab=str(n))["row"] for n in range(60)]
    assert len(set(rows)) == 60, "tabs get different rows"
    doubts = 1 - adapter.predict_proba(texts).max(axis=1)
    assert doubts[rows].mean() > doubts.mean()
    weights = [session._drawn[row] for row in rows]
    assert np.corrcoef(weights, doubts[rows])[0, 1] < -0.5
    assert max(weights) <= 2 + 1e-9, "half of the draws take all rows alike"


def test_every_answer_weighs_the_readings(start, adapted):
    session, truth = start(), adapted[2]
    before = session.state()["readings"]
    assert len(before) > 1
    assert sum(reading["weight"] for reading in before) == pytest.approx(1)
    label_rows(session, truth, 2)
    after = session.state()["readings"]
    rows = list(session.answers)
    labels = np.array([session.answers[row].label for row in rows], dtype=object)
    X = adapted[0].vectorizer_.transform([session.documents[row] for row in rows])
    weighed = {own["name"]: own["weight"] for own in session._base.weigh(X, labels)}
    assert {own["name"]: own["weight"] for own in after} == pytest.approx(weighed)
    assert [own["weight"] for own in after] == sorted(weighed.values(), reverse=True)
    assert {own["name"]: own["weight"] for own in before} != weighed
