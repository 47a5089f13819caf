"""Background work of memory: missing vectors, document ingest, counted uses. Each is idempotent; arguments are ids."""

import logging
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import batched, islice
from typing import Any
from uuid import UUID

import numpy as np
from celery import shared_task
from django.db.models import F

from accounts.keys import Decision
from accounts.selectors import subject_by_id, tenant_ids, tenant_ref
from accounts.services import jobs
from accounts.tenancy import ALL, narrow, scope
from accounts.tenant_task import TenantTask, tenant_task
from accounts.types import SystemCaller
from accounts.usage import lossy_store
from audit.types import Actor
from consent.access import record_read
from consent.policy import decide
from consent.types import Act
from memory import index as sealed_index
from memory.access import permitted
from memory.chunking import Chunk as Piece
from memory.chunking import heading_of, searchable_text
from memory.encoding import Encoded, encode_patiently
from memory.models import Document, IndexSegment, Memory
from memory.segments import Index
from memory.services import documents
from memory.services.reading import MemoryView, opened, rows_in_order
from memory.usage import take_memory_uses

logger = logging.getLogger(__name__)

TEXTS_AT_ONCE = 16
PEOPLE_AT_ONCE = 1000
MARKS_AT_ONCE = 500
REST_SECONDS = 6 * 60 * 60
RETRY: dict[str, Any] = {"max_retries": 8, "retry_backoff": 2, "retry_backoff_max": 300, "retry_jitter": True}


class EmbedderStillAway(Exception):
    """No vectors yet; the task is tried again later."""

    code = "embedder_unavailable"


@tenant_task(autoretry_for=(EmbedderStillAway,), **RETRY)
def embed_pending(*, tenant_id: UUID, subject_id: UUID) -> int:
    """Give a person's memories that lack a vector theirs, a few at a time. Returns how many got one.

    Each batch is decided anew, so nothing is opened after a withdrawal; each memory is tried once, so that this ends.
    """
    tried: set[UUID] = set()
    done = 0
    while batch := _open_batch(tenant_id, subject_id, tried):
        tried |= {memory.id for memory in batch}
        encoded = encode_patiently([memory.text for memory in batch])
        if encoded is None:
            _let_ask_again(tenant_id, subject_id)
            raise EmbedderStillAway
        done += _store_vectors(tenant_id, subject_id, batch, encoded)
    return done


def _open_batch(tenant_id: UUID, subject_id: UUID, tried: Collection[UUID]) -> list[MemoryView]:
    """The next memories to embed. Opening them is a read like any other: recorded, and of these alone."""
    with scope(tenant_id), narrow(subject_id):
        decision = _decision(subject_id)
        if not decision.allowed:
            return []
        index = sealed_index.open_whole(decision)
        ids = [memory_id for memory_id in _without_vector(index, decision) if memory_id not in tried][:TEXTS_AT_ONCE]
        rows = rows_in_order(ids, index, decision)
        if not rows:
            return []
        grant = record_read(
            decision, [row.id for row in rows], action="memory.memory.embedded", counts={"items": len(rows)}
        )
        return opened(rows, grant)


def _without_vector(index: Index, decision: Decision) -> list[UUID]:
    """The memories that lack a vector and may appear: no others are opened for one."""
    lacking = permitted(index, decision)
    for lane in index.lanes.values():
        lacking[lane.rows] = False
    return [index.id_at(place) for place in np.flatnonzero(lacking).tolist()]


def _store_vectors(tenant_id: UUID, subject_id: UUID, batch: Sequence[MemoryView], encoded: Encoded) -> int:
    """Into the index, for the memories that still may appear and still say the same."""
    with scope(tenant_id), narrow(subject_id):
        decision = _decision(subject_id)
        if not decision.allowed:
            return 0
        waiting = set(_without_vector(sealed_index.open_whole(decision), decision))
        rows = Memory.objects.filter(id__in=waiting & {memory.id for memory in batch})
        current = dict(rows.values_list("id", "content_version"))
        changes = {
            memory.id: {"vectors": vectors}
            for memory, vectors in zip(batch, encoded.stored(), strict=True)
            if current.get(memory.id) == memory.version
        }
        return len(sealed_index.change_entries(decision, changes=changes)) if changes else 0


def _decision(subject_id: UUID) -> Decision:
    tenant = tenant_ref()
    caller = SystemCaller(tenant.id, tenant.key_epoch, Actor("system", "memory.embedding"))
    return decide(subject_by_id(subject_id), Act.STORE, caller=caller)


class DocumentTask(TenantTask):
    def on_failure(self, exc: Exception, task_id: str, args: object, kwargs: dict[str, str], einfo: object) -> None:
        """The document keeps the chunks of its version before, if any, and says that this one failed."""
        super().on_failure(exc, task_id, args, kwargs, einfo)
        with scope(UUID(kwargs["tenant_id"])):
            documents.mark_failed(UUID(kwargs["document_id"]))


