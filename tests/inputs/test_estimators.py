"""Progress of a fit: scikit-learn's callbacks, and `verbose`."""

import numpy as np
import pytest

from undrift import MSDA, MSDAClassifier, TextAdapter


class Recorder:
    """A callback that writes down what it is told, and asks to stop after `stop_after` layers."""

    def __init__(self, stop_after=None):
        self.stop_after, self.told, self.widths = stop_after, [], []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.told.append(f"begin {context.task_name} {context.task_id} of {context.max_subtasks}")

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        self.told.append(f"end {context.task_name} {context.task_id}")
        if context.task_name == "layer":
            self.widths.append(fitted_estimator.transform(np.eye(9)).shape[1])
            return self.stop_after is not None and context.task_id + 1 >= self.stop_after


@pytest.fixture
def callbacks():
    return pytest.importorskip("sklearn.callback")


def test_callbacks_hear_of_every_layer_and_can_use_it(counts, callbacks):
    recorder = Recorder()
    model = MSDA(2, n_pivots=4, random_state=0).set_callbacks(recorder).fit(counts)
    of_layers = [text for i in (0, 1) for text in (f"begin layer {i} of 0", f"end layer {i}")]
    assert recorder.told == ["setup", "begin fit 0 of 2", *of_layers, "end fit 0", "teardown"]
    assert recorder.widths == [13, 17]
    assert len(model.layers_) == 2


def test_a_callback_can_stop_a_fit(counts, callbacks):
    recorder = Recorder(stop_after=2)
    model = MSDA(5).set_callbacks(recorder).fit(counts)
    assert len(model.layers_) == 2
    assert recorder.told[-2:] == ["end fit 0", "teardown"]
    assert model.transform(counts).shape == (60, 27)
    assert len(model.get_feature_names_out()) == 27


def test_verbose_tells_of_every_layer_on_standard_error(counts, capsys):
    MSDAClassifier(3, verbose=True).fit(counts, np.arange(60) % 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(" after ")[0] for line in err.splitlines()] == [
        f"undrift: layer {t}/3" for t in (1, 2, 3)
    ]


BOOKS = ["a gripping page turner", "gripping and moving", "dull and boring", "boring prose"]
KITCHEN = ["gripping handle, sturdy", "sturdy pan", "boring and flimsy", "flimsy lid"]


@pytest.fixture
def adapter():
    return TextAdapter(classifier=MSDAClassifier(2))


def test_the_progress_bar_of_an_adapter_shows_the_layers_of_its_classifier(adapter, callbacks, capsys):
    adapter.set_callbacks(callbacks.ProgressBar()).fit(BOOKS, ["good", "good", "bad", "bad"], KITCHEN)
    shown = capsys.readouterr().out
    assert "TextAdapter - fit" in shown
    assert "TextAdapter - MSDAClassifier | MSDAClassifier - fit #0" in shown
    assert shown.count("100%") >= 2
    assert not hasattr(adapter.classifier_, "_skl_callbacks")


def test_an_adapter_hears_of_its_classifier_and_lets_it_be_followed_too(adapter, callbacks):
    above, below = Recorder(), Counter()
    adapter.classifier.set_callbacks(below)
    adapter.set_callbacks(above).fit(BOOKS, ["good", "good", "bad", "bad"], KITCHEN)
    inner = ["begin MSDAClassifier 0 of 0", "end MSDAClassifier 0"]
    assert above.told == ["setup", "begin fit 0 of 1", *inner, "end fit 0", "teardown"]
    assert below.n_layers == 2


class Counter(Recorder):
    """Counts layers, and asks for no fitted estimator."""

    n_layers = 0

    def on_fit_task_end(self, estimator, context):
        self.n_layers += context.task_name == "layer"


def test_callbacks_of_an_adapter_are_torn_down_when_a_fit_fails(adapter, callbacks):
    recorder = Recorder()
    with pytest.raises(ValueError, match="class"):
        adapter.set_callbacks(recorder).fit(BOOKS, ["good"] * 4, KITCHEN)
    assert recorder.told[-1] == "teardown"
