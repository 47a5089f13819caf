"""Storing memories as given, and replacing older ones by them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from accounts import selectors as accounts
from accounts.keys import Decision, seal_fields, subject_of, subject_pseudonym, term_key
from accounts.services.jobs import send_later
from accounts.types import Principal, SubjectRef
from audit import services as audit
from consent.policy import decide, require
from consent.types import SENSITIVE_CATEGORIES, Act
from memory import index as sealed_index
from memory.analysis import hash_terms, terms
from memory.encoding import Encoded, count_tokens
from memory.models import Memory
from memory.segments import Entry
from memory.services.replacing import settle_descent
from memory.services.sessions import session_for_writing
from memory.types import (
    PURPOSE_NUMBERS,
    QUARANTINED_SOURCES,
    Audience,
    Kind,
    SourceClass,
    State,
    StoredVector,
)

STORE_PURPOSE = "memory.store"


@dataclass(frozen=True, slots=True)
class NewMemory:
    """One memory as given. `occurred_at`: when it was said or happened (None: now); `supersedes`: ids it replaces."""

    text: str
    kind: Kind = Kind.SEMANTIC
    source: SourceClass = SourceClass.AGENT_INFERENCE
    importance: float = 0.5
    confidence: float = 1.0
    categories: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    agent: str = ""
    session: str = ""
    audience: Audience = Audience.PRIVATE
    supersedes: tuple[UUID, ...] = ()
    derived_from: tuple[UUID, ...] = ()

    @property
    def is_sensitive(self) -> bool:
        return not SENSITIVE_CATEGORIES.isdisjoint(self.categories)


@dataclass(frozen=True, slots=True)
class Stored:
    """What a write says of a memory: no content."""

    id: UUID
    state: State
    version: int
    vector_pending: bool


def remember(
    subject: SubjectRef,
    news: Sequence[NewMemory],
    encoded: Encoded | None,
    *,
    principal: Principal,
    project_id: UUID | None,
) -> list[Stored]:
    """Store all of them or none. On return they are durable with the commit, and findable.

    `encoded` holds their vectors in the same order; None stores them by words alone and has a job add the vectors.
    Raises what `require` raises when any of them needs a consent that is not in force, NotFound for an unknown project
    or a `supersedes` that is not this person's, SupersessionRefused.
    """
    project = accounts.project_for(principal, project_id)
    sensitive = any(new.is_sensitive for new in news)
    decision = require(
        decide(
            subject,
            Act.STORE,
            caller=principal,
            project_id=project.id if project else None,
            sensitive=sensitive,
        )
    )
    now = datetime.now(UTC)
    rows = [_row(new, decision, now) for new in news]
    Memory.objects.bulk_create(rows)
    vectors = encoded.stored() if encoded else [{} for _ in rows]
    key = term_key(decision)
    sealed_index.add_entries(
        [_entry(row, new, vector, key) for row, new, vector in zip(rows, news, vectors, strict=True)],
        decision,
    )
    _record(decision, rows)
    ended = settle_descent(list(zip(rows, news, strict=True)), decision=decision, principal=principal, now=now)
    if ended:
        _record(decision, ended, action="memory.memory.superseded")
    if encoded is None:
        send_later("memory.tasks.embed_pending")
    return [Stored(row.id, State(row.state), row.content_version, encoded is None) for row in rows]


def _row(new: NewMemory, decision: Decision, now: datetime) -> Memory:
    row = Memory(
        id=uuid7(),
        tenant_id=decision.tenant_id,
        subject_id=subject_of(decision).id,
        project_id=decision.project_id,
        agent=new.agent,
        session_id=session_for_writing(new.session, decision.project_id, decision) if new.session else None,
        kind=new.kind,
        state=State.QUARANTINED if new.source in QUARANTINED_SOURCES else State.ACTIVE,
        source_class=new.source,
        audience=new.audience,
        purpose=STORE_PURPOSE,
        written_by=decision.actor.id,
        importance=new.importance,
        confidence=new.confidence,
        valid_from=new.occurred_at or now,
        created_at=now,
        expires_at=new.expires_at,
    )
    content = {"v": 1, "text": new.text, "categories": list(new.categories), "metadata": dict(new.metadata)}
    seal_fields(row, decision, content_sealed=json.dumps(content, ensure_ascii=False).encode())
    return row


def _entry(row: Memory, new: NewMemory, vectors: Mapping[int, StoredVector], key: bytes) -> Entry:
    return Entry(
        id=row.id,
        kind=Kind(row.kind),
        state=State(row.state),
        source_class=SourceClass(row.source_class),
        purpose=PURPOSE_NUMBERS[row.purpose],
        audience=Audience(row.audience),
        importance=row.importance,
        confidence=row.confidence,
        created_at=row.created_at,
        content_version=row.content_version,
        token_count=count_tokens(new.text),
        terms=hash_terms(terms(new.text), key),
        vectors=vectors,
        project_id=row.project_id,
        agent=row.agent or None,
        session_id=row.session_id,
        valid_from=row.valid_from,
        expires_at=row.expires_at,
        categories=new.categories,
    )


def _record(decision: Decision, rows: Sequence[Memory], action: str = "memory.memory.stored") -> None:
    audit.record_in_transaction(
        tenant_id=decision.tenant_id,
        actor=decision.actor,
        action=action,
        resource_ids=[row.id for row in rows],
        subject_pseudonym=subject_pseudonym(decision.tenant_epoch, subject_of(decision)),
        purposes=decision.purposes,
        consent_refs=decision.consent_refs,
        decision="allowed",
        counts={"items": len(rows)},
    )
