"""Making and revoking API keys."""

from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

from accounts.credentials import HINT_LENGTH, key_digest, make_key
from accounts.errors import NotFound
from accounts.models import ApiKey
from accounts.scopes import Scope
from accounts.tenancy import current_scope
from accounts.types import Mode
from audit import services as audit
from audit.types import Actor


def create_api_key(
    name: str,
    scopes: Iterable[Scope],
    *,
    mode: Mode,
    actor: Actor,
    project_id: UUID | None = None,
    expires_at: datetime | None = None,
) -> tuple[UUID, str]:
    """The key's id and its text, which is not kept and cannot be shown again."""
    tenant_id = current_scope().tenant_id
    text = make_key(mode, tenant_id)
    row = ApiKey.objects.create(
        tenant_id=tenant_id,
        name=name,
        digest=key_digest(text),
        hint=text[-HINT_LENGTH:],
        scopes=sorted(scope.value for scope in scopes),
        project_id=project_id,
        expires_at=expires_at,
    )
    audit.record_in_transaction(tenant_id=tenant_id, actor=actor, action="accounts.key.created", resource_ids=[row.id])
    return row.id, text


def revoke_api_key(key_id: UUID, *, actor: Actor) -> None:
    """From the commit on the key opens nothing. Revoking twice is harmless: the first time stands."""
    row = ApiKey.objects.filter(id=key_id).first()
    if row is None:
        raise NotFound
    if row.revoked_at is None:
        row.revoked_at = datetime.now(UTC)
        row.save(update_fields=["revoked_at"])
        audit.record_in_transaction(
            tenant_id=row.tenant_id, actor=actor, action="accounts.key.revoked", resource_ids=[row.id]
        )
