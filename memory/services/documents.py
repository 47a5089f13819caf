"""Shared knowledge: documents stored, cut into chunks, embedded, replaced in one commit, removed."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from accounts import selectors as accounts
from accounts.errors import ProjectForbidden
from accounts.services.jobs import queue_job
from accounts.tenancy import current_scope
from accounts.types import JobRef, Principal
from audit import services as audit
from consent.access import record_read
from consent.policy import decide_for_tenant
from consent.types import Act
from memory.analysis import hash_terms, terms
from memory.chunking import Chunk as Piece
from memory.chunking import chunk_markdown, chunk_text, heading_of, searchable_text
from memory.encoding import Encoded, count_tokens
from memory.knowledge_terms import posting_key, signed
from memory.models import Chunk, Document, Posting
from memory.selectors import document_by_id

POSTINGS_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document as given; `name` identifies it within its project, storing it again replaces it."""

    name: str
    text: str
    title: str = ""
    format: str = "text"
    source: str = ""
    tags: tuple[str, ...] = ()


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


def replace_chunks(document_id: UUID, version: int, pieces: Sequence[Piece], encoded: Sequence[Encoded] | None) -> bool:
    """Put these chunks in place of the document's, in one transaction. False when it was replaced meanwhile."""
    document = Document.objects.select_for_update().filter(id=document_id, version=version).first()
    if document is None:
        return False
    tenant_id = current_scope().tenant_id
    Chunk.objects.filter(document_id=document_id)._raw_delete("default")
    vectors = [vector for batch in encoded or () for vector in batch.vectors]
    model = encoded[0].model_number if encoded else None
    rows, postings = [], []
    for position, piece in enumerate(pieces):
        vector_terms = hash_terms(
            terms(searchable_text(document.title, heading_of(piece), piece.text)), posting_key(tenant_id)
        )
        row = Chunk(
            id=uuid7(),
            tenant_id=tenant_id,
            document_id=document_id,
            position=position,
            heading=heading_of(piece),
            text=piece.text,
            start=piece.start,
            end=piece.end,
            token_count=piece.token_count,
            length=vector_terms.length,
            model_number=model,
            embedding=vectors[position] if vectors else None,
        )
        rows.append(row)
        postings += [
            Posting(tenant_id=tenant_id, term=signed(term), chunk_id=row.id, frequency=min(count, 32767))
            for term, count in zip(vector_terms.hashes.tolist(), vector_terms.counts.tolist(), strict=True)
        ]
    Chunk.objects.bulk_create(rows, batch_size=200)
    Posting.objects.bulk_create(postings, batch_size=POSTINGS_AT_ONCE)
    document.state, document.chunked_version = Document.State.READY, version
    document.save(update_fields=["state", "chunked_version"])
    return True


def mark_failed(document_id: UUID) -> None:
    Document.objects.filter(id=document_id, state=Document.State.PENDING).update(state=Document.State.FAILED)


def _record(action: str, document_id: UUID, principal: Principal) -> None:
    audit.record_in_transaction(
        tenant_id=principal.tenant_id, actor=principal.actor, action=action, resource_ids=[document_id]
    )
