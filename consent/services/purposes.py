"""Purposes and their notices. A published version is never changed; a new text is a new version, off until asked."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F

from accounts.services.tenants import open_tenant
from accounts.tenancy import current_scope
from accounts.types import Mode, TenantRef
from audit import services as audit
from audit.types import Actor
from consent.models import Notice, Purpose, PurposeVersion
from consent.types import SENSITIVE_CATEGORIES, PurposeKey


@dataclass(frozen=True, slots=True)
class PurposeText:
    """What a version says: notice texts by language, legal basis, days kept (None: until withdrawn), categories."""

    notices: Mapping[str, str]
    legal_basis: str = "consent"
    retention_days: int | None = None
    categories: tuple[str, ...] = ()


# The texts a tenant starts with; {tenant} is filled in by the page that shows them.
DEFAULT_PURPOSES: dict[PurposeKey, PurposeText] = {
    PurposeKey.STORE: PurposeText({"en": "Remember what you say, so that it need not be said twice."}),
    PurposeKey.PERSONALISE: PurposeText({"en": "Use what is remembered about you to shape answers for you."}),
    PurposeKey.INFER: PurposeText({"en": "Draw conclusions about you from what is remembered."}),
    PurposeKey.SENSITIVE: PurposeText(
        {"en": "Remember sensitive things you mention, such as health, beliefs or sexuality."},
        legal_basis="explicit_consent",
        categories=tuple(sorted(SENSITIVE_CATEGORIES)),
    ),
    PurposeKey.SHARE: PurposeText({"en": "Let the other products of this company use what is remembered about you."}),
    PurposeKey.SEND: PurposeText(
        {"en": "Send what is remembered about you to an outside provider of language models."}
    ),
    PurposeKey.IMPROVE: PurposeText({"en": "Use what is remembered about you to improve the service for everyone."}),
}


def open_furnished_tenant(organisation_id: UUID, mode: Mode, *, actor: Actor) -> TenantRef:
    """A tenant with its keys and its purposes, in one transaction; every purpose is off for everybody."""
    return open_tenant(organisation_id, mode, actor=actor, furnish=lambda _: publish_defaults(actor=actor))


def publish_defaults(*, actor: Actor) -> None:
    for key, text in DEFAULT_PURPOSES.items():
        publish_purpose(key, text, actor=actor)


def publish_purpose(key: PurposeKey, text: PurposeText, *, actor: Actor) -> int:
    """Publish the next version of a purpose and make it the current one. Returns its number.

    Consents given to earlier versions stay in force and on record with the text that was shown.
    """
    if not text.notices:
        raise ValueError("a purpose is published with at least one notice")
    tenant_id = current_scope().tenant_id
    purpose, created = Purpose.objects.get_or_create(tenant_id=tenant_id, key=key.value)
    if not created:
        Purpose.objects.filter(id=purpose.id).update(current=F("current") + 1)
        purpose.refresh_from_db()
    version = PurposeVersion.objects.create(
        tenant_id=tenant_id,
        purpose=purpose,
        number=purpose.current,
        legal_basis=text.legal_basis,
        retention_days=text.retention_days,
        categories=list(text.categories),
    )
    Notice.objects.bulk_create(
        Notice(tenant_id=tenant_id, version=version, language=language, text=words, digest=notice_digest(words))
        for language, words in text.notices.items()
    )
    audit.record_in_transaction(
        tenant_id=tenant_id, actor=actor, action="consent.purpose.published", resource_ids=[purpose.id]
    )
    return purpose.current


def notice_digest(text: str) -> str:
    """SHA-256 of the text's UTF-8, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()
