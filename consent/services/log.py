"""Reading the audit log: every look at it is recorded in it."""

from dataclasses import dataclass, replace
from uuid import UUID

from accounts.errors import NotFound
from accounts.keys import subject_pseudonym
from accounts.selectors import subject_by_external_id
from accounts.types import Caller, SubjectRef
from audit.selectors import EventFilter, event_of_tenant, events_for_tenant
from audit.types import Event
from consent.access import record_read
from consent.policy import decide_for_tenant
from consent.types import Act


@dataclass(frozen=True, slots=True)
class LogPage:
    """Newest first. `more` says that older ones match too."""

    events: tuple[Event, ...]
    more: bool

    @property
    def last_id(self) -> UUID | None:
        """Where the next page begins; None on the last one."""
        return self.events[-1].id if self.more else None


def read_log(
    wanted: EventFilter, *, caller: Caller, external_id: str | None = None, after: UUID | None, limit: int
) -> LogPage:
    """Events of the caller's tenant; with `external_id` those about that person.

    Raises NotFound for an unknown person, SubjectErased for one whose entries can no longer be found.
    """
    subject = subject_by_external_id(caller, external_id) if external_id is not None else None
    found = events_for_tenant(_about(subject, wanted, caller), tenant_id=caller.tenant_id, after=after, limit=limit + 1)
    shown = tuple(found[:limit])
    _record(len(shown), caller, subject)
    return LogPage(shown, more=len(found) > limit)


def read_event(event_id: UUID, *, caller: Caller) -> Event:
    """One event of the caller's tenant. Raises NotFound."""
    event = event_of_tenant(event_id, tenant_id=caller.tenant_id)
    if event is None:
        raise NotFound
    _record(1, caller, None)
    return event


def _about(subject: SubjectRef | None, wanted: EventFilter, caller: Caller) -> EventFilter:
    if subject is None:
        return wanted
    return replace(wanted, subject_pseudonym=subject_pseudonym(caller.tenant_epoch, subject))


def _record(items: int, caller: Caller, subject: SubjectRef | None) -> None:
    record_read(
        decide_for_tenant(Act.TENANT, caller=caller),
        [],
        action="consent.log.read",
        counts={"items": items},
        about=subject,
    )
