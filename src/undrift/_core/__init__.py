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
from .array import Array, NotPositiveDefinite, Rows, array_ops
from .blocks import BLOCK_ENTRIES, Blocks, StoredBlocks, StreamedBlocks, allocate, row_slices, split_rows
from .denoise import ACTIVATIONS, Layer, Noise, SingularSystem, denoise, select_noise
from .gram import add_domain_centred_gram, decision_scores, domain_centred_gram, primal_weights, submatrix
from .kfold import held_out_predictions
from .passing import as_slice, blocks_with_offsets, take_rows
from .pivots import PivotSplit, choose_pivots, fit_pivot_layer
from .scatter import ROUNDING, CrossScatter, Moments, Scatter, mean_square, moments, scatter
from .stack import FittedLayer, fit_layers, hidden_rows, pooled_scatter

__all__ = [
    "ACTIVATIONS",
    "BLOCK_ENTRIES",
    "ROUNDING",
    "Array",
    "Blocks",
    "CrossScatter",
    "FittedLayer",
    "Layer",
    "Moments",
    "Noise",
    "NotPositiveDefinite",
    "PivotSplit",
    "Rows",
    "Scatter",
    "SingularSystem",
    "StoredBlocks",
    "StreamedBlocks",
    "add_domain_centred_gram",
    "allocate",
    "array_ops",
    "as_slice",
    "blocks_with_offsets",
    "choose_pivots",
    "decision_scores",
    "denoise",
    "domain_centred_gram",
    "fit_layers",
    "fit_pivot_layer",
    "held_out_predictions",
    "hidden_rows",
    "mean_square",
    "moments",
    "numpy_ops",
    "pooled_scatter",
    "primal_weights",
    "row_slices",
    "scatter",
    "select_noise",
    "split_rows",
    "submatrix",
    "take_rows",
]
