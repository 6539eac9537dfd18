"""Bad input gets one clear message: the parameter, the value seen, what to do."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from tests.helpers.oracles import relative_error
from undrift import MDA, MSDA, MSDAClassifier, UndriftWarning
from undrift.core import SingularSystem

BOTH = pytest.mark.parametrize("estimator", [MDA, MSDA])
CONTAINERS = pytest.mark.parametrize("container", [np.array, sp.csr_array, sp.csc_matrix])


def message_of(action, kind=ValueError):
    with pytest.raises(kind) as caught:
        action()
    message = str(caught.value)
    assert len(message) < 300, "one message that can be read at a glance"
    assert "\n" not in message
    return message


def assert_says(message, *pieces):
    missing = [piece for piece in pieces if piece not in message]
    assert not missing, f"{message!r} does not say {missing}"


# ------------------------------------------------------------------ parameters

RANGES = [  # a parameter, a value that is refused, and parts of the message
    *[("noise", noise, ["at least 0 and below 1"]) for noise in (-0.1, 1.5, float("nan"))],
    ("noise", 1, ["every feature is always missing", "try 0.9"]),
    *[
        ("ridge", ridge, ["at least 0 and finite", "the paper uses 1e-5"])
        for ridge in (-1e-9, np.inf, np.nan)
    ],
    *[("activation", name, ["'tanh', 'sigmoid', 'relu', 'identity'"]) for name in ("gelu", None, ["tanh"])],
    ("n_layers", 0, ["at least 1"]),
    ("n_pivots", -1, ["at least 1", "leave it None"]),
    ("n_pivots", 10, ["more than the 9 features", "leave it None"]),
    ("device", "tpu", ["'cpu'"]),
]
TYPES = {"a number": [("noise", "0.5"), ("noise", None), ("noise", True), ("noise", [0.5])]}
TYPES["an integer"] = [("n_layers", 2.5), ("n_layers", True), ("n_pivots", 1.5), ("n_pivots", "3")]


@pytest.mark.parametrize(("name", "value", "pieces"), RANGES)
def test_parameters_outside_their_range(counts, name, value, pieces):
    for kind in (MSDA, MDA) if name in MDA().get_params() else (MSDA,):
        message = message_of(lambda kind=kind: kind(**{name: value}).fit(counts), (ValueError, ImportError))
        assert_says(message, f"{name}={value!r}", *pieces)


@pytest.mark.parametrize(
    ("name", "value", "wanted"), [(*pair, wanted) for wanted, pairs in TYPES.items() for pair in pairs]
)
def test_parameters_of_another_type(counts, name, value, wanted):
    message = message_of(lambda: MSDA(**{name: value}).fit(counts), TypeError)
    assert_says(message, name, f"must be {wanted}", repr(value), type(value).__name__)


def test_parameters_are_checked_by_fit_not_before(counts):
    assert_says(message_of(lambda: MDA(noise=2).partial_fit(counts)), "noise=2")
    message = message_of(lambda: MSDAClassifier(self_training="yes").fit(counts, counts[:, 0]), TypeError)
    assert_says(message, "self_training", "'yes'")


# ------------------------------------------------------------------ rows


@BOTH
@CONTAINERS
@pytest.mark.parametrize(("value", "named"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_values_that_are_not_finite(counts, estimator, container, value, named):
    fitted = estimator().fit(counts)
    counts[3, 2] = value
    for action in (estimator().fit, fitted.transform):
        message = message_of(lambda action=action: action(container(counts)))
        assert_says(message, "X", named, "row 3, column 2", "drop or replace")


@BOTH
@pytest.mark.parametrize(
    "X",
    [
        [["good", "film"], ["bad", "film"]],
        np.array([["good", "film"], ["bad", "film"]]),
        np.array([["good", 1.0], ["bad", 2.0]], dtype=object),
        ["a good film", "a bad film"],
        "a good film",
    ],
    ids=["lists", "strings", "objects", "documents", "document"],
)
def test_text_instead_of_numbers(estimator, X):
    message = message_of(lambda: estimator().fit(X))
    assert_says(message, "X", "good", "CountVectorizer")


@BOTH
@CONTAINERS
def test_matrices_without_real_numbers_rows_or_columns(counts, estimator, container):
    X = container(counts)
    for rows, pieces in [
        (container(counts + 1j), ["Complex data not supported", "complex128", "real numbers"]),
        (X[:0], ["0 sample(s)", "(0, 9)", "at least one row"]),
        (X[:, :0], ["0 feature(s)", "(60, 0)", "at least one column"]),
    ]:
        assert_says(message_of(lambda rows=rows: estimator().fit(rows)), "X", *pieces)


@BOTH
@CONTAINERS
def test_wrong_number_of_columns_at_transform(counts, estimator, container):
    fitted = estimator().fit(counts)
    message = message_of(lambda: fitted.transform(container(counts[:, :7])))
    assert_says(message, "X has 7 features", "expecting 9 features", "the columns of fit")


class SameIterator:
    """Gives out one iterator again and again: a second pass finds it used up."""

    def __init__(self, blocks):
        self.blocks = iter(blocks)

    def __iter__(self):
        return self.blocks


@BOTH
@pytest.mark.parametrize("one_shot", [lambda X: (block for block in [X]), lambda X: SameIterator([X, X])])
def test_a_stream_that_cannot_be_read_again(counts, estimator, one_shot):
    X = one_shot(counts)
    message = message_of(lambda: estimator().fit(X), TypeError)
    assert_says(message, "X is a one-shot", type(X).__name__, "a list of blocks")


@pytest.mark.parametrize(
    "action", [MDA().partial_fit, MDA().fit(np.eye(9)).transform, MSDA().fit(np.eye(9)).hidden]
)
@pytest.mark.parametrize("blocks", [lambda X: [X, X], lambda X: (x for x in [X])], ids=["list", "generator"])
def test_blocks_where_one_matrix_is_needed(counts, action, blocks):
    message = message_of(lambda: action(blocks(counts)), TypeError)
    assert_says(message, "X is a", "row blocks", "one block at a time")


class Stream:
    def __init__(self, *blocks):
        self.blocks = blocks

    def __iter__(self):
        return iter(self.blocks)


@BOTH
def test_a_stream_without_blocks(estimator):
    assert_says(message_of(lambda: estimator().fit(Stream())), "X has no blocks", "at least one row")
    assert_says(message_of(lambda: estimator().fit([])), "X", "at least one row")


@BOTH
def test_bad_blocks_further_on_in_a_stream(counts, estimator):
    nan = counts.copy()
    nan[0, 0] = np.nan
    assert_says(message_of(lambda: estimator().fit(Stream(counts, nan))), "block 2", "NaN")
    assert_says(
        message_of(lambda: estimator().fit(Stream(counts, counts, counts[:, :7]))), "block 3", "7 features"
    )


@BOTH
def test_empty_blocks_in_a_stream_are_passed_over(counts, estimator):
    stream = Stream(counts[:0], counts[:30], sp.csr_array(counts[:0]), counts[30:])
    expected = estimator().fit(counts).transform(counts)
    np.testing.assert_allclose(estimator().fit(stream).transform(counts), expected, rtol=1e-9, atol=1e-12)
    assert_says(message_of(lambda: estimator().fit(Stream(counts[:0]))), "at least one row")


# ------------------------------------------------------------------ singular systems


@BOTH
@CONTAINERS
def test_empty_columns_without_a_ridge_are_named(counts, estimator, container):
    counts[:, [2, 7]] = 0
    message = message_of(lambda: estimator(ridge=0).fit(container(counts)))
    assert_says(message, "ridge=0", "features 2, 7", "zero in all 60 rows", "ridge > 0", "drop")


@pytest.mark.parametrize("seed", range(5))
def test_empty_columns_in_a_part_are_named_by_their_place_among_all(counts, seed):
    counts[:, [2, 7]] = 0
    message = message_of(lambda: MSDA(ridge=0, n_pivots=3, random_state=seed).fit(counts))
    assert re.search(r"features (2|7|2, 7)\)", message)


@BOTH
def test_duplicate_and_constant_columns_without_noise_or_ridge(counts, estimator):
    twice = np.hstack([counts, counts[:, :1]])
    message = message_of(lambda: estimator(noise=0, ridge=0).fit(twice))
    assert_says(message, "noise=0", "ridge=0", "linear combination", "features 9", "ridge > 0")
    constant = np.hstack([counts, np.ones((60, 1))])
    message = message_of(lambda: estimator(noise=0, ridge=0).fit(constant))
    assert_says(message, "constant over all 60 rows", "features 9", "ridge > 0")


def test_an_upper_layer_that_cannot_be_solved_says_which_and_names_pivots(counts):
    """With relu, hidden features can be zero in all rows, whatever the input."""
    X = -counts - 1
    message = message_of(lambda: MSDA(n_layers=3, ridge=0, activation="relu").fit(X))
    assert_says(message, "layer 2", "zero in all 60 rows", "ridge > 0")
    X = -counts - 1
    X[:30, :5] = 0  # the pivots are the last four
    model = MSDA(n_layers=3, ridge=0, activation="relu", n_pivots=4, random_state=0)
    with pytest.raises(ValueError, match="layer 2") as caught:
        model.fit(X)
    assert_says(str(caught.value), "zero in all 60 rows")
    assert set(caught.value.features) <= {5, 6, 7, 8}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("estimator", [MDA(), MSDA(2), MSDAClassifier(1)], ids=lambda e: type(e).__name__)
def test_values_whose_squares_overflow_are_refused(rng, form, estimator):
    X, y = rng.normal(size=(40, 3)).astype(np.float32), np.arange(40) % 2
    X[7, 1] = 1e20
    with pytest.raises(ValueError, match=r"^the largest value of X, 1e\+20, is too large: [^\n]*$"):
        estimator.fit(form(X), y)
    estimator.fit(form(X / 1e20), y)


def test_values_that_overflow_when_cast_are_refused(rng):
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    with pytest.raises(ValueError, match="the largest value of X, inf, is too large"):
        MSDAClassifier(1).fit(X * 1e39, y)
    message = r"sums of squares over 80 rows overflow .features 0, 1, 2"
    with np.errstate(over="ignore"), pytest.raises(SingularSystem, match=message):
        MDA().fit([np.float32(1e20) * X.astype(np.float32)] * 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ratio", [10, 140])
def test_weights_are_right_or_the_means_are_refused(rng, dtype, ratio):
    """Float32 resolves a mean of 140 spreads to about a hundredth of the weights, and no more."""
    X = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5))
    X = np.hstack([X / X.std(axis=0), np.zeros((300, 1))]) + ratio  # the last column is constant
    exact = MDA(0.5).fit(X).layer_.coef
    assert relative_error(MDA(0.5).fit(X.astype(dtype)).layer_.coef, exact) < 0.02
    with pytest.raises(
        ValueError, match=r"^column 0 of X has mean 1.*, which float32 cannot resolve: subtract"
    ):
        MDA().fit((X + 1e4).astype(np.float32))
    with pytest.raises(ValueError, match=r"^column 0 of X_target has mean"):
        MSDAClassifier(1).fit(X, np.arange(300) % 2, X + 1e4)


@pytest.mark.parametrize("low", [5, 20])
def test_a_first_layer_that_collapses_is_warned_of(rng, low):
    X, y = rng.uniform(low, low + 1, (80, 6)), np.arange(80) % 2
    for estimator in (MSDA(2), MSDAClassifier(3)):
        with pytest.warns(UndriftWarning, match="after the first layer all rows are the same"):
            estimator.fit(X, y)
        estimator.fit(X - X.mean(axis=0), y)
    MSDA(2).fit(np.ones((9, 3)))  # rows that are the same to begin with
