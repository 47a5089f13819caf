"""The opened index: a struct of arrays, one column a property, and its packing into segments.

Relies on columns and blocks. Start at Index.of, Index.decode, Index.encode. Nothing is changed in place: each
operation gives a new Index.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Self
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory.segments import blocks, columns, reading
from memory.segments.blocks import SegmentCorrupt
from memory.segments.columns import CategoryColumn, Lane, References, TermColumn
from memory.segments.entry import Entry
from memory.types import Audience, Bytes, Floats, Kind, Mask, Positions, SourceClass, State, StoredVector

type Microseconds = NDArray[np.int64]
type Numbers = NDArray[np.uint32]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
NEVER: Final = int(np.iinfo(np.int64).min)
CONFIRMED, PINNED = 1, 2
POSITION_BYTES = 150  # a key of 16 bytes, a number and their places in a dict


def to_microseconds(moment: datetime | None) -> int:
    return NEVER if moment is None else (moment - EPOCH) // MICROSECOND


def from_microseconds(value: int) -> datetime | None:
    return None if value == NEVER else EPOCH + timedelta(microseconds=value)


FIRST_MOMENT = to_microseconds(datetime.min.replace(tzinfo=UTC))
LAST_MOMENT = to_microseconds(datetime.max.replace(tzinfo=UTC))


@dataclass(frozen=True, eq=False)
class Index:
    """n memories as columns. Times are int64 microseconds since 1970 in UTC, NEVER for none.

    ids uint8[n, 16]; importance and confidence float32[n]; flags hold CONFIRMED and PINNED; lanes by model
    number, each naming the rows that have a vector of that model.
    """

    ids: Bytes
    kind: Bytes
    state: Bytes
    source_class: Bytes
    purpose: Bytes
    audience: Bytes
    flags: Bytes
    analyser_version: Bytes
    importance: Floats
    confidence: Floats
    created_at: Microseconds
    valid_from: Microseconds
    valid_to: Microseconds
    superseded_at: Microseconds
    expires_at: Microseconds
    confirmed_at: Microseconds
    content_version: Numbers
    token_count: Numbers
    project: References[UUID]
    agent: References[str]
    session: References[UUID]
    terms: TermColumn
    categories: CategoryColumn
    lanes: Mapping[int, Lane]

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def empty(cls) -> Self:
        return cls.of(())

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Self:
        """One row an entry, in their order.

        Raises ValueError for an id given twice, TypeError for a naive time, OverflowError for a number that
        does not fit its column.
        """
        values = _array_values(entries)
        index = cls(
            ids=np.frombuffer(columns.write_uuids([entry.id for entry in entries]), np.uint8).reshape(-1, 16),
            **{name: np.array(values[name], dtype) for name, _, dtype in ARRAYS},
            project=References.of([entry.project_id for entry in entries]),
            agent=References.of([entry.agent for entry in entries]),
            session=References.of([entry.session_id for entry in entries]),
            terms=TermColumn.of([entry.terms for entry in entries]),
            categories=CategoryColumn.of([entry.categories for entry in entries]),
            lanes=_lanes_of(entries),
        )
        if len({entry.id for entry in entries}) != len(entries):
            raise ValueError("an id is given twice")
        return index

    @classmethod
    def decode(cls, blobs: Sequence[bytes]) -> Self:
        """The segments one after the other as one index, rows in the order of the blobs.

        Raises SegmentCorrupt when one cannot be read whole, a value is outside its set, or an id comes twice.
        """
        if not blobs:
            return cls.empty()
        segments = [blocks.read_blocks(blob, KNOWN_TAGS) for blob in blobs]
        sizes = [len(blocks.only_block(segment, reading.IDS)) // 16 for segment in segments]
        n = sum(sizes)
        plain: dict[str, Any] = {name: reading.read_column(segments, tag, dtype, n) for name, tag, dtype in ARRAYS}
        references: dict[str, Any] = {
            name: reading.read_rows_references(segments, codes, table, read, n)
            for name, codes, table, read, _ in REFERENCES
        }
        index = cls(
            ids=reading.read_column(segments, reading.IDS, "u1", 16 * n).reshape(-1, 16),
            **plain,
            **references,
            terms=reading.read_terms(segments, n),
            categories=reading.read_categories(segments, n),
            lanes=reading.read_lanes(segments, sizes),
        )
        index._check()
        return index

    def encode(self) -> bytes:
        """One segment with all rows. The same index gives the same bytes."""
        return blocks.write_blocks(self._blocks())

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        yield reading.IDS, self.ids.tobytes()
        for name, tag, dtype in ARRAYS:
            yield tag, getattr(self, name).astype(dtype, copy=False).tobytes()
        for name, codes, table, _, write in REFERENCES:
            references = getattr(self, name)
            yield codes, references.codes.astype("<i4", copy=False).tobytes()
            yield table, write(references.table)
        yield reading.TERMS_BY_ROW, np.diff(self.terms.offsets).astype("<u4", copy=False).tobytes()
        yield reading.TERM_HASHES, self.terms.hashes.astype("<u8", copy=False).tobytes()
        yield reading.TERM_COUNTS, self.terms.counts.astype("<u2", copy=False).tobytes()
        yield reading.TERM_LENGTHS, self.terms.lengths.astype("<u4", copy=False).tobytes()
        yield reading.CATEGORIES_BY_ROW, np.diff(self.categories.offsets).astype("<u4", copy=False).tobytes()
        yield reading.CATEGORIES, self.categories.values.codes.astype("<i4", copy=False).tobytes()
        yield reading.CATEGORY_TABLE, columns.write_strings(self.categories.values.table)
        for number in sorted(self.lanes):
            yield reading.LANE, self.lanes[number].write()

    def _check(self) -> None:
        for name, allowed in ENUMS.items():
            if not np.isin(getattr(self, name), [int(member) for member in allowed]).all():
                raise SegmentCorrupt(f"a {name} is outside its set")
        if (self.flags & ~np.uint8(CONFIRMED | PINNED)).any():
            raise SegmentCorrupt("a flag is not known")
        if (self.created_at == NEVER).any() or not all(_are_times(getattr(self, name)) for name in TIMES):
            raise SegmentCorrupt("a time is missing or beyond the calendar")
        if not all(np.isfinite(each).all() for each in (self.importance, self.confidence)):
            raise SegmentCorrupt("a number is not finite")
        if _has_repeats(self.ids):
            raise SegmentCorrupt("an id occurs twice")

    @property
    def size_bytes(self) -> int:
        """About what it takes in memory: its arrays, and what finds a row by its id."""
        arrays = [
            self.ids,
            *(getattr(self, name) for name, _, _ in ARRAYS),
            *(getattr(self, name).codes for name in REFERENCE_NAMES),
        ]
        arrays += [self.terms.offsets, self.terms.hashes, self.terms.counts, self.terms.lengths]
        arrays += [self.categories.offsets, self.categories.values.codes]
        arrays += [each for lane in self.lanes.values() for each in (lane.rows, lane.values, lane.scales)]
        return POSITION_BYTES * len(self) + sum(int(each.nbytes) for each in arrays)

    def without_vector(self) -> int:
        """How many rows have no vector of any model."""
        with_vector = [lane.rows for lane in self.lanes.values()]
        return len(self) - len(np.unique(np.concatenate(with_vector))) if with_vector else len(self)

    @cached_property
    def _positions(self) -> dict[bytes, int]:
        packed = self.ids.tobytes()
        return {packed[16 * row : 16 * row + 16]: row for row in range(len(self))}

    def position(self, memory_id: UUID) -> int | None:
        return self._positions.get(memory_id.bytes)

    def id_at(self, position: int) -> UUID:
        return UUID(bytes=self.ids[position].tobytes())

    def entry(self, position: int) -> Entry:
        flags = int(self.flags[position])
        return Entry(
            id=self.id_at(position),
            kind=Kind(int(self.kind[position])),
            state=State(int(self.state[position])),
            source_class=SourceClass(int(self.source_class[position])),
            purpose=int(self.purpose[position]),
            audience=Audience(int(self.audience[position])),
            importance=float(self.importance[position]),
            confidence=float(self.confidence[position]),
            created_at=EPOCH + timedelta(microseconds=int(self.created_at[position])),
            content_version=int(self.content_version[position]),
            token_count=int(self.token_count[position]),
            terms=self.terms.row(position),
            vectors=self._vectors_at(position),
            project_id=self.project.value(position),
            agent=self.agent.value(position),
            session_id=self.session.value(position),
            confirmed=bool(flags & CONFIRMED),
            pinned=bool(flags & PINNED),
            categories=self.categories.row(position),
            analyser_version=int(self.analyser_version[position]),
            **{name: from_microseconds(int(getattr(self, name)[position])) for name in OPTIONAL_TIMES},
        )

    def _vectors_at(self, position: int) -> Mapping[int, StoredVector]:
        vectors = {number: lane.row(position) for number, lane in self.lanes.items()}
        return MappingProxyType({number: vector for number, vector in vectors.items() if vector is not None})

    def take(self, rows: Positions | Mask | Sequence[int]) -> Self:
        """The rows at these positions, in this order, or those where a bool[n] mask is true."""
        chosen = np.asarray(rows)
        if chosen.dtype == np.bool_ and len(chosen) and chosen.all():
            return self
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.intp)
        lanes = {number: lane.take(chosen, len(self)) for number, lane in self.lanes.items()}
        return type(self)(
            ids=self.ids[chosen],
            **{name: getattr(self, name)[chosen] for name, _, _ in ARRAYS},
            **{name: getattr(self, name).take(chosen) for name in REFERENCE_NAMES},
            terms=self.terms.take(chosen),
            categories=self.categories.take(chosen),
            lanes={number: lane for number, lane in lanes.items() if len(lane.rows)},
        )

    def without(self, ids: Collection[UUID]) -> Self:
        """The index without these memories; ids it does not hold change nothing."""
        keep = np.ones(len(self), np.bool_)
        keep[[row for row in map(self.position, ids) if row is not None]] = False
        return self.take(keep)

    def updated(self, memory_id: UUID, **changes: Any) -> Self:
        """The index with fields of one Entry changed, in its place. Raises KeyError for an unknown id."""
        place = self.position(memory_id)
        if place is None:
            raise KeyError(memory_id)
        changed = self.of([dataclasses.replace(self.entry(place), **changes)])
        before, after = np.arange(place), np.arange(place + 1, len(self))
        return self.joined([self.take(before), changed, self.take(after)])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The rows of all parts, in order. Raises SegmentCorrupt for an id in two parts."""
        if not parts:
            return cls.empty()
        plain: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name, _, _ in ARRAYS}
        references: dict[str, Any] = {
            name: References.joined([getattr(part, name).as_part() for part in parts]) for name in REFERENCE_NAMES
        }
        index = cls(
            ids=np.concatenate([part.ids for part in parts]),
            **plain,
            **references,
            terms=TermColumn.joined([part.terms for part in parts]),
            categories=CategoryColumn.joined([part.categories for part in parts]),
            lanes=reading.join_lanes((part.lanes.values(), len(part)) for part in parts),
        )
        index._check()
        return index


