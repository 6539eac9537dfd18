"""The form in which a layer is solved for: a rule of shapes alone.

========  ============================================  ========================================
form      systems                                       when
========  ============================================  ========================================
rows      one of rows x rows, :mod:`.row_form`          ``n_rows ** 2 <= n_terms * n_targets``
parts     one for each random part of the features,     more rows, and fewer targets than
          averaged: section 4 of the paper              features
terms     one of features x features, :mod:`.denoise`   more rows, and every feature is a target
========  ============================================  ========================================

*Rows* and *terms* solve the same system exactly, and agree to rounding. *Parts* is section 4's approximation
of it, for more rows than *rows* is meant for. The inverse of *rows* has ``n_rows ** 2`` numbers, and the
coefficients of the others ``n_terms * n_targets``: the rule takes *rows* where it is no larger.

Flops of n dense rows, d features, p reconstructed ones and k parts of w = d / k features, where a Cholesky
factor has w^3 / 3, an inverse in all w^3, and a symmetric product half of a product:

========  ==============================================  ====================
form      to solve                                        rows after the layer
========  ==============================================  ====================
rows      ``n^2 d + n^3 + 2 n^2 p``                       0
parts     ``k (n w^2 + 2 n w p + w^3 / 3 + 2 w^2 p)``     ``2 n d p``
terms     ``n d^2 + d^3``                                 ``2 n d^2``
========  ==============================================  ====================

Products of the input rows, which are sparse for text, cost their entries only: the first layer of such rows
has ``n^3`` in the form rows, and ``k (w^3 / 3 + 2 w^2 p)`` in parts.

The rule knows no device, no density, no store and no cluster: NumPy, torch, streams of blocks and Dask
learn the same first layer from the same rows.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Form: TypeAlias = Literal["rows", "parts", "terms"]


def choose_form(n_rows: int, n_terms: int, n_pivots: int | None = None) -> Form:
    """Return the form of a first layer that reconstructs `n_pivots` of `n_terms` features, or all of them."""
    n_targets = n_terms if n_pivots is None else n_pivots
    if n_rows**2 <= n_terms * n_targets:
        return "rows"
    return "parts" if n_targets < n_terms else "terms"


def hidden_form(n_rows: int, width: int) -> Form:
    """Return the form of an upper layer in memory: "rows" or "terms", which agree to rounding.

    Its rows are dense and part of the factors, which are to be no larger than the coefficients.
    """
    return "rows" if n_rows * (n_rows + width) <= width**2 else "terms"