@tenant_task(base=DocumentTask, autoretry_for=(EmbedderStillAway,), **RETRY)
def ingest_document(*, tenant_id: UUID, document_id: UUID, job_id: UUID) -> None:
    """Cut, embed and index a document; its old chunks are found until the new ones take their place in one commit.

    Handed out again, it does nothing to a document that is in.
    """
    with scope(tenant_id):
        document = Document.objects.filter(id=document_id).first()
        if document is None:
            jobs.fail_job(job_id, "document_removed")
            return
        if documents.is_in(document):
            jobs.finish_job(job_id, documents.ingest_result(document))
            return
    pieces = documents.cut(document)
    with scope(tenant_id):
        if len(pieces) > documents.MOST_CHUNKS:
            documents.mark_failed(document_id)
            jobs.fail_job(job_id, "document_too_fragmented")
            return
        jobs.start_job(job_id, total=len(pieces))
    made = documents.made_chunks(document, pieces, list(_encoded_pieces(tenant_id, job_id, document, pieces)))
    with scope(tenant_id):
        if documents.replace_chunks(document, made):
            jobs.finish_job(job_id, documents.ingest_result(document))
        else:
            jobs.fail_job(job_id, "document_replaced")


def _encoded_pieces(tenant_id: UUID, job_id: UUID, document: Document, pieces: list[Piece]) -> Iterator[Encoded]:
    done = 0
    for batch in batched(pieces, TEXTS_AT_ONCE):
        encoded = encode_patiently([searchable_text(document.title, heading_of(piece), piece.text) for piece in batch])
        if encoded is None:
            raise EmbedderStillAway
        yield encoded
        done += len(batch)
        with scope(tenant_id):
            jobs.advance_job(job_id, done)


@shared_task(ignore_result=True)
def embed_left_over() -> int:
    """Send the task again for people whose memories still wait for a vector: a lost or given-up try is made good.

    Some may wait for ever: sensitive ones without consent, quarantined ones. Nothing but opening a person's index can
    tell, so a person asked about rests: for six hours, or until the index changes or the embedder was away. One run
    sends at most 1,000; who is left has their turn in the next, since those sent rest meanwhile.
    """
    sent = 0
    for tenant_id in tenant_ids():
        with scope(tenant_id, ALL):
            segments = IndexSegment.objects.filter(pending__gt=0).order_by("subject_id")
            waiting = list(segments.values_list("subject_id", "subject__index_version").distinct())
        for subject_id, version in islice(_rested(tenant_id, waiting), PEOPLE_AT_ONCE - sent):
            embed_pending.delay(tenant_id=str(tenant_id), subject_id=str(subject_id))
            lossy_store().try_call(partial(_mark, tenant_id, subject_id, version), default=None)
            sent += 1
        if sent == PEOPLE_AT_ONCE:
            break
    return sent


def _rested(tenant_id: UUID, waiting: Sequence[tuple[UUID, int]]) -> Iterator[tuple[UUID, int]]:
    """Of these people with their index versions, those who were not asked about at that version lately."""
    for people in batched(waiting, MARKS_AT_ONCE):
        names = [_mark_name(tenant_id, subject_id) for subject_id, _ in people]
        marks: dict[str, int] = lossy_store().try_call(partial(_marks, names), default={})
        yield from (person for name, person in zip(names, people, strict=True) if marks.get(name) != person[1])


def _mark(tenant_id: UUID, subject_id: UUID, version: int, client: Any) -> None:
    client.set(_mark_name(tenant_id, subject_id), version, ex=REST_SECONDS)


def _marks(names: Sequence[str], client: Any) -> dict[str, int]:
    return {name: int(mark) for name, mark in zip(names, client.mget(names), strict=True) if mark is not None}


def _let_ask_again(tenant_id: UUID, subject_id: UUID) -> None:
    """The embedder was away: what was asked for is still to be done."""
    lossy_store().try_call(lambda client: client.delete(_mark_name(tenant_id, subject_id)), default=0)


def _mark_name(tenant_id: UUID, subject_id: UUID) -> str:
    return f"fmn:embedding-asked:{tenant_id}:{subject_id}"


@shared_task(ignore_result=True)
def store_memory_use() -> int:
    """Bring the counted uses into the rows: access count and last access."""
    uses = take_memory_uses()
    for member, (count, seconds) in uses.items():
        tenant_id, subject_id, memory_id = (UUID(part) for part in member.split(":"))
        with scope(tenant_id, subject_id):
            Memory.objects.filter(id=memory_id).update(
                access_count=F("access_count") + count, last_accessed_at=datetime.fromtimestamp(seconds, UTC)
            )
    return len(uses)
