"""Reading the log, inside a scope: the tenant filter here is the plan, row security is the net.

What is returned is decoded from the stored canonical bytes, the ones that are hashed, never from the columns
beside them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import TruncDate

from audit.canonical import event_from_canonical
from audit.models import AuditEvent
from audit.types import Event

# How far a clock may have been set back and `before` still find all: ids keep ascending while `at` does not.
_CLOCK_SET_BACK = timedelta(hours=1)
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events; what is None is not asked. `since` is inclusive and `before` exclusive, both aware.

    `action` is a whole name or its beginning up to a dot: `memory`, `memory.recall`, `memory.recall.answered`.
    """

    action: str | None = None
    subject_pseudonym: str | None = None
    actor_kind: str | None = None
    actor_id: str | None = None
    purpose: str | None = None
    decision: str | None = None
    result: str | None = None
    since: datetime | None = None
    before: datetime | None = None

    def applied(self, events: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        equal = ("subject_pseudonym", "actor_kind", "actor_id", "decision", "result")
        asked = {name: getattr(self, name) for name in equal if getattr(self, name) is not None}
        if self.purpose is not None:
            asked["purposes__contains"] = [self.purpose]
        if self.action is not None:
            events = events.filter(Q(action=self.action) | Q(action__startswith=f"{self.action}."))
        return _between(events.filter(**asked), since=self.since, before=self.before)


@dataclass(frozen=True, slots=True)
class DayCount:
    """How many events of one UTC day have these facts."""

    day: date
    facts: Mapping[str, str]
    events: int


def events_for_tenant(wanted: EventFilter, *, tenant_id: UUID, after: UUID | None = None, limit: int) -> list[Event]:
    """At most `limit` events, newest first. `after` is the id of the last event of the page before.

    Ids ascend within a process; events of several
    processes may differ by their transactions' length, so this order is for people: a feed that must miss
    nothing uses the sealer's.
    """
    query = wanted.applied(AuditEvent.objects.filter(tenant_id=tenant_id))
    if after is not None:
        query = query.filter(id__lt=after)
    stored = query.order_by("-id").values_list("canonical", flat=True)[:limit]
    return [event_from_canonical(bytes(canonical)) for canonical in stored]


def event_of_tenant(event_id: UUID, *, tenant_id: UUID) -> Event | None:
    stored = AuditEvent.objects.filter(tenant_id=tenant_id, id=event_id).values_list("canonical", flat=True).first()
    return event_from_canonical(bytes(stored)) if stored is not None else None


def counts_by_day(wanted: EventFilter, *, tenant_id: UUID, by: tuple[str, ...] = ()) -> list[DayCount]:
    """Events of each UTC day that has any, oldest first, apart by the columns named in `by`. Reads no content."""
    query = wanted.applied(AuditEvent.objects.filter(tenant_id=tenant_id))
    rows: QuerySet[Any, dict[str, Any]] = (
        query.annotate(day=TruncDate("at", tzinfo=UTC)).values("day", *by).annotate(events=Count("id"))
    )
    return [DayCount(row["day"], {name: row[name] for name in by}, row["events"]) for row in rows.order_by("day", *by)]


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
