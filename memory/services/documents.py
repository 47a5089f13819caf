"""Shared knowledge: documents stored, cut into chunks, embedded, replaced in one commit, removed."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import batched
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from accounts import selectors as accounts
from accounts.errors import ProjectForbidden
from accounts.services.jobs import queue_job
from accounts.types import JobRef, Principal
from audit import services as audit
from consent.access import record_read
from consent.policy import decide_for_tenant
from consent.types import Act
from memory.analysis import hash_terms, terms
from memory.chunking import Chunk as Piece
from memory.chunking import chunk_markdown, chunk_text, heading_of, searchable_text
from memory.encoding import Encoded, count_tokens
from memory.knowledge_terms import posting_key
from memory.models import Chunk, Document
from memory.selectors import document_by_id
from memory.types import Floats, TermVector

CHUNKS_AT_ONCE = 100
# What one document may be cut into; a text of ordinary sentences at its largest is cut into less than half.
MOST_CHUNKS = 2000

_POSTINGS = """
    INSERT INTO memory_posting (tenant_id, term, chunk_id, frequency)
    SELECT %s::uuid, p.* FROM unnest(%s::bigint[], %s::uuid[], %s::smallint[]) AS p
"""


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document as given; `name` identifies it within its project, storing it again replaces it."""

    name: str
    text: str
    title: str = ""
    format: str = "text"
    source: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk to be stored, and what to find it by."""

    row: Chunk
    terms: TermVector


def store_document(new: NewDocument, *, principal: Principal, project_id: UUID | None) -> tuple[Document, JobRef]:
    """Store or replace a document and queue its ingest; until that ends, the chunks of the version before are found."""
    project = accounts.project_for(principal, project_id)
    row, created = Document.objects.update_or_create(  # type: ignore[misc] # None is a value of this key
        tenant_id=principal.tenant_id,
        project_id=project.id if project else None,
        name=new.name,
        defaults={
            "title": new.title or new.name,
            "source": new.source,
            "format": new.format,
            "tags": list(new.tags),
            "text": new.text,
            "state": Document.State.PENDING,
        },
    )
    if not created:
        Document.objects.filter(id=row.id).update(version=F("version") + 1, updated_at=Now())
    row.refresh_from_db()
    _record("memory.document.stored", row.id, principal)
    return row, queue_job("document", "memory.tasks.ingest_document", project_id=row.project_id, document_id=row.id)


def remove_document(document_id: UUID, *, principal: Principal) -> None:
    """Remove a document with its chunks. Raises NotFound, also for one outside the project the key is bound to."""
    row = document_by_id(document_id, principal)
    if not principal.owns(row.project_id):
        raise ProjectForbidden("A key bound to a project may not remove what belongs to none.")
    row.delete()
    _record("memory.document.removed", document_id, principal)


def read_document(document_id: UUID, *, principal: Principal) -> Document:
    """The document with its text; recorded as a read. Raises NotFound."""
    row = document_by_id(document_id, principal)
    record_read(decide_for_tenant(Act.TENANT, caller=principal), [row.id], action="memory.document.read")
    return row


def cut(document: Document) -> list[Piece]:
    chunk = chunk_markdown if document.format == "markdown" else chunk_text
    return chunk(document.text, count_tokens)


def made_chunks(document: Document, pieces: Sequence[Piece], encoded: Sequence[Encoded]) -> list[NewChunk]:
    """The chunks with their terms, not yet stored: everything that can be computed before a transaction is open."""
    vectors = [vector for batch in encoded for vector in batch.vectors]
    key = posting_key(document.tenant_id)
    return [
        _made_chunk(document, position, piece, vector, encoded[0].model_number, key)
        for position, (piece, vector) in enumerate(zip(pieces, vectors, strict=True))
    ]


def _made_chunk(
    document: Document, position: int, piece: Piece, vector: Floats, model_number: int, key: bytes
) -> NewChunk:
    found = hash_terms(terms(searchable_text(document.title, heading_of(piece), piece.text)), key)
    row = Chunk(
        id=uuid7(),
        tenant_id=document.tenant_id,
        document_id=document.id,
        position=position,
        heading=heading_of(piece),
        text=piece.text,
        start=piece.start,
        end=piece.end,
        token_count=piece.token_count,
        length=found.length,
        model_number=model_number,
        embedding=vector,
    )
    return NewChunk(row, found)


def replace_chunks(document: Document, chunks: Sequence[NewChunk]) -> bool:
    """Put these chunks in place of the document's, in one transaction. False when it was replaced meanwhile."""
    if not Document.objects.select_for_update().filter(id=document.id, version=document.version).exists():
        return False
    Chunk.objects.filter(document_id=document.id).delete()
    # All chunks before any posting: the plan of the foreign key's check is made once, and should know many chunks.
    Chunk.objects.bulk_create([chunk.row for chunk in chunks], batch_size=CHUNKS_AT_ONCE)
    for batch in batched(chunks, CHUNKS_AT_ONCE):
        _insert_postings(document.tenant_id, batch)
    document.state, document.chunked_version = Document.State.READY, document.version
    document.save(update_fields=["state", "chunked_version"])
    return True


def _insert_postings(tenant_id: UUID, chunks: Sequence[NewChunk]) -> None:
    """In one statement with an array for each column: a document has tens of thousands."""
    hashes = np.concatenate([chunk.terms.hashes for chunk in chunks]).view(np.int64)
    counts = np.concatenate([chunk.terms.counts for chunk in chunks])
    chunk_ids = [chunk.row.id for chunk in chunks for _ in chunk.terms.hashes]
    with connection.cursor() as cursor:
        cursor.execute(_POSTINGS, [tenant_id, hashes.tolist(), chunk_ids, counts.tolist()])


def is_in(document: Document) -> bool:
    """Whether the chunks are those of the document as it stands."""
    return document.state == Document.State.READY and document.chunked_version == document.version


def ingest_result(document: Document) -> dict[str, Any]:
    """What the job says of a document that is in."""
    chunks = Chunk.objects.filter(document_id=document.id).count()
    return {"document_id": str(document.id), "chunks": chunks, "version": document.chunked_version}


def mark_failed(document_id: UUID) -> None:
    Document.objects.filter(id=document_id, state=Document.State.PENDING).update(state=Document.State.FAILED)


def _record(action: str, document_id: UUID, principal: Principal) -> None:
    audit.record_in_transaction(
        tenant_id=principal.tenant_id, actor=principal.actor, action=action, resource_ids=[document_id]
    )
