"""The boundary: checks and conversions of parameters, rows, arrays, labels and devices."""

from .arrays import find_accelerator, to_host
from .device import OnHost, OnTorch, Place, check_device, check_place
from .labels import is_missing, missing_mask, settle_labels, spell_label
from .parameters import (
    check_choice,
    check_count,
    check_feature_noise,
    check_noise,
    check_pivots,
    check_positive,
    half_of_memory,
    refuse_cross_validation,
)
from .progress import CallbackSupportMixin, all_or_nothing, share_callbacks, track_steps, with_callbacks
from .registry import SAVABLE, load_cluster, savable
from .rows import (
    as_array,
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
)
