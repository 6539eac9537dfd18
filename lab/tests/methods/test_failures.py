"""A source that cannot be learnt from fails its own tasks, and no others."""

import numpy as np
import pytest

from lab.tests.helpers.corpus import DOMAINS, PLAN, write_corpus
from lab.tests.runner.test_run import of_kind
from undrift_lab.corpora.corpus import Corpus, Domain
from undrift_lab.methods import msda
from undrift_lab.methods.svm import check_source
from undrift_lab.plan import load_plan
from undrift_lab.runner import Request, run

NOT_TO_BOOKS = ["books->*", "dvd->toys", "toys->dvd"]  # books is a source alone: no error at home is needed


@pytest.fixture
def ran(data, tmp_path):
    """Run the tiny plan, or another; tasks by method, as errors and as failures."""

    def running(methods, plan=PLAN, folder=data, tasks=None):
        (tmp_path / "tiny.toml").write_text(plan)
        number = len(list(tmp_path.iterdir()))
        request = Request(data=folder, methods=methods, tasks=tasks, jobs=1)
        loaded, results = load_plan(tmp_path / "tiny.toml"), tmp_path / f"{number}.jsonl"
        run(loaded, results, request)
        records = {(r["method"], f"{r['source']}->{r['target']}"): r for r in of_kind(results, loaded.kind)}
        failed = {key: r["failed"] for key, r in records.items() if "failed" in r}
        return {key: r.get("transfer_error") for key, r in records.items() if key not in failed}, failed

    return running


def first_call_fails(monkeypatch, module, name, n=1):
    """Let the first n calls of a function fail, each with words of its own; all calls are noted."""
    whole, calls = getattr(module, name), []

    def broken(*arguments, **options):
        calls.append(arguments)
        if len(calls) <= n:
            raise ArithmeticError(f"no luck {len(calls)}\nand more")
        return whole(*arguments, **options)

    monkeypatch.setattr(module, name, broken)
    return calls


@pytest.mark.parametrize("how", ['fit_on = "all"', 'fit_on = "pair"', "inductive = true"])
def test_a_source_of_one_class_is_refused_and_the_others_are_as_ever(ran, tmp_path, data, how):
    write_corpus(tmp_path / "bad" / "amazon-bow")
    path = tmp_path / "bad" / "amazon-bow" / "books_train.svmlight"  # sorts first
    path.write_text(path.read_text().replace("-1 ", "+1 "))
    plan, methods = f"{how}\n{PLAN}", ["msda-1", "msda-3", "undrift"]
    errors, failed = ran(methods, plan, tmp_path / "bad", NOT_TO_BOOKS)
    said = "ValueError: domain books: all 40 train rows are of class 1; a classifier needs rows of at least"
    assert set(failed) == {(m, f"books->{target}") for m in methods for target in ("dvd", "toys")}
    assert all(message.startswith(said) for message in failed.values())
    whole, _ = ran(methods, plan, data, ["dvd->toys", "toys->dvd"])
    assert errors == whole  # stacks see rows of books, and none of its labels


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("train", "only 1 train row is of class 5; cross-validation needs 2$"),
        ("test", "no train rows; "),
    ],
)
def test_a_source_that_cannot_be_cross_validated_is_named(part, message):
    parts = {part: np.arange(4)}
    corpus = Corpus("c", {"a": Domain("a", X=np.eye(4), y=np.array([0, 0, 5, 0]), **parts)})
    with pytest.raises(ValueError, match=f"^domain a: {message}"):
        check_source(corpus, "a")


def test_an_error_at_one_depth_leaves_the_other(ran, monkeypatch):
    plan = PLAN.replace("[0.5, 0.8]", "[0.5]")  # one stack, the shallow classifiers first
    first_call_fails(monkeypatch, msda.Hyperplanes, "fit", 2)
    errors, failed = ran(["msda-1", "msda-3"], plan)
    assert failed == {
        ("msda-1", f"{source}->{target}"): f"ArithmeticError: no luck {number}"
        for number, source in enumerate(DOMAINS[:2], 1)
        for target in set(DOMAINS) - {source}
    }
    assert len(errors) == 8
