"""Making people known, and changing their account data. Rests on the contract with the tenant; needs no consent."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F
from uuid_utils.compat import uuid7

from accounts import keystore
from accounts.errors import Conflict, PreconditionFailed
from accounts.keys import Decision, Grant, open_content, seal_fields, subject_pseudonym, tenant_blind_index
from accounts.models import Subject
from accounts.selectors import external_id_index, subject_ref
from accounts.types import AgeBand, Principal, SubjectRef, SubjectState
from audit import services as audit


@dataclass(frozen=True, slots=True)
class AccountData:
    """What a tenant may tell us of a person. `email` and `name` are sealed; empty means not known."""

    email: str = ""
    name: str = ""
    locale: str = ""
    time_zone: str = ""
    age_band: AgeBand = AgeBand.UNKNOWN


@dataclass(frozen=True, slots=True)
class OpenedSubject:
    ref: SubjectRef
    external_id: str
    account: AccountData


def create_subject(
    external_id: str, data: AccountData, *, principal: Principal, decide: Callable[[SubjectRef], Decision]
) -> SubjectRef:
    """Make a person known, keys first. Raises Conflict when somebody else just did."""
    subject_id, now = uuid7(), datetime.now(UTC)
    keystore.create_subject_keys(principal.tenant_id, principal.tenant_epoch, subject_id)
    row = Subject(
        id=subject_id,
        tenant_id=principal.tenant_id,
        external_id_index=external_id_index(principal, external_id),
        state=SubjectState.ACTIVE,
        created_at=now,
        updated_at=now,
    )
    _set_account(row, external_id, data, decide(subject_ref(row)))
    _save(row)
    _record("accounts.subject.created", row, principal)
    return subject_ref(row)


def change_subject(
    subject: SubjectRef,
    external_id: str,
    data: AccountData,
    *,
    principal: Principal,
    decision: Decision,
    if_version: int | None = None,
) -> SubjectRef:
    """Replace a person's account data. Raises PreconditionFailed when `if_version` is not the current one.

    The decision comes first, since it takes the person's lock: whoever uses a person locks the person before a row.
    """
    row = Subject.objects.select_for_update(no_key=True).get(id=subject.id)
    if if_version is not None and if_version != row.version:
        raise PreconditionFailed
    row.version += 1
    row.updated_at = datetime.now(UTC)
    _set_account(row, external_id, data, decision)
    _save(row)
    _record("accounts.subject.changed", row, principal)
    return subject_ref(row)


def open_subject(row: Subject, grant: Grant) -> OpenedSubject:
    contact: dict[str, Any] = {}
    if row.contact_sealed is not None:
        contact = json.loads(open_content(row.contact_sealed, grant))
    return OpenedSubject(
        ref=subject_ref(row),
        external_id=open_external_id(row, grant),
        account=AccountData(
            email=contact.get("email", ""),
            name=contact.get("name", ""),
            locale=row.locale,
            time_zone=row.time_zone,
            age_band=AgeBand(row.age_band),
        ),
    )


def open_external_id(row: Subject, grant: Grant) -> str:
    sealed = row.external_id_sealed
    return "" if sealed is None else open_content(sealed, grant).decode()


def _set_account(row: Subject, external_id: str, data: AccountData, decision: Decision) -> None:
    row.locale, row.time_zone, row.age_band = data.locale, data.time_zone, data.age_band
    row.email_index = _email_index(data.email, decision) if data.email else None
    contact = json.dumps({"email": data.email, "name": data.name}).encode() if data.email or data.name else None
    seal_fields(row, decision, external_id_sealed=external_id.encode(), contact_sealed=contact)


def _email_index(email: str, decision: Decision) -> bytes:
    normalised = email.strip().casefold().encode()
    return tenant_blind_index(decision.tenant_id, decision.tenant_epoch, "subject.email", normalised)


def _save(row: Subject) -> None:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise Conflict("Another person of this tenant has this id or this e-mail address.") from error


def _record(action: str, row: Subject, principal: Principal) -> None:
    """Under the pseudonym alone: an entry with both would name the person for ever, whatever is erased."""
    audit.record_in_transaction(
        tenant_id=row.tenant_id,
        actor=principal.actor,
        action=action,
        subject_pseudonym=subject_pseudonym(principal.tenant_epoch, subject_ref(row)),
    )


def raise_index_version(subject_id: UUID) -> None:
    """Mark the person's sealed index as changed. Holds the person's row until the commit: index writers take turns."""
    Subject.objects.filter(id=subject_id).update(index_version=F("index_version") + 1)


def sign_index_list(subject_id: UUID, digest: bytes) -> None:
    Subject.objects.filter(id=subject_id).update(index_list_digest=digest)


def index_list_digest(subject_id: UUID) -> bytes | None:
    found = Subject.objects.filter(id=subject_id).values_list("index_list_digest", flat=True).first()
    return None if found is None else bytes(found)
