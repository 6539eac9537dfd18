"""The boundary: checks and conversions of what users pass as parameters, rows, arrays, labels and devices."""

from .._registry import SAVABLE, load_cluster, savable
from .arrays import check_tensor, find_accelerator, to_host
from .device import OnHost, OnTorch, Place, check_device, check_place
from .labels import is_missing, missing_mask, spell_label
from .parameters import (
    check_choice,
    check_count,
    check_feature_noise,
    check_memory,
    check_noise,
    check_pivots,
    check_positive,
)
from .progress import CallbackSupportMixin, share_callbacks, track_steps, with_callbacks
from .rows import (
    CheckedStream,
    as_array,
    binarize_rows,
    check_fit_rows,
    check_matrix,
    check_precision,
    check_rows,
    choose_place,
    column_sums,
    dtype_of,
    gather_rows,
    on_cluster,
    place_rows,
    to_canonical,
    with_remedy,
)
