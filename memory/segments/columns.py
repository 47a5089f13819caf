"""The columns of an index that are more than one array: references into a table, terms, categories, vectors.

Relies on blocks for errors. Each class reads itself from the payloads of several segments at once, writes
itself to blocks, takes rows and joins. Start at References, the simplest.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory.segments.blocks import SegmentCorrupt
from memory.types import Counts, Floats, Hashes, Int8s, Positions, StoredVector, TermVector

type Payload = bytes | memoryview
type Codes = NDArray[np.int32]
type Lengths = NDArray[np.uint32]
type Offsets = NDArray[np.int64]

NOTHING = -1
LANE_HEAD = struct.Struct("<HHI")  # model number, dimension, rows


def read_array(payloads: Sequence[Payload], dtype: str, size: int) -> NDArray[Any]:
    """The payloads one after the other as one array of `size` items. Raises SegmentCorrupt."""
    content = b"".join(payloads)
    item = np.dtype(dtype)
    if len(content) != size * item.itemsize:
        raise SegmentCorrupt("a column has the wrong length")
    return np.frombuffer(content, item)


def offsets_of(lengths: Lengths) -> Offsets:
    """Where each row of a flat column starts, and one more: where the last ends. int64[n + 1]."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def flat_positions(offsets: Offsets, rows: Positions) -> Positions:
    """The positions in a flat column of all items of `rows`, row by row."""
    lengths = offsets[rows + 1] - offsets[rows]
    ends = np.cumsum(lengths)
    before = np.repeat(offsets[rows] - ends + lengths, lengths)
    return np.asarray(before + np.arange(len(before)), np.intp)


def write_strings(strings: Sequence[str]) -> bytes:
    encoded = [string.encode() for string in strings]
    return b"".join([struct.pack(f"<I{len(encoded)}I", len(encoded), *map(len, encoded)), *encoded])


def read_strings(payload: Payload) -> tuple[str, ...]:
    try:
        (count,) = struct.unpack_from("<I", payload)
        lengths = struct.unpack_from(f"<{count}I", payload, 4)
        return tuple(_cut_strings(bytes(payload[4 + 4 * count :]), lengths))
    except (struct.error, UnicodeDecodeError, MemoryError) as wrong:
        raise SegmentCorrupt("a string table cannot be read") from wrong


def _cut_strings(content: bytes, lengths: Sequence[int]) -> Iterator[str]:
    if sum(lengths) != len(content):
        raise SegmentCorrupt("a string table has the wrong length")
    start = 0
    for length in lengths:
        yield content[start : start + length].decode()
        start += length


def write_uuids(ids: Sequence[UUID]) -> bytes:
    return b"".join(each.bytes for each in ids)


def read_uuids(payload: Payload) -> tuple[UUID, ...]:
    content = bytes(payload)
    if len(content) % 16:
        raise SegmentCorrupt("an id table has the wrong length")
    return tuple(UUID(bytes=content[start : start + 16]) for start in range(0, len(content), 16))


