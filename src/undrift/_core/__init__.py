"""The paper (Chen, Xu, Weinberger, Sha, ICML 2012) as pure functions: arrays in, arrays out.

Rows are samples here; the paper writes samples as columns. Its symbols and ours:

========================  ==============================================================
paper                     here
========================  ==============================================================
``p``                     ``noise``; ``keep`` is ``1 - noise``
``X``, ``h^t``            rows: ``X`` of shape (n, d), ``hidden`` of shape (n, d_out)
``S = X X'``              ``Scatter.gram``, with the constant feature as ``n`` and ``total``
``W``                     ``Layer.coef`` transposed, and ``Layer.intercept`` its last column
``E[P]``, ``E[Q]``        never formed; see :func:`undrift._core.denoise.denoise`
``lambda`` (1e-5)         ``ridge``
========================  ==============================================================

*Blocks are rows, parts are columns.* Nothing in this folder knows scikit-learn, reads
files that it did not write itself, or draws random numbers it was not handed.
"""

from . import numpy_ops
from .array import Array, NotPositiveDefinite, Rows, arithmetic
from .blocks import BLOCK_ENTRIES, Blocks, Kept, Streamed, allocate, row_slices, split_rows
from .denoise import ACTIVATIONS, Layer, SingularSystem, denoise
from .gram import add_domain_centred_gram, decision, domain_centred_gram, primal_weights, submatrix
from .kfold import held_out_predictions
from .noise import Gaussian, Masking, Noise, Poisson, among
from .passing import numbered, span, take_rows
from .pivots import Split, pivot_layer, random_split
from .scatter import ROUNDING, CrossScatter, Moments, Scatter, mean_square, moments, scatter
from .stack import Grown, grow, hidden, pooled_scatter

__all__ = [
    "ACTIVATIONS",
    "BLOCK_ENTRIES",
    "ROUNDING",
    "Array",
    "Blocks",
    "CrossScatter",
    "Gaussian",
    "Grown",
    "Kept",
    "Layer",
    "Masking",
    "Moments",
    "Noise",
    "NotPositiveDefinite",
    "Poisson",
    "Rows",
    "Scatter",
    "SingularSystem",
    "Split",
    "Streamed",
    "add_domain_centred_gram",
    "allocate",
    "among",
    "arithmetic",
    "decision",
    "denoise",
    "domain_centred_gram",
    "grow",
    "held_out_predictions",
    "hidden",
    "mean_square",
    "moments",
    "numbered",
    "numpy_ops",
    "pivot_layer",
    "pooled_scatter",
    "primal_weights",
    "random_split",
    "row_slices",
    "scatter",
    "span",
    "split_rows",
    "submatrix",
    "take_rows",
]
