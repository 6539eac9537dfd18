"""Array operations and blocks of rows on torch tensors: a GPU, or torch on the CPU."""

from . import ops
from .blocks import (
    DeviceShelf,
    StreamToDevice,
    TensorBlock,
    split_for_device,
    to_device,
    to_host,
)
from .ops import precision
