"""Columns out of the blocks of several segments at once: one pass a column, however many segments.

Relies on blocks and columns. The tags here are written into sealed indexes: never renumber one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np

from memory.segments import blocks, columns
from memory.segments.blocks import Blocks, SegmentCorrupt
from memory.segments.columns import CategoryColumn, Lane, References, TermColumn

IDS, PROJECTS, PROJECT_TABLE, AGENTS, AGENT_TABLE, SESSIONS, SESSION_TABLE = range(0x01, 0x08)
TERMS_BY_ROW, TERM_HASHES, TERM_COUNTS, TERM_LENGTHS = range(0x30, 0x34)
CATEGORIES_BY_ROW, CATEGORIES, CATEGORY_TABLE = range(0x34, 0x37)
LANE = 0x40


def read_column(segments: Sequence[Blocks], tag: int, dtype: str, size: int) -> Any:
    return columns.read_array([blocks.only_block(segment, tag) for segment in segments], dtype, size)


def read_references[T: (str, UUID)](
    segments: Sequence[Blocks],
    codes_tag: int,
    table_tag: int,
    read_table: Callable[[memoryview], tuple[T, ...]],
) -> References[T]:
    return References.joined(
        [
            (
                np.frombuffer(_whole(blocks.only_block(segment, codes_tag), 4), "<i4"),
                read_table(blocks.only_block(segment, table_tag)),
            )
            for segment in segments
        ]
    )


def read_rows_references[T: (str, UUID)](
    segments: Sequence[Blocks],
    codes_tag: int,
    table_tag: int,
    read_table: Callable[[memoryview], tuple[T, ...]],
    size: int,
) -> References[T]:
    """References with exactly one code a row."""
    references = read_references(segments, codes_tag, table_tag, read_table)
    if len(references.codes) != size:
        raise SegmentCorrupt("a column has the wrong length")
    return references


def read_terms(segments: Sequence[Blocks], size: int) -> TermColumn:
    offsets = columns.offsets_of(read_column(segments, TERMS_BY_ROW, "<u4", size))
    items = int(offsets[-1])
    return TermColumn(
        offsets,
        read_column(segments, TERM_HASHES, "<u8", items),
        read_column(segments, TERM_COUNTS, "<u2", items),
        read_column(segments, TERM_LENGTHS, "<u4", size),
    )


def read_categories(segments: Sequence[Blocks], size: int) -> CategoryColumn:
    offsets = columns.offsets_of(read_column(segments, CATEGORIES_BY_ROW, "<u4", size))
    values = read_references(segments, CATEGORIES, CATEGORY_TABLE, columns.read_strings)
    if len(values.codes) != int(offsets[-1]) or (values.codes < 0).any():
        raise SegmentCorrupt("the categories do not fit their rows")
    return CategoryColumn(offsets, values)


def read_lanes(segments: Sequence[Blocks], sizes: Sequence[int]) -> Mapping[int, Lane]:
    return join_lanes(
        ([Lane.read(payload, size) for payload in segment.get(LANE, ())], size)
        for segment, size in zip(segments, sizes, strict=True)
    )


def join_lanes(parts: Iterable[tuple[Iterable[Lane], int]]) -> Mapping[int, Lane]:
    """Lanes of consecutive parts of an index, each part with its number of rows, by model number."""
    found: dict[int, list[tuple[Lane, int]]] = {}
    before = 0
    for lanes, size in parts:
        for lane in lanes:
            found.setdefault(lane.model_number, []).append((lane, before))
        before += size
    return {number: Lane.joined(lanes) for number, lanes in found.items()}


def _whole(payload: memoryview, item_size: int) -> memoryview:
    if len(payload) % item_size:
        raise SegmentCorrupt("a column has the wrong length")
    return payload
