"""The paper (Chen, Xu, Weinberger, Sha, ICML 2012) as pure functions: arrays in, arrays out.

Rows are samples here; the paper writes samples as columns. Its symbols and ours:

========================  ==============================================================
paper                     here
========================  ==============================================================
``p``                     ``noise``; ``keep`` is ``1 - noise``
``X``, ``h^t``            rows: ``X`` of shape (n, d), ``hidden`` of shape (n, d_out)
``S = X X'``              ``Scatter.gram``, with the constant feature as ``n`` and ``total``
``W``                     ``Layer.coef`` transposed, and ``Layer.intercept`` its last column
``E[P]``, ``E[Q]``        never formed; see :func:`undrift.core.denoise.denoise`
``lambda`` (1e-5)         ``ridge``
========================  ==============================================================

*Blocks are rows, parts are columns.* This package does not import scikit-learn, reads no files but
temporary ones that it wrote, and draws random numbers only from a generator that it is given.
"""

from . import numpy_ops
from .array import Array, NotPositiveDefinite, Rows, array_ops, stack_rows
from .blocks import (
    BLOCK_ENTRIES,
    Blocks,
    HostShelf,
    IsFew,
    StoredBlocks,
    StreamedBlocks,
    row_slices,
    split_rows,
    take_rows,
)
from .denoise import Layer, LayerOptions, SingularSystem, System, denoise
from .form import Form, choose_form, hidden_form
from .gram import (
    add_domain_centred_gram,
    domain_centred_cross,
    domain_centred_gram,
    primal_weights,
    shifted_inverse,
    shifted_solve,
    submatrix,
)
from .numpy_ops import ACTIVATIONS
from .packing import Bits, PackedLayer, PackedRows, pack_layers, unpack_layers
from .row_form import RowCoef
from .scatter import CrossScatter, Moments, Scatter, mean_square, moments, scatter
from .stack import (
    FittedLayer,
    LayerSolver,
    PivotSplit,
    choose_pivots,
    fit_layers,
    hidden_rows,
)
