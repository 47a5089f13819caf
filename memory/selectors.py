"""Reads of what is not personal: declared profile keys and documents. Inside a scope."""

from uuid import UUID

from django.db.models import QuerySet

from accounts.errors import NotFound
from accounts.types import Principal
from memory.models import Document, ProfileKey


def profile_keys(*, after: UUID | None) -> QuerySet[ProfileKey]:
    rows = ProfileKey.objects.order_by("id")
    return rows.filter(id__gt=after) if after else rows


def documents(principal: Principal, *, after: UUID | None) -> QuerySet[Document]:
    """The documents this key may see: all, or, for a key bound to a project, that project's and the unscoped."""
    rows = Document.objects.defer("text").order_by("id")
    if principal.project_id:
        rows = rows.filter(project__isnull=True) | rows.filter(project_id=principal.project_id)
    return rows.filter(id__gt=after) if after else rows


def document_by_id(document_id: UUID, principal: Principal) -> Document:
    row = Document.objects.filter(id=document_id).first()
    if row is None or (principal.project_id and row.project_id not in (None, principal.project_id)):
        raise NotFound
    return row
