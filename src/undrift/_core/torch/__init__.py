"""The array verbs and the row engine on torch tensors: a GPU, or torch on the CPU."""

from . import ops
from .fetch import fetching
from .ops import precision
from .rows import Carried, Held, OnDevice, device_blocks, device_room, hidden_rows, to_device

__all__ = [
    "Carried",
    "Held",
    "OnDevice",
    "device_blocks",
    "device_room",
    "fetching",
    "hidden_rows",
    "ops",
    "precision",
    "to_device",
]
