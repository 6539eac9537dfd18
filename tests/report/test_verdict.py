"""Intervals against scipy's and against counting; words that fit the numbers."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from undrift.report.verdict import advice, compare_mistakes, error_interval, paired_gain, pool_comparisons


@pytest.mark.parametrize(("n_wrong", "n"), [(0, 12), (3, 40), (200, 1000), (7, 7)])
def test_the_interval_of_an_error_is_wilsons(n_wrong, n):
    ours = error_interval(n_wrong, n)
    theirs = stats.binomtest(n_wrong, n).proportion_ci(method="wilson")
    assert_allclose([ours["error"], ours["low"], ours["high"]], [n_wrong / n, *theirs], rtol=1e-6, atol=1e-9)


def test_the_interval_of_a_gain_is_that_of_the_mean_of_paired_differences():
    differences = np.repeat([1, 0, -1], [30, 160, 10])
    ours = paired_gain(30, 10, 200)
    half = stats.norm.ppf(0.975) * differences.std() / math.sqrt(200)
    assert_allclose([ours["gain"], ours["low"], ours["high"]], [0.1, 0.1 - half, 0.1 + half], rtol=1e-6)
    more_extreme = 2 * sum(math.comb(40, k) for k in range(11)) / 2**40  # both tails of a fair coin
    assert_allclose(ours["p"], more_extreme, rtol=1e-9)


def test_classifiers_that_never_differ_gain_nothing():
    assert paired_gain(0, 0, 50) == {"gain": 0.0, "low": 0.0, "high": 0.0, "p": 1.0}


def test_a_comparison_counts_predictions_corrected_and_made_wrong():
    before, after = np.array([1, 1, 1, 0, 0], bool), np.array([0, 0, 1, 1, 0], bool)
    found = compare_mistakes("kitchen", before, after)
    assert (found["n_mended"], found["n_broken"], found["n_rows"]) == (2, 1, 5)
    assert (found["source_only"]["error"], found["adapted"]["error"]) == (0.6, 0.4)


def test_targets_are_pooled_by_rows():
    rows = [
        compare_mistakes("a", np.array([True] * 9 + [False]), np.array([True] * 4 + [False] * 6)),
        compare_mistakes("b", np.zeros(30, bool), np.array([True] + [False] * 29)),
    ]
    found = pool_comparisons(rows)
    assert (found["n_rows"], found["n_mended"], found["n_broken"]) == (40, 5, 1)
    assert_allclose([found["source_only"]["error"], found["adapted"]["error"]], [9 / 40, 5 / 40], rtol=1e-12)


def test_the_verdict_is_scored_where_there_are_labels(report, adapter, reviews):
    _, _, kitchen, truth = reviews
    own = report.to_dict()["verdict"]
    known = [i for i, label in enumerate(truth) if label is not None]
    wrong = adapter.predict([kitchen[i] for i in known]) != np.array([truth[i] for i in known])
    assert_allclose(own["whole"]["adapted"]["error"], wrong.mean(), rtol=1e-12)
    assert own["whole"]["n_rows"] == len(known)
    assert own["basis"] == "scored"
    assert own["answer"] == "yes"
    assert f"{100 * wrong.mean():.1f}% with it" in own["headline"]


def test_without_labels_the_verdict_says_so_and_claims_no_gain(unscored, report):
    own = unscored.to_dict()["verdict"]
    assert (own["basis"], own["answer"], own["whole"]) == ("estimated", "unknown", None)
    assert "helped" not in own["headline"]
    assert own["sure"].startswith("Estimated, not scored")
    # the very bound it states: errors cannot differ by more than the share that changed
    gain = report.to_dict()["verdict"]["whole"]["difference"]["gain"]
    assert abs(gain) <= own["agreement"]["changed"] + 0.1


def situation(answer="yes", basis="scored", rule="fixed", center="classes", **card):
    target = {
        "name": "t", "role": "target", "n_rows": 5000, "unseen_share": 0.1, "class_drift": 0.0,
        "share_error": 0.0, **card,
    }  # fmt: skip
    return {
        "verdict": {
            "answer": answer, "basis": basis, "agreement": {"n_changed": 200, "n_rows": 5000},
            "expected_error": {"error": 0.1, "low": 0.05, "high": 0.15},
        },
        "chosen": {"rule": rule, "center": center, "edges": [] if rule == "fixed" else ["n_layers"]},
        "domains": [target],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (situation(), "--noise 0.5,0.7,0.9"),
        (situation(rule="source-cv"), "the chosen n_layers is at its edge (--layers)"),
        (situation("no", rule="source-cv"), "--selection reverse"),
        (situation("no", rule="one-se"), "--selection reverse"),
        (situation("no"), "Use the baseline"),
        (situation("unclear"), "Label more target rows"),
        (situation("unknown", "estimated"), "Label 100 target rows drawn at random from all of them"),
        (situation("unknown", "estimated"), "to within about 6 points"),
        (situation(unseen_share=0.6), "over half of its words"),
        (situation(n_rows=80), "80 are few"),
        (situation(class_drift=0.3, center="domains"), "--center classes"),
        (situation(share_error=0.11), "--target-shares"),
    ],
)
def test_advice_fits_the_situation(own, said):
    assert any(said in step for step in advice(own))


def test_there_is_no_advice_without_its_cause():
    steps = " ".join(advice(situation(class_drift=0.3, share_error=0.1)))
    for cause in ("Widen", "--center", "--target-shares", "few", "half of its words", "Use the baseline"):
        assert cause not in steps


def test_no_advice_takes_changed_rows_for_a_fair_sample(unscored):
    steps = [step for step in unscored.to_dict()["next"] if "Label" in step]
    assert steps
    assert all("drawn at random" in step and "no fair sample" in step for step in steps)
