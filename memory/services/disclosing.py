"""The person's own view: every memory and profile value, and for each whether an agent can be given it now.

What counts as used comes from the rule recall goes by (`memory.access`), so the two cannot say different things. Needs
no consent; it is recorded like any other reading, with the person as the one who looked. Start at `disclose`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

from accounts.errors import NotFound
from accounts.keys import Decision
from accounts.types import Visitor
from consent.access import record_read
from consent.policy import decide, require
from consent.types import SENSITIVE_CATEGORIES, Act
from memory import index as sealed_index
from memory.access import usable_now
from memory.models import ProfileEntry
from memory.segments import Index
from memory.segments.index import NEVER, to_microseconds
from memory.services.profile import ProfileLine, opened_entries, usable_entries
from memory.services.reading import MemoryView, opened, rows_in_order
from memory.types import Mask, State


class Use(StrEnum):
    """Whether a kept thing can be given to an agent at this moment, and if not, why."""

    USED = "used"
    NOT_ALLOWED = "not_allowed"
    SENSITIVE = "sensitive"
    QUARANTINED = "quarantined"
    REPLACED = "replaced"
    EXPIRED = "expired"
    NOT_YET = "not_yet"


@dataclass(frozen=True, slots=True)
class KeptMemory:
    memory: MemoryView
    use: Use


@dataclass(frozen=True, slots=True)
class KeptValue:
    line: ProfileLine
    use: Use


@dataclass(frozen=True, slots=True)
class Disclosure:
    """One page of memories, newest first; with the first the whole profile. The counts are of everything.

    refusal: why nothing at all may be used to answer (a consent code, or `subject_restricted`), or "".
    readable: though unused, may still be listed by the tenant's systems.
    """

    memories: tuple[KeptMemory, ...]
    profile: tuple[KeptValue, ...]
    used: int
    unused: int
    refusal: str
    readable: bool
    next_after: UUID | None

    @property
    def is_empty(self) -> bool:
        return not (self.used or self.unused)


def disclose(visitor: Visitor, *, after: UUID | None = None, limit: int = 50) -> Disclosure:
    """In the person's scope. Raises AuditUnavailable, KeyUnavailable: then nothing is shown."""
    own = require(decide(visitor.subject, Act.OWN, caller=visitor))
    recall = decide(visitor.subject, Act.RECALL, caller=visitor)
    readable = decide(visitor.subject, Act.LIST, caller=visitor).allowed
    index, now = sealed_index.open_whole(own), datetime.now(UTC)
    used = usable_now(index, recall, now)
    page, next_after = _page(index, after, limit)
    rows = rows_in_order(page, index, own)
    entries = list(ProfileEntry.objects.order_by("id"))
    usable = _usable_ids(entries, recall, own)
    shown = entries if after is None else []
    grant = record_read(
        own,
        [row.id for row in (*rows, *shown)],
        action="memory.disclosure.read",
        counts={"memories": len(rows), "profile": len(shown)},
    )
    return Disclosure(
        memories=tuple(KeptMemory(each, _use(index, used, recall, now, each.id)) for each in opened(rows, grant)),
        profile=tuple(
            KeptValue(line, _use_of_value(line.id in usable, recall)) for line in opened_entries(shown, grant)
        ),
        used=int(used.sum()) + len(usable),
        unused=int((~used).sum()) + len(entries) - len(usable),
        refusal=recall.reason,
        readable=readable and not recall.allowed,
        next_after=next_after,
    )


def disclose_memory(visitor: Visitor, memory_id: UUID) -> MemoryView:
    """One memory, for the review before it is forgotten. Raises NotFound."""
    own = require(decide(visitor.subject, Act.OWN, caller=visitor))
    index = sealed_index.open_whole(own)
    rows = rows_in_order([memory_id], index, own) if index.position(memory_id) is not None else []
    if not rows:
        raise NotFound
    return opened(rows, record_read(own, [memory_id], action="memory.disclosure.read", counts={"memories": 1}))[0]


def disclose_value(visitor: Visitor, entry_id: UUID) -> ProfileLine:
    """One profile value, likewise. Raises NotFound."""
    own = require(decide(visitor.subject, Act.OWN, caller=visitor))
    rows = list(ProfileEntry.objects.filter(id=entry_id))
    if not rows:
        raise NotFound
    grant = record_read(own, [entry_id], action="memory.disclosure.read", counts={"profile": 1})
    return opened_entries(rows, grant)[0]


def _page(index: Index, after: UUID | None, limit: int) -> tuple[Sequence[UUID], UUID | None]:
    """Ids newest first, at most `limit` below `after`; and the last of them when there are more."""
    ids = sorted((index.id_at(position) for position in range(len(index))), reverse=True)
    ids = [memory_id for memory_id in ids if after is None or memory_id < after]
    return ids[:limit], ids[limit - 1] if len(ids) > limit else None


def _usable_ids(entries: list[ProfileEntry], recall: Decision, own: Decision) -> set[UUID]:
    if not recall.allowed:
        return set()
    return {row.id for row in usable_entries(entries, recall.granted, own)}


def _use_of_value(usable: bool, recall: Decision) -> Use:
    if usable:
        return Use.USED
    return Use.SENSITIVE if recall.allowed else Use.NOT_ALLOWED


def _use(index: Index, used: Mask, recall: Decision, now: datetime, memory_id: UUID) -> Use:
    """The nearest reason: what ended or waits first, then what is not allowed."""
    position = index.position(memory_id)
    if position is None or used[position]:
        return Use.USED
    return _why_out_of_time(index, position, to_microseconds(now)) or _why_not_allowed(index, position, recall)


def _why_out_of_time(index: Index, position: int, now: int) -> Use | None:
    if index.state[position] not in (int(State.ACTIVE), int(State.SUPERSEDED)):
        return Use.QUARANTINED
    if index.valid_to[position] != NEVER and index.valid_to[position] <= now:
        return Use.REPLACED
    if index.expires_at[position] != NEVER and index.expires_at[position] <= now:
        return Use.EXPIRED
    if index.valid_from[position] != NEVER and index.valid_from[position] > now:
        return Use.NOT_YET
    return None


def _why_not_allowed(index: Index, position: int, recall: Decision) -> Use:
    sensitive = bool(index.categories.have_any(SENSITIVE_CATEGORIES)[position])
    return Use.SENSITIVE if recall.allowed and sensitive else Use.NOT_ALLOWED