@dataclass(frozen=True, slots=True, eq=False)
class References[T: (str, UUID)]:
    """One value or none a row: codes int32[n] into `table`, NOTHING for none."""

    codes: Codes
    table: tuple[T, ...]

    @classmethod
    def of(cls, values: Sequence[T | None]) -> Self:
        table = tuple(dict.fromkeys(value for value in values if value is not None))
        places: dict[T | None, int] = {value: place for place, value in enumerate(table)} | {None: NOTHING}
        return cls(np.array([places[value] for value in values], np.int32), table)

    @classmethod
    def joined(cls, parts: Sequence[tuple[Codes, tuple[T, ...]]]) -> Self:
        """One column of several, each with its table. Raises SegmentCorrupt for a code beyond its table."""
        if len(parts) == 1:
            _check_codes(*parts[0])
            return cls(*parts[0])
        places: dict[T, int] = {}
        codes = [_recoded(part, table, places) for part, table in parts]
        return cls(np.concatenate(codes) if codes else np.empty(0, np.int32), tuple(places))

    def as_part(self) -> tuple[Codes, tuple[T, ...]]:
        return self.codes, self.table

    def value(self, row: int) -> T | None:
        code = int(self.codes[row])
        return None if code == NOTHING else self.table[code]

    def are(self, value: T | None) -> NDArray[np.bool_]:
        """bool[n]: the rows that hold exactly this value (None: the rows that hold none)."""
        if value is None:
            return np.asarray(self.codes == NOTHING)
        matching = [code for code, held in enumerate(self.table) if held == value]
        return np.isin(self.codes, np.array(matching, np.int32))

    def take(self, rows: Positions) -> Self:
        """The table shrinks with the rows, so that a forgotten name is not left behind in it."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        absent = int(len(used) > 0 and used[0] == NOTHING)
        table = tuple(self.table[code] for code in used[absent:])
        return type(self)(codes.astype(np.int32) - absent, table)


def _check_codes(codes: Codes, table: Sequence[object]) -> None:
    if len(codes) and not (codes.min() >= NOTHING and codes.max() < len(table)):
        raise SegmentCorrupt("a code points beyond its table")


def _recoded[T: (str, UUID)](codes: Codes, table: tuple[T, ...], places: dict[T, int]) -> Codes:
    """`codes` of `table` as codes of `places`, which grows by what it lacks."""
    _check_codes(codes, table)
    if not table:
        return codes
    new: list[int] = [places.setdefault(value, len(places)) for value in table]
    return np.array([*new, NOTHING], np.int32)[codes]  # NOTHING, -1, picks the last


@dataclass(frozen=True, slots=True, eq=False)
class TermColumn:
    """The term vectors of all rows, flat: hashes uint64[t] and counts uint16[t].

    Row r holds items offsets[r] to offsets[r + 1]; lengths uint32[n]: all terms of each row, with repeats.
    """

    offsets: Offsets
    hashes: Hashes
    counts: Counts
    lengths: Lengths

    @classmethod
    def of(cls, vectors: Sequence[TermVector]) -> Self:
        return cls(
            offsets_of(np.array([len(vector.hashes) for vector in vectors], np.uint32)),
            np.concatenate([np.empty(0, np.uint64), *(vector.hashes for vector in vectors)]),
            np.concatenate([np.empty(0, np.uint16), *(vector.counts for vector in vectors)]),
            np.array([vector.length for vector in vectors], np.uint32),
        )

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        return cls(
            offsets_of(np.concatenate([np.diff(part.offsets) for part in parts]).astype(np.uint32)),
            np.concatenate([part.hashes for part in parts]),
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.lengths for part in parts]),
        )

    def row(self, row: int) -> TermVector:
        span = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        return TermVector(self.hashes[span], self.counts[span], int(self.lengths[row]))

    def take(self, rows: Positions) -> Self:
        items = flat_positions(self.offsets, rows)
        lengths = np.diff(self.offsets)[rows].astype(np.uint32)
        return type(self)(offsets_of(lengths), self.hashes[items], self.counts[items], self.lengths[rows])


@dataclass(frozen=True, slots=True, eq=False)
class CategoryColumn:
    """Any number of categories a row, flat: row r holds values offsets[r]:offsets[r+1]."""

    offsets: Offsets
    values: References[str]

    @classmethod
    def of(cls, categories: Sequence[tuple[str, ...]]) -> Self:
        offsets = offsets_of(np.array([len(each) for each in categories], np.uint32))
        return cls(offsets, References.of([name for each in categories for name in each]))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        lengths = np.concatenate([np.diff(part.offsets) for part in parts]).astype(np.uint32)
        return cls(offsets_of(lengths), References.joined([part.values.as_part() for part in parts]))

    def row(self, row: int) -> tuple[str, ...]:
        span = range(int(self.offsets[row]), int(self.offsets[row + 1]))
        return tuple(name for name in map(self.values.value, span) if name is not None)

    def have_any(self, names: frozenset[str]) -> NDArray[np.bool_]:
        """bool[n]: the rows with at least one of these categories."""
        wanted = np.array([code for code, name in enumerate(self.values.table) if name in names], np.int32)
        hits = np.zeros(len(self.values.codes) + 1, np.int64)
        np.cumsum(np.isin(self.values.codes, wanted), out=hits[1:])
        return np.asarray(hits[self.offsets[1:]] > hits[self.offsets[:-1]])

    def take(self, rows: Positions) -> Self:
        lengths = np.diff(self.offsets)[rows].astype(np.uint32)
        return type(self)(offsets_of(lengths), self.values.take(flat_positions(self.offsets, rows)))


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """The vectors of one model: vector i, of row rows[i] of the index, is values[i] * scales[i].

    rows intp[m], ascending; values int8[m, d]; scales float32[m].
    """

    model_number: int
    rows: Positions
    values: Int8s
    scales: Floats

    @classmethod
    def of(cls, model_number: int, by_row: Sequence[tuple[int, StoredVector]]) -> Self:
        """Raises ValueError when the vectors differ in dimension."""
        return cls(
            model_number,
            np.array([row for row, _ in by_row], np.intp),
            np.stack([vector.values for _, vector in by_row]),
            np.array([vector.scale for _, vector in by_row], np.float32),
        )

    @classmethod
    def read(cls, payload: memoryview, size: int) -> Self:
        if len(payload) < LANE_HEAD.size:
            raise SegmentCorrupt("cut in the head of a vector column")
        model_number, dimension, count = LANE_HEAD.unpack_from(payload)
        scales_at = LANE_HEAD.size + 4 * count
        values_at = scales_at + 4 * count
        rows = read_array([payload[LANE_HEAD.size : scales_at]], "<u4", count)
        scales = read_array([payload[scales_at:values_at]], "<f4", count)
        values = read_array([payload[values_at:]], "i1", count * dimension)
        if not count or not dimension or rows[-1] >= size or (np.diff(rows.astype(np.int64)) <= 0).any():
            raise SegmentCorrupt("a vector column names rows that are not there")
        return cls(model_number, rows.astype(np.intp), values.reshape(count, dimension), scales)

    def write(self) -> bytes:
        head = LANE_HEAD.pack(self.model_number, self.values.shape[1], len(self.rows))
        return b"".join(
            [
                head,
                self.rows.astype("<u4").tobytes(),
                self.scales.astype("<f4").tobytes(),
                self.values.tobytes(),
            ]
        )

    @classmethod
    def joined(cls, parts: Sequence[tuple[Self, int]]) -> Self:
        """Lanes of one model with the number of index rows before each. Raises SegmentCorrupt."""
        first = parts[0][0]
        if len(parts) == 1 and parts[0][1] == 0:
            return first
        if any(lane.values.shape[1] != first.values.shape[1] for lane, _ in parts):
            raise SegmentCorrupt("vectors of one model differ in dimension")
        return cls(
            first.model_number,
            np.concatenate([lane.rows + before for lane, before in parts]),
            np.concatenate([lane.values for lane, _ in parts]),
            np.concatenate([lane.scales for lane, _ in parts]),
        )

    def row(self, row: int) -> StoredVector | None:
        place = int(np.searchsorted(self.rows, row))
        if place == len(self.rows) or self.rows[place] != row:
            return None
        return StoredVector(self.values[place], float(self.scales[place]))

    def take(self, rows: Positions, size: int) -> Self:
        """`size`: rows of the index the lane belongs to. `rows` need not ascend; each may occur once."""
        places = np.full(size, NOTHING, np.intp)
        places[self.rows] = np.arange(len(self.rows))
        taken = places[rows]
        kept = np.flatnonzero(taken != NOTHING)
        return type(self)(self.model_number, kept, self.values[taken[kept]], self.scales[taken[kept]])
