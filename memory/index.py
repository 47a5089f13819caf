"""The sealed index of a person, opened under a decision, and kept in few segments. The only writer of IndexSegment.

A write adds one segment of its own; when a size class is full its segments are merged in the same transaction, so that
n memories lie in O(log n) classes of at most 16 and no background job is needed. Forgetting rewrites the segment that
held the entry. Everything here runs in the person's scope.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from accounts.keys import Decision, open_index, raise_alarm, seal_fields, subject_of
from accounts.services.subjects import raise_index_version
from memory.models import IndexSegment
from memory.segments import Entry, Index, SegmentCorrupt

# Segments below each size are merged when there are this many of them; the largest stay at about a thousand entries.
SIZE_CLASSES = ((16, 16), (256, 16), (1024, 4))


@dataclass(frozen=True, slots=True)
class OpenSegment:
    row: IndexSegment
    index: Index


def open_segments(decision: Decision) -> list[OpenSegment]:
    """All segments, opened one by one. Raises TagMismatch for a blob that is not authentic or not whole."""
    return [OpenSegment(row, _decoded([row], decision)) for row in IndexSegment.objects.order_by("id")]


def open_whole(decision: Decision) -> Index:
    """The person's whole index as one struct of arrays: one query, one opening a segment, one decoding."""
    return _decoded(list(IndexSegment.objects.order_by("id")), decision)


def add_entries(entries: Sequence[Entry], decision: Decision) -> None:
    """Add entries as one segment, and merge the size classes that are full."""
    subject_id = subject_of(decision).id
    raise_index_version(subject_id)
    _save(IndexSegment(tenant_id=decision.tenant_id, subject_id=subject_id), Index.of(entries), decision)
    _merge_full_classes(decision)


def change_entries(
    decision: Decision,
    *,
    changes: Mapping[UUID, Mapping[str, Any]] | None = None,
    removed: Collection[UUID] = (),
) -> set[UUID]:
    """Rewrite the segments that hold these entries. Returns the ids that were found."""
    raise_index_version(subject_of(decision).id)
    wanted = set(changes or {}) | set(removed)
    found: set[UUID] = set()
    for segment in open_segments(decision):
        here = {memory_id for memory_id in wanted if segment.index.position(memory_id) is not None}
        if here:
            found |= here
            _rewrite(segment, here, changes or {}, decision)
    return found


def _rewrite(
    segment: OpenSegment, here: set[UUID], changes: Mapping[UUID, Mapping[str, Any]], decision: Decision
) -> None:
    index = segment.index.without(here - set(changes))
    for memory_id in here & set(changes):
        index = index.updated(memory_id, **changes[memory_id])
    if len(index):
        _save(segment.row, index, decision)
    else:
        segment.row.delete()


def _merge_full_classes(decision: Decision) -> None:
    """One size class after the other, the small ones first, since merging one may fill the next."""
    smallest = 0
    for below, fan_in in SIZE_CLASSES:
        full = list(IndexSegment.objects.filter(entries__gte=smallest, entries__lt=below).order_by("id"))
        if len(full) >= fan_in:
            _merge(full, decision)
        smallest = below


def _merge(rows: list[IndexSegment], decision: Decision) -> None:
    """Into the first of them."""
    merged = _decoded(rows, decision)
    IndexSegment.objects.filter(id__in=[row.id for row in rows[1:]]).delete()
    _save(rows[0], merged, decision)


def _save(row: IndexSegment, index: Index, decision: Decision) -> None:
    row.entries, row.pending = len(index), index.without_vector()
    seal_fields(row, decision, body_sealed=index.encode())
    row.save()


def _decoded(rows: list[IndexSegment], decision: Decision) -> Index:
    blobs = [open_index(row.body_sealed, decision) for row in rows]
    try:
        return Index.decode(blobs)
    except SegmentCorrupt:
        raise_alarm(decision, rows[0].id)
