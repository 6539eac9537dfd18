"""How much of the tasks' inner products fits into memory at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ..._inputs import OnHost, Place, check_memory
from ...corpora import Corpus
from ...errors import UndriftError
from .stacks import Part

Pairs = Collection[tuple[Part, Part]]
Key = TypeVar("Key")


class TooLarge(UndriftError):
    """Inner products that this machine cannot hold: whose, how much, and what to do."""


@dataclass(frozen=True)
class Room:
    """Memory for inner products, where the rows of a corpus are.

    Parameters
    ----------
    corpus : Corpus
    n_bytes : float
        What blocks may take that are held together; classifiers make copies beside them.
    """

    corpus: Corpus
    n_bytes: float

    def taken(self, pairs: Pairs) -> int:
        """Bytes of the blocks of some pairs, each once."""
        itemsize = next(iter(self.corpus.domains.values())).X.dtype.itemsize
        return itemsize * sum(self._n_rows(left) * self._n_rows(right) for left, right in set(pairs))

    def check(self, name: str, pairs: Pairs) -> None:
        """Refuse what does not even fit alone; `name` says what it is."""
        check_bytes(name, self.taken(pairs), self.n_bytes)

    def groups(self, wanted: Mapping[Key, Pairs], n_copies: int = 1) -> list[list[Key]]:
        """Cut what is wanted, in order, into groups whose blocks fit together; shared ones count once."""
        groups: list[list[Key]] = []
        held: set[tuple[Part, Part]] = set()
        n_bytes = 0
        for key, pairs in wanted.items():
            n_bytes += n_copies * self.taken(set(pairs) - held)
            if not groups or n_bytes > self.n_bytes:
                groups.append([])
                held, n_bytes = set(), n_copies * self.taken(pairs)
            held |= set(pairs)
            groups[-1].append(key)
        return groups

    def _n_rows(self, part: Part) -> int:
        domain = self.corpus.domains[part[0]]
        return len(domain) if part[1] == "all" else len(getattr(domain, part[1]))


def check_bytes(name: str, n_bytes: float, most: float) -> None:
    """Refuse inner products that take more than there is room for."""
    if n_bytes > most:
        raise TooLarge(
            f"the inner products of {name} take {n_bytes / 1e9:.3g} GB, where there is room for "
            f"{most / 1e9:.3g} GB: set corpus.max_rows in the plan, or use a machine with more memory"
        )


def room_for(corpus: Corpus, place: Place) -> Room:
    """A quarter of this machine's memory, where copies come to in any case, or a share of a device's."""
    most = check_memory(None)
    if not isinstance(place, OnHost):
        import torch

        from ..._core.torch import device_room

        most = min(most, device_room(torch.device(place.device)))
    return Room(corpus, most / 2)
