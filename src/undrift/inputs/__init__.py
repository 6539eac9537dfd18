"""The boundary: checks and conversions of parameters, rows, arrays, labels and devices."""

from .device import Place, check_device, check_place, find_accelerator, to_host
from .estimators import (
    all_or_nothing,
    follow_steps,
    load_cluster,
    track_steps,
)
from .parameters import (
    Column,
    check_choice,
    check_count,
    check_noise,
    check_pivots,
    check_positive,
    half_of_memory,
    is_missing,
    missing_mask,
    settle_labels,
    spell_label,
)
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
