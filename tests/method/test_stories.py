"""Stories and their votes, counted by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from undrift.method.judge import tell_taught
from undrift.method.scores import SHARES
from undrift.method.settings import Settings, VoteSettings
from undrift.method.stories import (
    SAME_MIX,
    SOURCE_ONLY,
    UNMOVED,
    Story,
    mix_shares,
    tell_known,
    tell_stories,
)

SETTINGS = Settings()


def posterior_of(share):
    """A posterior with a peak, of two classes."""
    upper = np.exp(-(((SHARES - share) / 0.1) ** 2))
    upper /= upper.sum()
    return np.array([upper[::-1], upper])


def test_two_classes_have_three_stories_and_a_grid_of_shares():
    stories = tell_stories(["no", "yes"], np.array([0.7, 0.3]), [posterior_of(0.8)], SETTINGS)
    assert [story.name for story in stories[:3]] == [SOURCE_ONLY, "unmoved", "same mix"]
    assert [story.is_centred for story in stories] == [False, False, True] + [False] * 10
    assert all(story.shares is None for story in stories[:3])
    assert [story.votes[0] for story in stories[:3]] == [1.0, 1.0, 1.0]
    assert_allclose([story.shares[0][1] for story in stories[3:]], np.arange(0.05, 1, 0.1))
    assert stories[3].name == "5% yes"
    assert stories[3].sentence == "5% of the rows are yes."
    assert len({story.sentence for story in stories}) == 13


@pytest.mark.parametrize("part", ["estimated", "near", "flat"])
def test_the_votes_of_the_grid(part):
    """One part at a time: the tempered posterior, nearness to the source's share, and a constant."""
    only = {"estimated": 0.0, "near": 0.0, "flat": 0.0} | {part: 1.7}
    settings = Settings(votes=VoteSettings(**only))
    posterior, source = posterior_of(0.8), np.array([0.7, 0.3])
    grid = tell_stories([0, 1], source, [posterior, posterior_of(0.2)], settings)[3:]
    votes, shares = np.array([story.votes for story in grid]), np.arange(0.05, 1, 0.1)
    expected = np.ones(10)
    if part == "near":
        expected = np.exp(-np.abs(np.log(shares / (1 - shares)) - np.log(0.3 / 0.7)))
    elif part == "estimated":
        cells = [posterior[1][(s - 0.0501 <= SHARES) & (s + 0.0499 > SHARES)].sum() for s in shares]
        cells[-1] += posterior[1][-1]
        expected = np.array(cells) ** settings.votes.tempering
    assert_allclose(votes[:, 0], 1.7 * expected / expected.sum(), rtol=1e-6)
    assert votes.sum(axis=0) == pytest.approx(1.7)
    assert (votes[:, 0] != votes[:, 1]).any() == (part == "estimated")


def test_parts_of_the_grid_add_up():
    grid = tell_stories([0, 1], np.array([0.5, 0.5]), [posterior_of(0.6)], SETTINGS)[3:]
    votes = SETTINGS.votes
    total = sum(story.votes[0] for story in grid)
    assert total == pytest.approx(votes.estimated + votes.near + votes.flat)


def test_a_source_of_one_class_alone_votes_finitely():
    grid = tell_stories([0, 1], np.array([1.0, 0.0]), [posterior_of(0.6)], SETTINGS)[3:]
    assert np.isfinite([story.votes[0] for story in grid]).all()


def test_several_classes_have_the_estimated_and_the_source_s_mix():
    posteriors = [np.eye(101)[[50, 40, 30]], np.eye(101)[[80, 10, 0]]]
    source = np.array([0.2, 0.3, 0.5])
    stories = tell_stories(["a", "b", "c"], source, posteriors, SETTINGS)
    names = [SOURCE_ONLY, "unmoved", "same mix", "estimated mix", "source's mix"]
    assert [story.name for story in stories] == names
    assert_allclose(stories[3].shares[0], np.array([5, 4, 3]) / 12)
    assert_allclose(stories[3].shares[1], np.array([800, 100, 1]) / 901)  # no class is excluded
    assert_allclose(stories[4].shares, [source, source])
    votes = SETTINGS.votes
    assert_array_equal(stories[3].votes, [votes.estimated + votes.flat] * 2)
    assert_array_equal(stories[4].votes, [votes.near] * 2)


