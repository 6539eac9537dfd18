"""Bars and claims: what results meet, what they miss, and where tasks are not there to tell."""

import pytest

from lab.tests.helpers.corpus import DISTANCES, transfer
from undrift_lab.plan import check_table
from undrift_lab.results.expected import Bar, are_met, check_bars, check_versions, load_bars


def judged(records, **bar):
    whole = {"says": "it", "plan": "tiny", "method": "msda-5", "n_tasks": 6, **bar}
    (verdict,) = check_bars([check_table(Bar, whole)], records)
    return verdict


@pytest.mark.parametrize(
    ("bar", "met"),
    [
        ({"at_most": 0.2501}, True),
        ({"at_most": 0.2499}, False),
        ({"at_least": 0.2499}, True),
        ({"at_least": 0.2499, "at_most": 0.2501}, True),
        ({"at_least": 0.26, "at_most": 0.27}, False),
        ({"than": {"method": "svm"}}, True),
        ({"worse_than": ["svm"]}, False),
        ({"worse_than": ["svm"], "at_most_tasks": 1}, True),
        ({"method": "svm", "worse_than": ["msda-5"], "at_most_tasks": 4}, False),
        ({"method": "svm", "worse_than": ["msda-5", "svm"], "at_most_tasks": 5}, True),
        ({"worse_than": ["svm", "pca"], "at_most_tasks": 6}, None),
        ({"method": "pca", "at_most": 0.5}, None),
        ({"than": {"method": "pca"}}, None),
        ({"variant": "other", "at_most": 0.5}, None),
        ({"measure": "represent_seconds", "at_most": 2.0}, True),
        ({"measure": "represent_seconds", "than": {"method": "svm"}}, False),
    ],
)
def test_bars(records, bar, met):
    verdict = judged(records, **bar)
    assert verdict.met is met
    assert verdict.word == {True: "pass", False: "FAIL", None: "no results"}[met]


BARS = [
    {"at_most": 0.9},
    {"at_least": 0.0},
    {"than": {"method": "svm"}},
    {"worse_than": ["svm"], "at_most_tasks": 6},
]


@pytest.mark.parametrize("bar", BARS)
@pytest.mark.parametrize("claim", [False, True])
def test_with_a_task_missing_there_is_no_verdict(records, bar, claim):
    assert judged(records, claim=claim, **bar).word == ("yes" if claim else "pass")
    verdict = judged(records[:-1], claim=claim, **bar)  # the last task of msda-5
    assert verdict.word == "incomplete"
    assert (verdict.complete, verdict.n_tasks) == (False, 5)
    assert verdict.summary.endswith("; incomplete, 5 of 6 tasks")
    others = {"than", "worse_than"} & set(bar)
    without = [r for r in records if (r["method"], r["target"]) != ("svm", "dvd")]
    assert judged(without, claim=claim, **bar).complete == (not others)


@pytest.mark.parametrize("measure", ["mean_error", "represent_seconds"])
def test_means_are_compared_over_the_same_tasks(measure):
    """Over all its tasks `msda-5` would be far below `svm`, over the one of both it is above."""
    records = [
        transfer(method, "a", target, value, represent_seconds=value)
        for method, target, value in [("svm", "b", 0.3), ("msda-5", "b", 0.4), ("msda-5", "c", 0.0)]
    ]
    verdict = judged(records, measure=measure, than={"method": "svm"}, n_tasks=1)
    assert verdict.met is False
    assert verdict.numbers.startswith(
        "40.00% against 30.00%" if measure == "mean_error" else "0.4 s against 0.3 s"
    )


def test_bars_are_met_when_all_pass_and_none_is_incomplete_or_a_trial(records):
    good, missed = judged(records, at_most=0.9), judged(records, at_most=0.1)
    denied = judged(records, at_most=0.1, claim=True)
    some, nothing = judged(records[:4], at_most=0.9), judged([], at_most=0.9)
    assert are_met([good, denied])
    assert not are_met([good, missed])
    assert not are_met([good, some])
    assert not are_met([good, nothing])
    assert not are_met([good, judged([], at_most=0.9, claim=True)])
    assert are_met([good, some, nothing], partial=True)
    assert are_met([some, nothing], partial=True)
    assert not are_met([some, missed], partial=True)
    assert not are_met([nothing], partial=True)
    trial = [{**record, "trial": True} for record in records]
    full, small = judged(records + trial, at_most=0.9), judged(trial, at_most=0.9)
    assert (full.word, small.word) == ("pass", "no results")
    assert small.n_tasks == 0
    assert are_met([full])
    assert not are_met([small])
    assert not are_met([small], partial=True)


