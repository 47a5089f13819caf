"""Background work of memory: missing vectors, document ingest, counted uses. Each is idempotent; arguments are ids."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import batched
from typing import Any
from uuid import UUID

from celery import shared_task
from django.db.models import F

from accounts.selectors import subject_by_id, tenant_ids, tenant_ref
from accounts.services import jobs
from accounts.tenancy import ALL, narrow, scope
from accounts.tenant_task import TenantTask, tenant_task
from accounts.types import SystemCaller
from audit.types import Actor
from consent.access import record_read
from consent.policy import decide
from consent.types import Act
from memory import index as sealed_index
from memory.chunking import Chunk as Piece
from memory.chunking import heading_of, searchable_text
from memory.encoding import Encoded, encode_patiently
from memory.models import Document, IndexSegment, Memory
from memory.services import documents
from memory.services.reading import opened, rows_in_order
from memory.usage import take_memory_uses

logger = logging.getLogger(__name__)

TEXTS_AT_ONCE = 16
RETRY: dict[str, Any] = {"max_retries": 8, "retry_backoff": 2, "retry_backoff_max": 300, "retry_jitter": True}


class EmbedderStillAway(Exception):
    """No vectors yet; the task is tried again later."""

    code = "embedder_unavailable"


@tenant_task(autoretry_for=(EmbedderStillAway,), **RETRY)
def embed_pending(*, tenant_id: UUID, subject_id: UUID) -> int:
    """Give a person's memories that lack a vector theirs. Returns how many got one. Does nothing after a withdrawal."""
    texts = _texts_without_vector(tenant_id, subject_id)
    done = 0
    for batch in batched(texts.items(), TEXTS_AT_ONCE):
        encoded = encode_patiently([text for _, (text, _) in batch])
        if encoded is None:
            raise EmbedderStillAway
        done += _store_vectors(
            tenant_id, subject_id, {memory_id: version for memory_id, (_, version) in batch}, encoded
        )
    return done


def _texts_without_vector(tenant_id: UUID, subject_id: UUID) -> dict[UUID, tuple[str, int]]:
    """Text and content version by id. Opening them is a read like any other, and recorded."""
    with scope(tenant_id), narrow(subject_id):
        caller = _caller("memory.embedding")
        decision = decide(subject_by_id(subject_id), Act.STORE, caller=caller)
        if not decision.allowed:
            return {}
        index = sealed_index.open_whole(decision)
        pending = [entry.id for entry in map(index.entry, range(len(index))) if not entry.vectors]
        if not pending:
            return {}
        rows = rows_in_order(pending, index, decision)
        grant = record_read(decision, pending, action="memory.memory.embedded", counts={"items": len(rows)})
        return {memory.id: (memory.text, memory.version) for memory in opened(rows, grant)}


def _store_vectors(tenant_id: UUID, subject_id: UUID, versions: dict[UUID, int], encoded: Encoded) -> int:
    """Into the index, for the memories that are still there and still say the same."""
    with scope(tenant_id), narrow(subject_id):
        decision = decide(subject_by_id(subject_id), Act.STORE, caller=_caller("memory.embedding"))
        if not decision.allowed:
            return 0
        current = dict(Memory.objects.filter(id__in=versions).values_list("id", "content_version"))
        changes = {
            memory_id: {"vectors": vectors}
            for (memory_id, version), vectors in zip(versions.items(), encoded.stored(), strict=True)
            if current.get(memory_id) == version
        }
        return len(sealed_index.change_entries(decision, changes=changes))


class DocumentTask(TenantTask):
    def on_failure(self, exc: Exception, task_id: str, args: object, kwargs: dict[str, str], einfo: object) -> None:
        """The document keeps the chunks of its version before, if any, and says that this one failed."""
        super().on_failure(exc, task_id, args, kwargs, einfo)
        with scope(UUID(kwargs["tenant_id"])):
            documents.mark_failed(UUID(kwargs["document_id"]))


@tenant_task(base=DocumentTask, autoretry_for=(EmbedderStillAway,), **RETRY)
def ingest_document(*, tenant_id: UUID, document_id: UUID, job_id: UUID) -> None:
    """Cut, embed and index a document; its old chunks are found until the new ones take their place in one commit."""
    with scope(tenant_id):
        document = Document.objects.filter(id=document_id).first()
        if document is None:
            jobs.fail_job(job_id, "document_removed")
            return
        pieces = documents.cut(document)
        jobs.start_job(job_id, total=len(pieces))
    encoded = list(_encoded_pieces(tenant_id, job_id, document, pieces))
    with scope(tenant_id):
        current = documents.replace_chunks(document_id, document.version, pieces, encoded)
        if current:
            jobs.finish_job(
                job_id, {"document_id": str(document_id), "chunks": len(pieces), "version": document.version}
            )
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
    """Send the task again for everybody whose memories still wait for a vector: a lost or given-up try is made good."""
    sent = 0
    for tenant_id in tenant_ids():
        with scope(tenant_id, ALL):
            waiting = list(IndexSegment.objects.filter(pending__gt=0).values_list("subject_id", flat=True).distinct())
        for subject_id in waiting:
            embed_pending.delay(tenant_id=str(tenant_id), subject_id=str(subject_id))
            sent += 1
    return sent


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


def _caller(part: str) -> SystemCaller:
    tenant = tenant_ref()
    return SystemCaller(tenant.id, tenant.key_epoch, Actor("system", part))
