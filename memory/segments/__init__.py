"""The sealed index of a person: everything ranking needs, as columns that pack into sealed segments.

Relies on numpy and memory.types; knows no keys and no database: bytes come in opened and go out to be sealed.
Start at Index: `Index.decode(blobs)` opens, `Index.of(entries).encode()` packs.
"""

from memory.segments.blocks import SegmentCorrupt
from memory.segments.columns import Lane
from memory.segments.entry import Entry
from memory.segments.held import HeldIndexes
from memory.segments.index import Index

__all__ = ["Entry", "HeldIndexes", "Index", "Lane", "SegmentCorrupt"]