def test_a_claim_about_a_difference_within_two_standard_errors_is_a_tie(records):
    close = [
        transfer("msda-4", r["source"], r["target"], r["transfer_error"] + (-1) ** i * 0.02)
        for i, r in enumerate(r for r in records if r["method"] == "msda-5")
    ]
    verdict = judged(records + close, method="msda-4", than={"method": "msda-5"}, claim=True)
    assert verdict.word == "tie"
    assert verdict.summary.endswith("within 2 standard errors")
    assert are_met([verdict])
    assert judged(records + close, method="msda-4", than={"method": "svm"}, claim=True).word == "yes"
    assert judged(records + close, method="msda-4", than={"method": "msda-5"}).word in ("pass", "FAIL")


def test_several_versions_of_undrift_are_refused(records):
    new, old = (transfer("undrift", "a", "b", 0.2, method_version=v, plan=f"p{v}") for v in (6, 5))
    other = transfer("svm", "a", "b", 0.2, method_version=4)
    check_versions([*records, new, other])
    with pytest.raises(ValueError, match=r"version 5 in p5; version 6 in p6\): measure the older ones again"):
        check_versions([*records, new, old])


def test_so_many_times_faster():
    records = [transfer("msda-5", "a", "b", 0.2), transfer("sda", "a", "b", 0.2, represent_seconds=21.0)]
    for times, met in ((10, True), (11, False)):
        verdict = judged(records, measure="represent_seconds", than={"method": "sda"}, times=times, n_tasks=1)
        assert verdict.met is met


def test_times_of_one_kind_of_machine_are_compared_and_what_has_no_record_says_why():
    slow, fast = (transfer("sda", "a", t, 0.2, represent_seconds=9.0, machine=m) for t, m in ("bC", "cG"))
    ours = [transfer("msda-5", "a", target, 0.2, machine="G") for target in "bc"]
    bar = {"measure": "represent_seconds", "than": {"method": "sda"}, "machine": "G", "n_tasks": 1}
    assert judged([slow, fast, *ours], **bar).summary == "2 s against 9 s"
    assert judged([slow, fast, *ours], **bar).n_tasks == 1
    assert judged([slow, *ours], **bar).word == "no results"
    told = judged([slow, *ours], **bar, missing="no time was left")
    assert (told.word, told.summary) == ("not measured", "no time was left")
    assert are_met([told])
    some = judged([fast, *ours], **{**bar, "n_tasks": 2}, missing="no time was left")
    assert some.word == "incomplete"
    assert not are_met([some])


def test_tasks_made_worse_are_named_and_claims_are_answered(records):
    for at_most, word in ((0, "FAIL"), (1, "pass")):
        verdict = judged(records, worse_than=["svm"], at_most_tasks=at_most)
        assert verdict.word == word
        assert verdict.summary == "worse on 1 of 6 tasks: books->dvd"
    assert judged(records, at_most=0.1, claim=True).word == "no"
    assert judged(records, at_most=0.3, claim=True).word == "yes"
    about = {"plan": "far", "method": "msda-5", "measure": "distances_grown"}
    grows = check_table(Bar, {"says": "grows", **about, "n_tasks": 3, "at_least": 1.0, "claim": True})
    (verdict,) = check_bars([grows], DISTANCES)
    assert (verdict.word, verdict.summary) == ("no", "66.67%, at least 100.00%")
    (verdict,) = check_bars([grows], DISTANCES[::2])
    assert verdict.word == "incomplete"
    assert verdict.summary == "100.00%, at least 100.00%; incomplete, 2 of 3 tasks"


ABOUT = '[[bar]]\nsays = "x"\nplan = "p"\nmethod = "m"\n'
GOOD = f"{ABOUT}n_tasks = 1\nat_most = 1\n"
INSTEAD = {  # of at_most
    "": "give bounds",
    "atmost = 1": "bar.atmost is not known",
    "at_most = 1\nworse_than = ['x']": "one of them",
    'at_most = 1\nmeasure = "luck"': "measure='luck': input should be",
    'than = "svm"': "than='svm': input should be",
    'worse_than = "svm"': "worse_than='svm': input should be",
}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[bar", "not a TOML file"),
        ("", "bar is missing"),
        ("bar = []\n", "bar="),
        (GOOD + '[other]\nname = "x"\n', "expected.toml: other is not known"),
        ("bar = [1]\n", "bar=1: input should be"),
        ('[[bar]]\nsays = "x"\nat_most = 1\n', "bar.plan is missing"),
        (ABOUT + "n_tasks = 0\nat_most = 1\n", "n_tasks=0: input"),
        *((GOOD.replace("at_most = 1", text), complaint) for text, complaint in INSTEAD.items()),
    ],
)
def test_bad_bars(tmp_path, text, complaint):
    path = tmp_path / "expected.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=complaint):
        load_bars(path)
