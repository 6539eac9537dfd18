"""Fits of the whole method under other conditions."""

from dataclasses import replace

import pytest

from undrift.method import classifier


@pytest.fixture
def sums_over_rows(monkeypatch):
    """Make every fit train on sums over its labelled rows, all of which are anchors as well."""
    draw = classifier.draw_anchors

    def draw_with_sums(*args, **options):
        return replace(draw(*args, **options), needs_sums=True)

    monkeypatch.setattr(classifier, "draw_anchors", draw_with_sums)
