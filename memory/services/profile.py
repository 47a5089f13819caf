"""The profile: declaring keys, setting and reading a person's values."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models.query import RawQuerySet

from accounts import selectors as accounts
from accounts.errors import Conflict, FieldError, NotFound, PreconditionFailed, ValidationFailed
from accounts.keys import (
    Decision,
    Grant,
    open_content,
    open_index,
    seal_fields,
    subject_of,
    subject_pseudonym,
    tenant_digest,
)
from accounts.tenancy import current_scope
from accounts.types import Caller, Principal, SubjectRef
from audit import services as audit
from audit.types import Actor
from consent.access import record_read
from consent.policy import decide, require
from consent.types import Act
from memory.errors import ProfileKeyUndeclared, ProfileValueInvalid, QuotaExceeded
from memory.models import ProfileEntry, ProfileKey
from memory.schemas import SchemaInvalid, compiled, excess, violations

KEY_PATTERN = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")
MAX_KEY_LENGTH = 100
MAX_ENTRIES = 200


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """An opened profile value."""

    id: UUID
    key: str
    value: Any
    project_id: UUID | None
    version: int
    updated_at: datetime

    @property
    def in_words(self) -> str:
        return value_in_words(self.value)


def value_in_words(value: Any) -> str:
    """A profile value as a line: text as it is, a list by commas, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(value_in_words, value))
    return json.dumps(value, ensure_ascii=False)


def declare_key(
    key: str, schema: dict[str, Any], *, sensitive: bool, project_id: UUID | None, actor: Actor
) -> ProfileKey:
    """Declare a key for the tenant or one project, or change its schema; values already stored stay as they are.

    Raises ValidationFailed for a key of another form and for what is not a JSON Schema.
    """
    tenant_id = current_scope().tenant_id
    _check_key(key)
    try:
        compiled(schema)
    except SchemaInvalid as error:
        raise ValidationFailed(errors=[FieldError(f"/schema{error.pointer}", str(error))]) from error
    row, _ = ProfileKey.objects.update_or_create(  # type: ignore[misc] # None is a value of this key
        tenant_id=tenant_id,
        project_id=project_id,
        key=key,
        defaults={"schema": schema, "sensitive": sensitive, "updated_at": datetime.now(UTC)},
    )
    audit.record_in_transaction(
        tenant_id=tenant_id, actor=actor, action="memory.profile_key.declared", resource_ids=[row.id]
    )
    return row


def set_value(
    subject: SubjectRef,
    key: str,
    value: Any,
    *,
    principal: Principal,
    project_id: UUID | None,
    if_version: int | None = None,
) -> ProfileEntry:
    """Set a declared key, replacing what was there. A sensitive key needs memory.sensitive as well.

    Raises QuotaExceeded when the person has MAX_ENTRIES already; requests at the same moment may pass it together.
    """
    project = accounts.project_for(principal, project_id)
    where = project.id if project else None
    sensitive = _check_value(key, value, where, undeclared=bool(project and project.undeclared_profile_keys))
    decision = require(decide(subject, Act.STORE, caller=principal, project_id=where, sensitive=sensitive))
    row = _row_for(subject, key, where, decision)
    if if_version is not None and (row._state.adding or row.version != if_version):
        raise PreconditionFailed
    if row._state.adding and ProfileEntry.objects.count() >= MAX_ENTRIES:
        raise QuotaExceeded
    row.version += 0 if row._state.adding else 1
    row.written_by, row.updated_at = decision.actor.id, datetime.now(UTC)
    seal_fields(
        row,
        decision,
        value_sealed=json.dumps({"key": key, "value": value}, ensure_ascii=False).encode(),
        facets_sealed=json.dumps({"sensitive": sensitive}).encode(),
    )
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise Conflict("This value was set by another request at the same moment.") from error
    _record("memory.profile.changed", row, decision)
    return row


def remove_value(subject: SubjectRef, key: str, *, principal: Principal, project_id: UUID | None) -> UUID:
    """Remove a value for good. Needs no consent: it is the person's right. Raises NotFound."""
    project = accounts.project_for(principal, project_id)
    decision = require(decide(subject, Act.FORGET, caller=principal))
    row = _row_for(subject, key, project.id if project else None, decision)
    if row._state.adding:
        raise NotFound
    removed = row.id
    row.delete()
    _record("memory.profile.removed", row, decision, removed)
    return removed


def forget_value(subject: SubjectRef, entry_id: UUID, *, caller: Caller) -> None:
    """Remove a value of whatever project for good, at the person's own wish. Raises NotFound."""
    decision = require(decide(subject, Act.FORGET, caller=caller))
    row = ProfileEntry.objects.filter(id=entry_id).first()
    if row is None or not ProfileEntry.objects.filter(id=entry_id).delete()[0]:
        raise NotFound
    _record("memory.profile.removed", row, decision, entry_id)


def read_profile(
    subject: SubjectRef, *, principal: Principal, project_id: UUID | None, key: str | None = None
) -> list[ProfileLine]:
    """The values that may appear, by key; with `key` that one alone, or NotFound. Recorded as one read."""
    project = accounts.project_for(principal, project_id)
    where = project.id if project else None
    decision = require(decide(subject, Act.LIST, caller=principal, project_id=where))
    rows = permitted_entries(decision, where, key)
    if key is not None and not rows:
        raise NotFound
    grant = record_read(decision, [row.id for row in rows], action="memory.profile.read", counts={"items": len(rows)})
    return opened_entries(rows, grant)


