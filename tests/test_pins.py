"""The whole method on small tasks gives the numbers that were written down, to 1e-6."""

import json

import pytest
from numpy.testing import assert_allclose

from .helpers.pin_tasks import CORPUS_TASKS, PINS, TASKS, measure, measure_demo

PINNED = json.loads(PINS.read_text(encoding="utf-8"))


def check_pins(measured, pinned):
    assert measured["predictions"] == pinned["predictions"]
    for name, scores in pinned["scores"].items():
        assert_allclose(measured["scores"][name], scores, rtol=1e-6, atol=1e-6)
        assert_allclose(measured["sum_of_squares"][name], pinned["sum_of_squares"][name], rtol=1e-6)
    assert_allclose(measured["shares"], pinned["shares"], atol=1e-6)
    assert_allclose(measured["intervals"], pinned["intervals"], atol=1e-6)
    for expected, told in zip(measured["expected_error"], pinned["expected_error"], strict=True):
        assert expected == pytest.approx(told, abs=1e-6)


@pytest.mark.parametrize("task", TASKS)
def test_numbers_of_a_task_are_the_pinned_ones(task):
    check_pins(measure(*TASKS[task]()), PINNED[task])


@pytest.mark.slow
@pytest.mark.parametrize("task", CORPUS_TASKS)
def test_numbers_on_a_public_corpus_are_the_pinned_ones(task, data_folder):
    check_pins(measure(*CORPUS_TASKS[task](data_folder)), PINNED[task])


@pytest.mark.slow
def test_the_demo_tells_the_pinned_numbers():
    measured, pinned = measure_demo(), PINNED["demo"]
    assert measured["exact"] == pinned["exact"]
    for name, told in pinned["estimated"].items():  # the demo works in float32
        assert measured["estimated"][name] == pytest.approx(told, abs=1e-4)
