"""The boundary: what users may pass as parameters, rows, arrays, labels and devices, checked once."""

from .arrays import accelerator, fetched, sound_tensor
from .cluster import load_cluster, register_cluster
from .device import OnHost, OnTorch, Place, check_place, checked_device
from .labels import is_missing, missing, spell_label
from .parameters import check_choice, check_count, check_memory, check_noise, check_pivots, check_positive
from .progress import CallbackSupportMixin, tracked, with_callbacks
from .rows import (
    CheckedStream,
    as_array,
    binarized,
    canonical,
    checked_matrix,
    checked_rows,
    column_sums,
    dtype_of,
    gathered,
    on_cluster,
    place_of,
    placed,
    retold,
    rows_of_fit,
)
from .savable import SAVABLE, savable

__all__ = [
    "SAVABLE",
    "CallbackSupportMixin",
    "CheckedStream",
    "OnHost",
    "OnTorch",
    "Place",
    "accelerator",
    "as_array",
    "binarized",
    "canonical",
    "check_choice",
    "check_count",
    "check_memory",
    "check_noise",
    "check_pivots",
    "check_place",
    "check_positive",
    "checked_device",
    "checked_matrix",
    "checked_rows",
    "column_sums",
    "dtype_of",
    "fetched",
    "gathered",
    "is_missing",
    "load_cluster",
    "missing",
    "on_cluster",
    "place_of",
    "placed",
    "register_cluster",
    "retold",
    "rows_of_fit",
    "savable",
    "sound_tensor",
    "spell_label",
    "tracked",
    "with_callbacks",
]
