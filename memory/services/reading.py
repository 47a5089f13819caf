"""Opening memories that were chosen: one row, a page of them, or what recall ranked."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models.query import RawQuerySet

from accounts import selectors as accounts
from accounts.errors import NotFound
from accounts.keys import Decision, Grant, open_content, raise_alarm
from accounts.tenancy import current_scope
from accounts.types import Principal, SubjectRef
from consent.access import record_read
from consent.policy import decide, require
from consent.types import Act
from memory import index as sealed_index
from memory.access import View, recallable
from memory.models import Memory
from memory.segments import Index
from memory.types import Audience, Kind, SourceClass, State


@dataclass(frozen=True, slots=True)
class MemoryView:
    """An opened memory: plaintext, so only ever made with a grant."""

    id: UUID
    text: str
    kind: Kind
    state: State
    source: SourceClass
    audience: Audience
    importance: float
    confidence: float
    categories: tuple[str, ...]
    metadata: dict[str, Any]
    project_id: UUID | None
    agent: str
    session_id: UUID | None
    occurred_at: datetime
    valid_to: datetime | None
    expires_at: datetime | None
    created_at: datetime
    superseded_by: UUID | None
    version: int
    access_count: int
    last_accessed_at: datetime | None


def opened(rows: Iterable[Memory], grant: Grant) -> list[MemoryView]:
    return [_view(row, json.loads(open_content(row.content_sealed, grant))) for row in rows]


# Written out, since every recall asks it.
_ROWS = "SELECT * FROM memory_memory WHERE tenant_id = %s AND subject_id = %s AND id = ANY(%s)"


def rows_in_order(ids: Sequence[UUID], index: Index, decision: Decision) -> list[Memory]:
    """The rows of these ids in their order. A row whose version is not the index's was put back: alarm, TagMismatch.

    An entry whose row is gone is passed over: the row was deleted by a write that this snapshot already sees.
    """
    scope = current_scope()
    found = RawQuerySet(_ROWS, model=Memory, params=(scope.tenant_id, scope.subject, list(ids))) if ids else ()
    rows = {row.id: row for row in found}
    for memory_id, row in rows.items():
        position = index.position(memory_id)
        if position is not None and int(index.content_version[position]) != row.content_version:
            raise_alarm(decision, memory_id)
    return [rows[memory_id] for memory_id in ids if memory_id in rows]


def view_for(principal: Principal, *, project_id: UUID | None, agent: str = "", **asked: Any) -> View:
    """From where this key looks. Raises NotFound for an unknown project, ProjectForbidden for one not its own."""
    project = accounts.project_for(principal, project_id)
    return View(project_id=project.id if project else None, agent=agent, **{"as_of": datetime.now(UTC)} | asked)


def list_memories(
    subject: SubjectRef, view: View, *, principal: Principal, after: UUID | None, limit: int
) -> list[MemoryView]:
    """At most `limit` memories that may appear in this view, newest first; recorded as one read.

    The rule is the one recall uses, so what is listed is what can be recalled.
    """
    decision = require(decide(subject, _act(view), caller=principal, project_id=view.project_id))
    index = sealed_index.open_whole(decision)
    allowed = index.take(recallable(index, decision, view))
    ids = sorted((allowed.id_at(position) for position in range(len(allowed))), reverse=True)
    ids = [memory_id for memory_id in ids if after is None or memory_id < after][:limit]
    rows = rows_in_order(ids, allowed, decision)
    grant = record_read(decision, ids, action="memory.memory.listed", counts={"items": len(rows)})
    return opened(rows, grant)


def read_memory(subject: SubjectRef, memory_id: UUID, view: View, *, principal: Principal) -> MemoryView:
    """One memory, current or replaced. NotFound for another person's, another project's, and what may not appear."""
    decision = require(decide(subject, _act(view), caller=principal, project_id=view.project_id))
    index = sealed_index.open_whole(decision)
    position = index.position(memory_id)
    if position is None or not recallable(index, decision, view)[position]:
        raise NotFound
    rows = rows_in_order([memory_id], index, decision)
    if not rows:
        raise NotFound
    return opened(rows, record_read(decision, [memory_id], action="memory.memory.read"))[0]


def _act(view: View) -> Act:
    return Act.SHARE if view.across_projects else Act.LIST


def _view(row: Memory, content: dict[str, Any]) -> MemoryView:
    return MemoryView(
        id=row.id,
        text=content["text"],
        kind=Kind(row.kind),
        state=State(row.state),
        source=SourceClass(row.source_class),
        audience=Audience(row.audience),
        importance=row.importance,
        confidence=row.confidence,
        categories=tuple(content["categories"]),
        metadata=content["metadata"],
        project_id=row.project_id,
        agent=row.agent,
        session_id=row.session_id,
        occurred_at=row.valid_from,
        valid_to=row.valid_to,
        expires_at=row.expires_at,
        created_at=row.created_at,
        superseded_by=row.superseded_by_id,
        version=row.content_version,
        access_count=row.access_count,
        last_accessed_at=row.last_accessed_at,
    )
