"""Array operations and blocks of rows on torch tensors: a GPU, or torch on the CPU."""

from . import ops
from .ops import precision
from .rows import (
    DeviceBlocks,
    StreamToDevice,
    TensorBlock,
    device_hidden_rows,
    free_bytes,
    split_for_device,
    to_device,
    to_host,
)