# name, tag of its block, type of its items
ARRAYS: Final = (
    ("kind", 0x10, "u1"),
    ("state", 0x11, "u1"),
    ("source_class", 0x12, "u1"),
    ("purpose", 0x13, "u1"),
    ("audience", 0x14, "u1"),
    ("flags", 0x15, "u1"),
    ("analyser_version", 0x20, "u1"),
    ("importance", 0x16, "<f4"),
    ("confidence", 0x17, "<f4"),
    ("created_at", 0x18, "<i8"),
    ("valid_from", 0x19, "<i8"),
    ("valid_to", 0x1A, "<i8"),
    ("superseded_at", 0x1B, "<i8"),
    ("expires_at", 0x1C, "<i8"),
    ("confirmed_at", 0x1D, "<i8"),
    ("content_version", 0x1E, "<u4"),
    ("token_count", 0x1F, "<u4"),
)
REFERENCES: Final[tuple[tuple[str, int, int, Callable[[memoryview], Any], Callable[[Any], bytes]], ...]] = (
    ("project", reading.PROJECTS, reading.PROJECT_TABLE, columns.read_uuids, columns.write_uuids),
    ("agent", reading.AGENTS, reading.AGENT_TABLE, columns.read_strings, columns.write_strings),
    ("session", reading.SESSIONS, reading.SESSION_TABLE, columns.read_uuids, columns.write_uuids),
)
REFERENCE_NAMES = tuple(name for name, *_ in REFERENCES)
KNOWN_TAGS = frozenset(
    [
        reading.IDS,
        *(tag for _, tag, _ in ARRAYS),
        *(tag for _, codes, table, _, _ in REFERENCES for tag in (codes, table)),
        *(reading.TERMS_BY_ROW, reading.TERM_HASHES, reading.TERM_COUNTS, reading.TERM_LENGTHS),
        *(reading.CATEGORIES_BY_ROW, reading.CATEGORIES, reading.CATEGORY_TABLE),
        reading.LANE,
    ]
)
ENUMS: Final[Mapping[str, type[IntEnum]]] = {
    "kind": Kind,
    "state": State,
    "source_class": SourceClass,
    "audience": Audience,
}
OPTIONAL_TIMES = ("valid_from", "valid_to", "superseded_at", "expires_at", "confirmed_at")
TIMES = ("created_at", *OPTIONAL_TIMES)
PLAIN_NUMBERS = (
    *ENUMS,
    "purpose",
    "importance",
    "confidence",
    "content_version",
    "token_count",
    "analyser_version",
)


