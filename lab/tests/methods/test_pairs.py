"""Tasks that are fitted on their two domains alone: vocabulary, rows, teachers."""

import numpy as np
import pytest
from scipy.special import expit

from undrift import MSDAClassifier
from undrift_lab.corpora.corpus import Corpus
from undrift_lab.methods import encoders
from undrift_lab.methods.baselines import weight_tfidf
from undrift_lab.parts import load_corpus, rank_columns, sample_target, take_pair
from undrift_lab.plan import load_plan
from undrift_lab.results.records import read
from undrift_lab.runner import Request, run
from undrift_lab.teachers import TeacherScores, write_scores

pytestmark = pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")  # of few rows

PLAN = """
methods = ["undrift", "undrift+teacher", "minilm-finetuned", "minilm-frozen"]
fit_on = "pair"
max_features = 20
tasks = ["books->dvd"]
[corpus]
loader = "amazon-bow"
[parameters.undrift]
n_layers = 2
[[variants]]
name = "whole"
[[variants]]
name = "few"
target_share = 0.25
"""


@pytest.fixture(scope="module")
def corpus(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "pairs.toml"
    path.write_text(PLAN)
    return load_corpus(load_plan(path).corpus, data, 100)


@pytest.fixture(scope="module")
def records(data, corpus, tmp_path_factory):
    """Results with a teacher that is right on four rows of five."""
    folder, rng = tmp_path_factory.mktemp("pairs"), np.random.default_rng(0)
    y = np.concatenate([domain.y for domain in corpus.domains.values()])
    scores = 3.0 * y * np.where(rng.random(len(y)) < 0.8, 1, -1)
    sizes = tuple(len(domain) for domain in corpus.domains.values())
    kinds = {"finetuned": np.tile(scores, (3, 1)), "frozen": np.full((3, len(y)), np.nan)}
    teachers = TeacherScores(tuple(corpus.domains), sizes, ("", "", ""), kinds)
    write_scores(folder / "teachers-amazon-bow.npz", teachers)
    (folder / "pairs.toml").write_text(PLAN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoders, "RESULTS", folder)
        run(load_plan(folder / "pairs.toml"), folder / "r.jsonl", Request(data=data, jobs=1))
    found = {(r["variant"], r["method"]): r for r in read(folder / "r.jsonl") if r["kind"] == "transfer"}
    return found, teachers


def test_columns_are_those_that_most_rows_of_the_two_domains_have(corpus):
    pair = take_pair(corpus, "books", "dvd", has_whole_source=True)
    X = np.vstack([pair.domains[name].X.toarray() for name in ("books", "dvd")])
    counts = (X > 0).sum(axis=0)
    found = rank_columns(pair, 20)
    ranked = np.vstack([found.domains[name].X.toarray() for name in ("books", "dvd")])
    np.testing.assert_array_equal((ranked > 0).sum(axis=0), np.sort(counts)[::-1][:20])
    assert list(pair.domains) == ["books", "dvd"]
    alone = take_pair(corpus, "books", "dvd", has_whole_source=False).domains["books"]
    assert (corpus.domains["books"].X[corpus.domains["books"].train] != alone.X).nnz == 0


def test_ours_is_the_classifier_on_all_rows_of_both_domains(records, corpus):
    found, teachers = records
    for variant in ("whole", "few"):
        own = corpus if variant == "whole" else sample_target(corpus, "dvd", 0.25, 2500, 0)[0]
        pair = rank_columns(take_pair(own, "books", "dvd", has_whole_source=True), 20)
        pair = weight_tfidf(Corpus("pair", pair.domains), 5.0)
        books, dvd = pair.domains["books"], pair.domains["dvd"]
        y = np.full(len(books), np.nan)
        y[books.train] = books.y[books.train]
        model = MSDAClassifier(2, random_state=0).fit(books.X, y, dvd.X)
        record, test = found[variant, "undrift"], np.sort(dvd.test)
        assert record["n_features"] == 20
        assert record["transfer_error"] == np.mean(model.predict(dvd.X[test]) != dvd.y[test])
        known = model.targets_["target"]
        assert record["estimated_share"] == pytest.approx(known["shares"][1])
        assert (record["share_low"], record["share_high"]) == pytest.approx(known["shares_interval"][1])
        says = [record[f"expected_{name}"] for name in ("error", "low", "high")]
        assert says == pytest.approx([known["expected_error"][name] for name in ("error", "low", "high")])
        rows = np.arange(len(dvd)) if variant == "whole" else sample_target(corpus, "dvd", 0.25, 2500, 0)[1]
        p = expit(teachers.find("finetuned", "books", "dvd")[rows])
        words = np.column_stack([1 - p, p])
        model = MSDAClassifier(2, random_state=0).fit(books.X, y, dvd.X, teacher=words)
        wrong = model.predict(dvd.X[test], teacher=words[test]) != dvd.y[test]
        assert found[variant, "undrift+teacher"]["transfer_error"] == np.mean(wrong)


def test_a_teacher_is_read_by_row_also_where_the_target_is_a_sample(records, corpus):
    found, teachers = records
    dvd, scores = corpus.domains["dvd"], teachers.find("finetuned", "books", "dvd")
    wrong = np.mean((scores[dvd.test] > 0) != (dvd.y[dvd.test] > 0))
    assert found["whole", "minilm-finetuned"]["transfer_error"] == wrong
    rows = sample_target(corpus, "dvd", 0.25, 2500, 0)[1]
    wrong = np.mean((scores[rows] > 0) != (dvd.y[rows] > 0))
    assert found["few", "minilm-finetuned"]["transfer_error"] == wrong
    assert "encoder of books was not trained" in found["whole", "minilm-frozen"]["failed"]


def test_without_stored_scores_a_teacher_fails_and_the_others_do_not(data, tmp_path, set_limits):
    set_limits(RESULTS=tmp_path)
    (tmp_path / "p.toml").write_text(PLAN.replace("max_features = 20", "max_features = 10"))
    request = Request(data=data, jobs=1, methods=["undrift", "undrift+teacher"], variants=["whole"])
    run(load_plan(tmp_path / "p.toml"), tmp_path / "r.jsonl", request)
    failed = {r["method"]: r.get("failed") for r in read(tmp_path / "r.jsonl") if r["kind"] == "transfer"}
    assert failed["undrift"] is None
    assert failed["undrift+teacher"].startswith("FileNotFoundError: there are no stored scores of amazon-bow")
