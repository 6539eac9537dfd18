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
