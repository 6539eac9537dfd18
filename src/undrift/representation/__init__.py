"""`MDA` and `MSDA`: one denoising layer, and a stack of them, as scikit-learn estimators."""

from .mda import MDA
from .msda import MSDA
from .subsample import check_max_rows, draw_rows