def _array_values(entries: Sequence[Entry]) -> dict[str, list[Any]]:
    """The values of every plain column, by its name."""
    values: dict[str, list[Any]] = {name: [getattr(each, name) for each in entries] for name in PLAIN_NUMBERS}
    for name in TIMES:
        values[name] = [to_microseconds(getattr(each, name)) for each in entries]
    values["flags"] = [CONFIRMED * each.confirmed | PINNED * each.pinned for each in entries]
    return values


def _lanes_of(entries: Sequence[Entry]) -> Mapping[int, Lane]:
    rows: dict[int, list[tuple[int, StoredVector]]] = {}
    for row, each in enumerate(entries):
        for number, vector in each.vectors.items():
            rows.setdefault(number, []).append((row, vector))
    return {number: Lane.of(number, by_row) for number, by_row in rows.items()}


def _are_times(moments: Microseconds) -> bool:
    return bool(((moments == NEVER) | ((moments >= FIRST_MOMENT) & (moments <= LAST_MOMENT))).all())


def _has_repeats(ids: Bytes) -> bool:
    """The second halves, almost all random bits, are compared first: sorting them is cheap."""
    halves = np.sort(np.ascontiguousarray(ids).view(np.uint64).reshape(-1, 2)[:, 1])
    if not (halves[1:] == halves[:-1]).any():
        return False
    return len(np.unique(ids, axis=0)) < len(ids)
