"""Reading the log, inside a scope: the tenant filter here is the plan, row security is the net.

What is returned is decoded from the stored canonical bytes, the ones that are hashed, never from the columns
beside them.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet

from audit.canonical import event_from_canonical
from audit.models import AuditEvent
from audit.types import Event

# How far a clock may have been set back and `before` still find all: ids keep ascending while `at` does not.
_CLOCK_SET_BACK = timedelta(hours=1)
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def events_for_tenant(
    *,
    tenant_id: UUID,
    action: str | None = None,
    subject_pseudonym: str | None = None,
    decision: str | None = None,
    actor_id: str | None = None,
    after: UUID | None = None,
    before: datetime | None = None,
    since: datetime | None = None,
    limit: int,
) -> list[Event]:
    """At most `limit` events, newest first. `after` is the id of the last event of the page before.

    `since` is inclusive and `before` exclusive, both aware. Ids ascend within a process; events of several
    processes may differ by their transactions' length, so this order is for people: a feed that must miss
    nothing uses the sealer's.
    """
    equal = {
        "action": action,
        "subject_pseudonym": subject_pseudonym,
        "decision": decision,
        "actor_id": actor_id,
    }
    query = AuditEvent.objects.filter(tenant_id=tenant_id)
    query = query.filter(**{field: value for field, value in equal.items() if value is not None})
    if after is not None:
        query = query.filter(id__lt=after)
    query = _between(query, since=since, before=before)
    stored = query.order_by("-id").values_list("canonical", flat=True)[:limit]
    return [event_from_canonical(bytes(canonical)) for canonical in stored]


def _between(query: QuerySet[AuditEvent], *, since: datetime | None, before: datetime | None) -> QuerySet[AuditEvent]:
    """Bounds on the id as well as on the time, so that only the months concerned are read."""
    if since is not None:
        query = query.filter(id__gte=first_id_at(since), at__gte=since)
    if before is not None:
        query = query.filter(id__lt=first_id_at(before, later=_CLOCK_SET_BACK), at__lt=before)
    return query


def first_id_at(moment: datetime, later: timedelta = timedelta()) -> UUID:
    """The smallest id of that millisecond: RFC 9562 section 5.7 puts 48 bits of Unix milliseconds first.

    Before 1970 it is the smallest of all. `later` is added without leaving the calendar.
    """
    milliseconds = (moment - _UNIX_EPOCH + later) // timedelta(milliseconds=1)
    return UUID(int=max(milliseconds, 0) << 80)
