"""Writing the log. One event is one INSERT; which function depends on what the event has to outlive.

A change records `record_in_transaction`: change and event stand or fall together. A read records
`record_committed` before anything is opened: no event, no plaintext. A refusal records `record_refusal`, and
stands even if the log is down.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Required, TypedDict, Unpack
from uuid import UUID

from django.db import Error, connections
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from audit import context
from audit.canonical import canonical_bytes
from audit.errors import AuditUnavailable, InsideTransaction, OutsideTransaction
from audit.registry import action_by_name, require_declared_counts
from audit.types import Actor, Decision, Event, Result

logger = logging.getLogger(__name__)

AUDIT_ALIAS = "audit"

# No epoch and no xid: the database sets them, and no role may. No RETURNING: it would need SELECT, which
# fmn_audit lacks.
_COLUMNS = (
    "id",
    "tenant_id",
    "at",
    "actor_kind",
    "actor_id",
    "actor_on_behalf_of",
    "action",
    "resource_kind",
    "resource_ids",
    "subject_pseudonym",
    "purposes",
    "consent_refs",
    "decision",
    "reason",
    "request_id",
    "counts",
    "result",
    "canonical",
)
_INSERT = f"INSERT INTO audit_event ({', '.join(_COLUMNS)}) VALUES ({', '.join(['%s'] * len(_COLUMNS))})"  # noqa: S608  constants


class RefusedFacts(TypedDict, total=False):
    """What every event may say; see `audit.types.Event`. `request_id` defaults to the current request's."""

    tenant_id: Required[UUID]
    actor: Required[Actor]
    action: Required[str]
    resource_ids: Sequence[UUID]
    subject_pseudonym: str
    purposes: Sequence[str]
    consent_refs: Sequence[str]
    request_id: str


class EventFacts(RefusedFacts, total=False):
    """What an event that was not a mere refusal may say on top."""

    decision: Decision
    reason: str
    counts: Mapping[str, int] | None
    result: Result


def record_in_transaction(*, using: str = "default", **facts: Unpack[EventFacts]) -> Event:
    """Record a change in the transaction open on `using`; raises `OutsideTransaction` if there is none."""
    event = _event_of(facts)
    if not connections[using].in_atomic_block:
        raise OutsideTransaction(event.action)
    _insert(event, using=using)
    return event


def record_committed(**facts: Unpack[EventFacts]) -> Event:
    """Record over the audit connection; on return the event is durable, whatever the caller does next.

    Raises `AuditUnavailable` on any database error, an exhausted pool included. Then nothing may be opened.
    The event may have been stored all the same (the connection can break after the commit): the log may say
    more than happened, never less.
    """
    event = _event_of(facts)
    connection = connections[AUDIT_ALIAS]
    if connection.in_atomic_block:
        raise InsideTransaction(event.action)
    try:
        _insert(event, using=AUDIT_ALIAS)
    except Error as error:
        connection.close()  # a broken connection must not fail the next event too
        raise AuditUnavailable(event.action) from error
    return event


def record_refusal(*, reason: str, **facts: Unpack[RefusedFacts]) -> Event | None:
    """Record a refusal. None, and a log line, when the log is down: the refusal stands."""
    try:
        return record_committed(decision="refused", reason=reason, result="refused", **facts)
    except AuditUnavailable:
        logger.exception("a refusal could not be recorded: %s %s", facts["action"], reason)
        return None


def _event_of(facts: EventFacts) -> Event:
    """Raises `UnknownAction` or `UndeclaredField` for anything the log may not hold."""
    action = action_by_name(facts["action"])
    counts = dict(facts.get("counts") or {})
    require_declared_counts(action, counts)
    at = datetime.now(UTC)  # before the id: then an id is never older than its event (selectors rely on it)
    return Event(
        id=uuid7(),
        tenant_id=facts["tenant_id"],
        at=at,
        actor=facts["actor"],
        action=action.name,
        resource_kind=action.resource_kind,
        resource_ids=tuple(facts.get("resource_ids", ())),
        subject_pseudonym=facts.get("subject_pseudonym", ""),
        purposes=tuple(facts.get("purposes", ())),
        consent_refs=tuple(facts.get("consent_refs", ())),
        decision=facts.get("decision", ""),
        reason=facts.get("reason", ""),
        request_id=facts.get("request_id") or context.request_id.get(),
        counts=counts,
        result=facts.get("result", "ok"),
    )


def _insert(event: Event, *, using: str) -> None:
    with connections[using].cursor() as cursor:
        cursor.execute(_INSERT, _row(event))


def _row(event: Event) -> tuple[Any, ...]:
    """The values of `_COLUMNS`, in that order."""
    return (
        event.id,
        event.tenant_id,
        event.at,
        event.actor.kind,
        event.actor.id,
        event.actor.on_behalf_of,
        event.action,
        event.resource_kind,
        list(event.resource_ids),
        event.subject_pseudonym,
        list(event.purposes),
        list(event.consent_refs),
        event.decision,
        event.reason,
        event.request_id,
        Jsonb(dict(event.counts)),
        event.result,
        canonical_bytes(event),
    )
