"""Every exception that users may meet is an `UndriftError`."""

import ast
import importlib
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed

import undrift
from undrift.errors import UndriftWarning, write_shares

SOURCE = Path(undrift.__file__).parent
# those that never leave the package: they end a loop, or are turned into another error where they arise
INTERNAL = {"NotPositiveDefinite", "NeedsColumns", "Stopped", "OverlongError", "TooManyTerms"}


def exceptions_of(path: Path) -> list[type]:
    """The public exceptions that a file defines."""
    names = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    dotted = ".".join(["undrift", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")
    classes = [getattr(importlib.import_module(dotted), name) for name in names if not name.startswith("_")]
    return [cls for cls in classes if issubclass(cls, Exception) and not issubclass(cls, Warning)]


def test_all_exceptions_have_one_base():
    paths = [path for path in SOURCE.rglob("*.py") if "Error" in path.read_text() and path.stem != "__main__"]
    classes = [cls for path in paths for cls in exceptions_of(path) if cls.__name__ not in INTERNAL]
    assert len(classes) >= 6
    for cls in classes:
        assert issubclass(cls, undrift.UndriftError), cls
    assert issubclass(undrift.UndriftError, ValueError)


@pytest.mark.parametrize("digits", [0, 1])
def test_shares_of_a_whole_add_up_to_100(digits):
    assert write_shares([1 / 3] * 3) == ["33.4%", "33.3%", "33.3%"]
    assert write_shares([0.2345, 0.3455, 0.42]) == ["23.5%", "34.5%", "42.0%"]  # not 100.1%
    assert write_shares([1, 0], 0) == ["100%", "0%"]
    assert write_shares([0.504, 0.996], 0) == ["50%", "100%"]  # no whole
    for shares in np.random.default_rng(0).dirichlet(np.ones(7), 200):
        written = write_shares(shares.tolist(), digits)
        assert sum(Decimal(share[:-1]) for share in written) == 100
        assert all(abs(float(w[:-1]) - 100 * s) < 10**-digits for w, s in zip(written, shares, strict=True))


def test_a_system_without_an_answer_is_one():
    with pytest.raises(undrift.UndriftError, match="zero in all"):
        undrift.MDA(ridge=0).fit([[1.0, 0.0], [2.0, 0.0]])


SEEN = [1, 1, 0, 0, 0, 0]  # features that labelled rows have


def fit_with_warnings(name):
    """Fit a model that warns: of new words, by itself and from a process of joblib, or of flat rows."""
    rng = np.random.default_rng(0)
    X, y = rng.poisson(1.0, size=(120, 6)).astype(float), rng.permutation(np.arange(120) % 2)
    if name == "far-apart":
        undrift.MSDAClassifier(1, random_state=0).fit(X * SEEN, y, X[:60])
    elif name == "folds":
        fit = delayed(undrift.MSDAClassifier(1, random_state=0).fit)
        Parallel(1)([fit(X * SEEN, y, X[:60])])
    else:
        undrift.MSDA(2).fit(rng.uniform(5, 6, (80, 6)))


@pytest.mark.parametrize("name", ["far-apart", "folds", "flat"])
def test_warnings_point_at_the_line_that_called_the_library(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit_with_warnings(name)
    assert caught
    for warning in caught:
        assert issubclass(warning.category, UndriftWarning)
        assert warning.filename == __file__
    codes = {warning.message.code for warning in caught}
    assert codes == {""} if name == "flat" else "far-apart" in codes