# Written out, since every recall asks it.
_ENTRIES = """
    SELECT * FROM memory_profileentry
    WHERE tenant_id = %s AND subject_id = %s AND (project_id IS NULL OR project_id = %s)
      AND (%s::bytea IS NULL OR key_digest = %s)
    ORDER BY id
"""


def permitted_entries(decision: Decision, project_id: UUID | None, key: str | None = None) -> list[ProfileEntry]:
    """The person's entries of this project and unscoped ones, without the sensitive where those are not allowed.

    A project's own value hides the unscoped one of the same key. With `key` that one alone.
    """
    digest = None if key is None else _digest(subject_of(decision), key, decision)
    asked = (decision.tenant_id, subject_of(decision).id, project_id, digest, digest)
    permitted = usable_entries(
        list(RawQuerySet(_ENTRIES, model=ProfileEntry, params=asked)), decision.granted, decision
    )
    nearest = {bytes(row.key_digest): row for row in sorted(permitted, key=lambda row: row.project_id is not None)}
    return list(nearest.values())


def usable_entries(rows: list[ProfileEntry], granted: frozenset[str], decision: Decision) -> list[ProfileEntry]:
    """Of these those that may be used while this is granted; opens what tells the sensitive ones under `decision`."""
    return rows if "memory.sensitive" in granted else _not_sensitive(rows, decision)


def _not_sensitive(rows: list[ProfileEntry], decision: Decision) -> list[ProfileEntry]:
    """Those that were not sensitive when they were set, and of whose key no declaration says so by now."""
    if not rows:
        return []
    keys = ProfileKey.objects.filter(sensitive=True).values_list("key", flat=True).distinct()
    declared = {_digest(subject_of(decision), key, decision) for key in keys}
    plain = [row for row in rows if bytes(row.key_digest) not in declared]
    return [row for row in plain if not json.loads(open_index(row.facets_sealed, decision))["sensitive"]]


def opened_entries(rows: Iterable[ProfileEntry], grant: Grant) -> list[ProfileLine]:
    lines = [(row, json.loads(open_content(row.value_sealed, grant))) for row in rows]
    opened = [
        ProfileLine(row.id, content["key"], content["value"], row.project_id, row.version, row.updated_at)
        for row, content in lines
    ]
    return sorted(opened, key=lambda line: line.key)


def _check_value(key: str, value: Any, project_id: UUID | None, *, undeclared: bool) -> bool:
    """Whether the key is sensitive: whether any declaration of the tenant says so, whatever project it is for.

    Raises ProfileKeyUndeclared, ProfileValueInvalid, ValidationFailed; the error holds no value.
    """
    _check_key(key)
    if too_large := excess(value):
        raise ValidationFailed(errors=[FieldError("/value", too_large)])
    declared = list(ProfileKey.objects.filter(key=key))
    by_project = {row.project_id: row for row in declared}
    found = by_project.get(project_id) or by_project.get(None)
    if found:
        _check_against(found.schema, value)
    elif not undeclared:
        raise ProfileKeyUndeclared
    return any(row.sensitive for row in declared)


def _check_against(schema: dict[str, Any], value: Any) -> None:
    try:
        broken = violations(schema, value)
    except SchemaInvalid as error:  # declared under rules that were wider
        raise ProfileValueInvalid("The schema of this key is no longer taken; declare the key anew.") from error
    errors = [FieldError(f"/value{pointer}", _refusal(keyword)) for pointer, keyword in broken]
    if errors:
        raise ProfileValueInvalid(errors=errors)


def _refusal(keyword: str) -> str:
    return f"Does not satisfy `{keyword}`." if keyword else "Does not satisfy the schema of its key."


def _check_key(key: str) -> None:
    if not KEY_PATTERN.fullmatch(key) or len(key) > MAX_KEY_LENGTH:
        raise ValidationFailed(errors=[FieldError("key", "Use lower-case words joined by dots: preferences.language")])


def _row_for(subject: SubjectRef, key: str, project_id: UUID | None, decision: Decision) -> ProfileEntry:
    digest, now = _digest(subject, key, decision), datetime.now(UTC)
    rows = ProfileEntry.objects.select_for_update().filter(key_digest=digest)
    found = next((row for row in rows if row.project_id == project_id), None)
    return found or ProfileEntry(
        tenant_id=subject.tenant_id,
        subject_id=subject.id,
        project_id=project_id,
        key_digest=digest,
        created_at=now,
        updated_at=now,
    )


def _digest(subject: SubjectRef, key: str, decision: Decision) -> bytes:
    """Keyed and per person: neither the key nor that two people have the same one can be read off the column."""
    return tenant_digest(decision.tenant_id, decision.tenant_epoch, b"profile-key", subject.id.bytes, key.encode())


def _record(action: str, row: ProfileEntry, decision: Decision, removed: UUID | None = None) -> None:
    subject = decision.subject
    audit.record_in_transaction(
        tenant_id=decision.tenant_id,
        actor=decision.actor,
        action=action,
        resource_ids=[removed or row.id],
        subject_pseudonym=subject_pseudonym(decision.tenant_epoch, subject) if subject else "",
        purposes=decision.purposes,
        consent_refs=decision.consent_refs,
        decision="allowed",
    )
