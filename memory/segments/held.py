"""Opened indexes held in memory for up to a minute, so that a recall need not open what it opened a moment ago.

Knows no keys: what an index was opened from is said by a stamp, and an index is given out under that very stamp alone.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from memory.segments.index import Index

HELD_SECONDS = 60.0
HELD_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Held:
    stamp: Hashable
    index: Index
    bytes: int
    until: float


class HeldIndexes:
    """One index an owner, bounded in bytes and age; safe from any thread. The oldest goes first."""

    def __init__(self, *, most_bytes: int = HELD_BYTES, seconds: float = HELD_SECONDS) -> None:
        self._most_bytes, self._seconds = most_bytes, seconds
        self._by_owner: OrderedDict[Hashable, _Held] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __contains__(self, owner: Hashable) -> bool:
        with self._lock:
            self._drop_old()
            return owner in self._by_owner

    def get(self, owner: Hashable, stamp: Hashable) -> Index | None:
        """What was opened under another stamp is dropped: it will not be asked for again."""
        with self._lock:
            self._drop_old()
            found = self._by_owner.get(owner)
            if found is not None and found.stamp == stamp:
                return found.index
            self._drop(owner)
            return None

    def put(self, owner: Hashable, stamp: Hashable, index: Index) -> None:
        size = index.size_bytes
        with self._lock:
            self._drop(owner)
            self._drop_old()
            if size > self._most_bytes:
                return
            self._by_owner[owner] = _Held(stamp, index, size, time.monotonic() + self._seconds)
            self._bytes += size
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._by_owner)))

    def clear(self) -> None:
        with self._lock:
            self._by_owner.clear()
            self._bytes = 0

    def _drop_old(self) -> None:
        now = time.monotonic()
        while self._by_owner and next(iter(self._by_owner.values())).until <= now:
            self._drop(next(iter(self._by_owner)))

    def _drop(self, owner: Hashable) -> None:
        found = self._by_owner.pop(owner, None)
        self._bytes -= found.bytes if found else 0
