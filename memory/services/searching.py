"""Searching the shared knowledge by itself; recorded like every read."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from accounts import selectors as accounts
from accounts.types import Principal
from consent.access import record_read
from consent.policy import decide_for_tenant
from consent.types import Act
from memory.encoding import Encoded
from memory.knowledge import KnowledgeQuery, Passage, find_chunks, open_chunks


def search_knowledge(
    text: str, encoded: Encoded | None, *, principal: Principal, project_id: UUID | None, **asked: Any
) -> tuple[UUID, Sequence[Passage]]:
    """The read's id in the log, and the passages, best first. Raises NotFound, ProjectForbidden, AuditUnavailable."""
    project = accounts.project_for(principal, project_id)
    found = find_chunks(KnowledgeQuery(text, encoded, project_id=project.id if project else None, **asked))
    grant = record_read(
        decide_for_tenant(Act.TENANT, caller=principal),
        [each.id for each in found],
        action="memory.knowledge.read",
        counts={"knowledge": len(found)},
    )
    return grant.event_id, open_chunks(found, grant)
