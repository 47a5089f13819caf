"""The sealed index of a person, opened under a decision, and kept in few segments. The only writer of IndexSegment.

A write adds one segment of its own; when a size class is full its segments are merged in the same transaction, so that
n memories lie in O(log n) classes of at most 16 and no background job is needed. Forgetting rewrites the segment that
held the entry. The list of segments is signed with every write, so that an old segment put back is noticed even as a
whole row. Everything here runs in the person's scope.

An opened index is held in memory for a minute at most (decisions/0012). Each use still asks which segments there are
and checks their list; what is spared is fetching and opening bodies that are, to the very row, those opened before.
"""

import hmac
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import F
from django.db.models.expressions import RawSQL

from accounts.keys import Decision, list_digest, open_index, raise_alarm, seal_fields, subject_of
from accounts.services.subjects import index_list_digest, raise_index_version, sign_index_list
from accounts.tenancy import Question, ask, current_scope
from memory.models import IndexSegment
from memory.segments import Entry, HeldIndexes, Index, SegmentCorrupt

# Segments below each size are merged when there are this many of them; the largest stay at about a thousand entries.
SIZE_CLASSES = ((16, 16), (256, 16), (1024, 4))


held = HeldIndexes()


@dataclass(frozen=True, slots=True)
class OpenSegment:
    row: IndexSegment
    index: Index


def open_segments(decision: Decision) -> list[OpenSegment]:
    """All segments, opened one by one. Raises TagMismatch for one that is not authentic, not whole or not current."""
    return [OpenSegment(row, _decoded([row], decision)) for row in _current_rows(decision)]


def open_whole(decision: Decision) -> Index:
    """The person's whole index as one struct of arrays: opened anew when anything of it has changed."""
    subject = subject_of(decision)
    owner = (subject.tenant_id, subject.id)
    if owner in held:
        found = held.get(owner, _stamp(_current_rows(decision, without_bodies=True), decision))
        if found is not None:
            return found
    rows = _current_rows(decision)
    index = _decoded(rows, decision)
    if rows:
        held.put(owner, _stamp(rows, decision), index)
    return index


def _stamp(rows: Sequence[Any], decision: Decision) -> tuple[Any, ...]:
    """Of what an index was opened from. `written` changes with every writing of a row, whatever the row then says.

    The epochs come with the rows of tenant and person, so erasure and rotation end it at once, as they do a key's hold.
    """
    epochs = decision.tenant_epoch, subject_of(decision).key_epoch
    return epochs + tuple((row.id, row.content_version, row.written) for row in rows)


def add_entries(entries: Sequence[Entry], decision: Decision) -> None:
    """Add entries as one segment, and merge the size classes that are full."""
    with _writing(decision):
        row = IndexSegment(tenant_id=decision.tenant_id, subject_id=subject_of(decision).id)
        _save(row, Index.of(entries), decision)
        _merge_full_classes(decision)


def change_entries(
    decision: Decision,
    *,
    changes: Mapping[UUID, Mapping[str, Any]] | None = None,
    removed: Collection[UUID] = (),
) -> set[UUID]:
    """Rewrite the segments that hold these entries. Returns the ids that were found."""
    wanted = set(changes or {}) | set(removed)
    found: set[UUID] = set()
    with _writing(decision):
        for segment in open_segments(decision):
            here = {memory_id for memory_id in wanted if segment.index.position(memory_id) is not None}
            if here:
                found |= here
                _rewrite(segment, here, changes or {}, decision)
    return found


@contextmanager
def _writing(decision: Decision) -> Iterator[None]:
    """Writers of one person's index take turns until their commits; each checks the list it finds and signs its own."""
    subject_id = subject_of(decision).id
    raise_index_version(subject_id)
    _current_rows(decision, without_bodies=True)
    yield
    rows = _segments(without_bodies=True)
    sign_index_list(subject_id, _list_digest(rows, decision))


def _segments(*, without_bodies: bool = False) -> Sequence[Any]:
    """All of them with the signed list they must be on: one statement, so that both are of one moment."""
    if without_bodies:
        return _heads()
    # `written`: the transaction that wrote this row, and the row's place.
    written = RawSQL("memory_indexsegment.xmin::text || memory_indexsegment.ctid::text", ())
    rows = IndexSegment.objects.order_by("id").annotate(signed=F("subject__index_list_digest"), written=written)
    return list(rows)


# Written out, since every recall asks it. The subject is in the scope as the segments are.
_HEADS = """
    SELECT i.id, i.content_version, i.xmin::text || i.ctid::text, s.index_list_digest
    FROM memory_indexsegment i JOIN accounts_subject s ON s.id = i.subject_id
    WHERE i.tenant_id = %s AND i.subject_id = %s AND s.tenant_id = %s AND s.id = %s ORDER BY i.id
"""


@dataclass(frozen=True, slots=True)
class _Head:
    """A segment without its body."""

    id: UUID
    content_version: int
    written: str
    signed: bytes | None


def _heads() -> list[_Head]:
    scope = current_scope()
    (rows,) = ask(Question(_HEADS, (scope.tenant_id, scope.subject, scope.tenant_id, scope.subject)))
    return [_Head(*row) for row in rows]


def _current_rows(decision: Decision, *, without_bodies: bool = False) -> Sequence[IndexSegment]:
    """The segments, if they are the ones on the signed list; else alarm and TagMismatch."""
    rows = _segments(without_bodies=without_bodies)
    if not rows:
        return _none_expected(decision)
    if not hmac.compare_digest(bytes(rows[0].signed or b""), _list_digest(rows, decision)):
        raise_alarm(decision, rows[0].id)
    return rows


def _none_expected(decision: Decision) -> Sequence[IndexSegment]:
    """No segments: none were ever written, or all were taken away. The first writer may have committed just now."""
    signed = index_list_digest(subject_of(decision).id)
    if signed is not None and not hmac.compare_digest(signed, _list_digest((), decision)):
        rows = _segments()
        if not rows:
            raise_alarm(decision, subject_of(decision).id)
        return rows
    return ()


def _list_digest(rows: Sequence[IndexSegment], decision: Decision) -> bytes:
    return list_digest(decision, (row.id.bytes + row.content_version.to_bytes(8, "big") for row in rows))


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
    sizes = dict(IndexSegment.objects.order_by("id").values_list("id", "entries"))
    smallest = 0
    for below, fan_in in SIZE_CLASSES:
        full = [segment_id for segment_id, entries in sizes.items() if smallest <= entries < below]
        if len(full) >= fan_in:
            merged = _merge(full, decision)
            sizes = {segment_id: size for segment_id, size in sizes.items() if segment_id not in full}
            sizes[merged.id] = merged.entries
        smallest = below


def _merge(segment_ids: Sequence[UUID], decision: Decision) -> IndexSegment:
    """Into the first of them."""
    rows = list(IndexSegment.objects.filter(id__in=segment_ids).order_by("id"))
    merged = _decoded(rows, decision)
    IndexSegment.objects.filter(id__in=segment_ids[1:]).delete()
    _save(rows[0], merged, decision)
    return rows[0]


def _save(row: IndexSegment, index: Index, decision: Decision) -> None:
    row.entries, row.pending = len(index), index.without_vector()
    seal_fields(row, decision, body_sealed=index.encode())
    row.save()


def _decoded(rows: Sequence[IndexSegment], decision: Decision) -> Index:
    blobs = [open_index(row.body_sealed, decision) for row in rows]
    try:
        return Index.decode(blobs)
    except SegmentCorrupt:
        raise_alarm(decision, rows[0].id)
