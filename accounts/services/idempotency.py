"""Doing a write once per Idempotency-Key. The record stands or falls with the write's own transaction.

Kept are keyed digests of key and request, and the answer, which holds ids, versions and states but no content. A second
request waits for the first one's commit at the unique index, then gets its answer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from accounts.errors import FieldError, IdempotencyMismatch, ValidationFailed
from accounts.keys import tenant_digest
from accounts.models import IdempotencyRecord
from accounts.types import Principal
from audit import services as audit

KEPT = timedelta(hours=24)
MAX_KEY_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Answer:
    """What a write answers: no content, so that it may be kept and given again."""

    body: dict[str, Any]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    replayed: bool = False


def run_once(
    work: Callable[[], Answer],
    *,
    principal: Principal,
    key: str,
    request: tuple[bytes, ...],
    subject_id: UUID | None,
) -> Answer:
    """Run `work` unless this key was used; then its answer again. Without a key it always runs.

    Raises IdempotencyMismatch when the key was used for another request, or by a request about another person.
    """
    if not key:
        return work()
    if len(key) > MAX_KEY_LENGTH or not key.isprintable():
        raise ValidationFailed(errors=[FieldError("Idempotency-Key", f"Up to {MAX_KEY_LENGTH} printable characters.")])
    key_digest = _digest(principal, b"idempotency-key", principal.key_id.bytes, key.encode())
    request_digest = _digest(principal, b"idempotency-request", *request)
    record_id = _claim(principal.tenant_id, subject_id, key_digest, request_digest)
    if record_id is None:
        return _replay(principal, key_digest, request_digest)
    answer = work()
    IdempotencyRecord.objects.filter(id=record_id).update(
        status=answer.status, answer={"body": answer.body, "headers": answer.headers}
    )
    return answer


def forget_old_records() -> int:
    """Delete the records of the scope that are older than KEPT. The scope must be ALL."""
    deleted, _ = IdempotencyRecord.objects.filter(created_at__lt=Now() - KEPT).delete()
    return deleted


def _digest(principal: Principal, *parts: bytes) -> bytes:
    return tenant_digest(principal.tenant_id, principal.tenant_epoch, *parts)


def _claim(tenant_id: UUID, subject_id: UUID | None, key_digest: bytes, request_digest: bytes) -> UUID | None:
    """The new record's id, or None when the key is taken."""
    record_id: UUID = uuid7()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO accounts_idempotencyrecord (id, tenant_id, subject_id, key_digest, request_digest, answer) "
            "VALUES (%s, %s, %s, %s, %s, '{}') ON CONFLICT (tenant_id, key_digest) DO NOTHING",
            [record_id, tenant_id, subject_id, key_digest, request_digest],
        )
        return record_id if cursor.rowcount == 1 else None


def _replay(principal: Principal, key_digest: bytes, request_digest: bytes) -> Answer:
    found = IdempotencyRecord.objects.filter(key_digest=key_digest).first()
    if found is None or bytes(found.request_digest) != request_digest or found.status is None:
        raise IdempotencyMismatch
    audit.record_in_transaction(
        tenant_id=principal.tenant_id,
        actor=principal.actor,
        action="accounts.request.replayed",
        resource_ids=[found.id],
    )
    return replace(Answer(**found.answer), status=found.status, replayed=True)
