"""Reads of what is not personal: declared profile keys and documents. Inside a scope."""

from uuid import UUID

from django.db.models import Model, Q, QuerySet

from accounts.errors import NotFound
from accounts.types import Principal
from memory.models import Document, ProfileKey


def profile_keys(principal: Principal, *, after: UUID | None) -> QuerySet[ProfileKey]:
    return _seen_by(principal, ProfileKey.objects.order_by("id"), after)


def documents(principal: Principal, *, after: UUID | None) -> QuerySet[Document]:
    return _seen_by(principal, Document.objects.defer("text").order_by("id"), after)


def _seen_by[M: Model](principal: Principal, rows: QuerySet[M], after: UUID | None) -> QuerySet[M]:
    """What this key may see: all, or, for a key bound to a project, that project's and the unscoped."""
    if principal.project_id:
        rows = rows.filter(Q(project__isnull=True) | Q(project_id=principal.project_id))
    return rows.filter(id__gt=after) if after else rows


def document_by_id(document_id: UUID, principal: Principal) -> Document:
    row = Document.objects.filter(id=document_id).first()
    if row is None or not principal.sees(row.project_id):
        raise NotFound
    return row
