"""What there is to choose from, and what a rule refuses to choose from."""

import numpy as np
import pytest

from undrift.classifier.selection import Grid, check_grid, restrict_grid, single_candidate

SEVERAL = check_grid([0.7, 0.6, 0.8], [3, 1], [1.0, 0.1])


def test_values_are_in_order_and_what_was_named_first_is_preferred():
    assert Grid((0.6, 0.7, 0.8), (1, 3), (0.1, 1.0), (0.7, 3, 1.0)) == SEVERAL
    assert SEVERAL.n_candidates == 12
    assert check_grid(0.5, np.array([2]), (3.0,)) == single_candidate(0.5, 2, 3.0)
    assert single_candidate(0.5, 2, 3.0).n_candidates == 1


@pytest.mark.parametrize("selection", ["one-se", "source-cv", "reverse"])
def test_all_is_offered_where_every_class_has_two_rows(selection):
    assert restrict_grid(SEVERAL, selection, np.array([0, 0, 1, 1]), has_target=True) is SEVERAL


def test_a_class_of_one_row_leaves_one_se_with_what_is_preferred():
    codes = np.array([0, 0, 0, 1])
    assert restrict_grid(SEVERAL, "one-se", codes, has_target=True) == single_candidate(0.7, 3, 1.0)
    assert restrict_grid(SEVERAL, "source-cv", codes, has_target=True) is SEVERAL  # which folds will refuse


def test_what_cannot_be_compared_is_refused():
    codes = np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match='selection="reverse" needs target rows'):
        restrict_grid(SEVERAL, "reverse", codes, has_target=False)
    for selection in ("one-se", "source-cv"):
        assert restrict_grid(SEVERAL, selection, codes, has_target=False) is SEVERAL
    alone = single_candidate(0.5, 1, 1.0)
    assert restrict_grid(alone, "reverse", codes, has_target=False) is alone
