"""Progress of a fit: who follows its steps, and `verbose`."""

import numpy as np
import pytest

from undrift import MSDAClassifier, TextAdapter
from undrift.inputs import follow_steps

BOOKS = ["a gripping page turner", "gripping and moving", "dull and boring", "boring prose"]
KITCHEN = ["gripping handle, sturdy", "sturdy pan", "boring and flimsy", "flimsy lid"]


def test_who_follows_hears_of_every_layer_until_the_end():
    told = []
    adapter = TextAdapter(classifier=MSDAClassifier(2))
    with follow_steps(lambda *step: told.append(step)):
        adapter.fit(BOOKS, ["good", "good", "bad", "bad"], KITCHEN)
        with pytest.raises(ValueError, match="class"):
            adapter.fit(BOOKS, ["good"] * 4, KITCHEN)
    adapter.fit(BOOKS, ["good", "good", "bad", "bad"], KITCHEN)
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_verbose_tells_of_every_layer_on_standard_error(counts, capsys):
    MSDAClassifier(3, verbose=True).fit(counts, np.arange(60) % 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(" after ")[0] for line in err.splitlines()] == [
        f"undrift: layer {t}/3" for t in (1, 2, 3)
    ]