@pytest.mark.parametrize("only", [UNMOVED, SAME_MIX])
def test_one_story_may_vote_alone(only):
    settings = Settings(votes=VoteSettings(only=only))
    (story,) = tell_stories([0, 1], np.array([0.5, 0.5]), [posterior_of(0.6)], settings)
    assert story.name == only
    assert_array_equal(story.votes, [1])


def test_all_shares_known_leave_one_story():
    stories = tell_stories([0, 1], np.array([0.5, 0.5]), [posterior_of(0.6)] * 2, SETTINGS)
    known = [np.array([0.3, 0.7]), np.array([1.0, 0.0])]
    (told,) = tell_known(stories, known, assumes_same=False)
    assert_array_equal(told.votes, [1, 1])
    assert_allclose(told.shares, [[0.3, 0.7], [1 / 1.001, 0.001 / 1.001]])
    assert "as given" in told.sentence
    same = tell_known(stories, known, assumes_same=True)
    assert [story.name for story in same] == ["given mix", "same mix"]
    assert "as in the source" in same[0].sentence


def test_shares_known_of_one_target_leave_the_others_as_they_were():
    posteriors = [posterior_of(0.6), posterior_of(0.2)]
    stories = tell_stories([0, 1], np.array([0.5, 0.5]), posteriors, SETTINGS)
    told = tell_known(stories, [np.array([0.3, 0.7]), None], assumes_same=False)
    assert [story.name for story in told] == [story.name for story in stories]
    for before, after in zip(stories, told, strict=True):
        assert after.votes[1] == before.votes[1]
        if before.shares is None:
            assert after.votes[0] == 0
        else:
            assert_allclose(after.shares[0], [0.3, 0.7])
            assert_allclose(after.shares[1], before.shares[1])
            assert after.votes[0] == before.votes[0]


def teach(shares, coverage):
    words = SimpleNamespace(story="")
    return {"llm": SimpleNamespace(shares=np.array(shares), coverage=coverage, words=words)}


def gather(lessons, shares, has_source):
    """Return what a teacher's story needs of the evidence."""
    return SimpleNamespace(lessons=lessons, facts=SimpleNamespace(shares=shares, has_source=has_source))


def test_the_mix_of_a_teacher_s_story():
    estimated, none = [np.array([0.5, 0.5])] * 5, [None] * 5
    lessons = [teach([0.9, 0.1], 1.0), teach([0.9, 0.1], 0.5), teach([0.9, 0.1], 0.0), {}, {"other": None}]
    story = tell_taught("llm", gather(lessons, none, True), estimated)
    assert story.name == "llm"
    assert "llm" in story.sentence
    assert_allclose(np.array(story.shares)[:, 0], [0.9, 0.8, 0.7, 0.5, 0.5])
    assert_array_equal(story.votes, [1, 1, 1, 1, 0])  # nobody else speaks of the fourth
    alone = tell_taught("llm", gather(lessons, none, False), estimated)
    assert_allclose(alone.shares[1], [0.9, 0.1])
    known = [np.array([0.2, 0.8]), None, None, None, None]
    assert_allclose(tell_taught("llm", gather(lessons, known, True), estimated).shares[0], [0.2, 0.8])


def test_no_story_excludes_a_class():
    assert_allclose(mix_shares(np.array([1.0, 0.0, 0.0])), np.array([1000, 1, 1]) / 1002)
    assert isinstance(Story("a", "b", np.ones(1)).votes, np.ndarray)
