"""Recall: decide, open the index, rank, record, open, answer. One transaction that writes nothing, one committed entry.

Personal and shared are told apart, and a person who said no still gets an answer from the shared knowledge.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from accounts import selectors as accounts
from accounts.keys import Decision, Grant, term_key
from accounts.types import Principal, SubjectRef
from consent.access import record_read
from consent.policy import decide, decide_for_tenant, record_refusal
from consent.types import Act
from memory import index as sealed_index
from memory.access import View, recallable
from memory.analysis import AnalysedQuery, analysed, hash_query
from memory.chunking import citation
from memory.context import ContextBlock, ContextItem, Section, build_context
from memory.encoding import Encoded, count_tokens
from memory.knowledge import Found, KnowledgeQuery, Passage, find_chunks, open_chunks
from memory.models import Memory, ProfileEntry
from memory.ranking import Access, Candidate, Query, Ranking, ScoringPolicy, policy_named, rank
from memory.segments import Index
from memory.services.profile import ProfileLine, opened_entries, permitted_entries
from memory.services.reading import MemoryView, opened, rows_in_order
from memory.services.sessions import session_id_of
from memory.types import Kind
from memory.usage import note_memory_use


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A question about one person. `encoded` is its vector, None when the embedder did not answer in time.

    `with_profile` and `with_knowledge`: whether the asking key may read these parts; the answer says what it left out.
    `explain`: the figures of what was dropped are in the answer, so the log names it too.
    """

    query: str
    encoded: Encoded | None
    project_id: UUID | None = None
    agent: str = ""
    session: str = ""
    across_projects: bool = False
    as_of: datetime | None = None
    kinds: frozenset[Kind] = frozenset()
    categories: frozenset[str] = frozenset()
    created_after: datetime | None = None
    limit: int = 5
    knowledge_limit: int = 5
    budget_tokens: int = 2000
    scoring: Mapping[str, Any] | None = None
    with_profile: bool = True
    with_knowledge: bool = True
    explain: bool = False

    @property
    def left_out_parts(self) -> tuple[str, ...]:
        parts = (("profile", self.with_profile), ("knowledge", self.with_knowledge))
        return tuple(part for part, taken in parts if not taken)


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    memory: MemoryView
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer. `personal_status` is answered, or refused with the code why; `recall_id` is its entry in the log.

    left_out_parts: what the key lacks the scope for; dropped: only where an explanation was asked for.
    """

    recall_id: UUID
    personal_status: str
    personal_code: str
    memories: tuple[RecalledMemory, ...]
    dropped: tuple[Candidate, ...]
    profile: tuple[ProfileLine, ...]
    knowledge: tuple[Passage, ...]
    context: ContextBlock
    degraded: tuple[str, ...]
    left_out_parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Personal:
    """What was chosen of a person before anything is opened."""

    decision: Decision
    rows: Sequence[Memory] = ()
    ranking: Ranking = field(default_factory=lambda: Ranking((), (), degraded=False))
    profile: Sequence[ProfileEntry] = ()
    dropped: tuple[Candidate, ...] = ()

    @property
    def ids(self) -> list[UUID]:
        """All that is disclosed: what is opened, and of what was dropped the figures."""
        opened = [row.id for row in (*self.rows, *self.profile)]
        return opened + [candidate.id for candidate in self.dropped]


def recall(subject: SubjectRef, request: RecallRequest, *, principal: Principal) -> Recall:
    """Answer from the person's memory and the shared knowledge, as far as each may be used at this moment.

    Raises AuditUnavailable when the entry cannot be committed, KeyUnavailable when the index cannot be opened, NotFound
    for an unknown project; without consent it does not raise but says so.
    """
    project = accounts.project_for(principal, request.project_id)
    request = replace(request, project_id=project.id if project else None)
    act = Act.SHARE if request.across_projects else Act.RECALL
    decision = decide(subject, act, caller=principal, project_id=request.project_id)
    policy = policy_for(request.scoring or (project.scoring if project else None))
    words = analysed(request.query)
    personal = _choose(decision, request, words, policy) if decision.allowed else _Personal(decision)
    found = find_chunks(_knowledge_query(request, words))
    grant = _record(personal, found, principal)
    return _answer(personal, found, grant, request)


def policy_for(scoring: Mapping[str, Any] | None) -> ScoringPolicy:
    """The scoring policy a project configured or a request names: {"name": …, parameters}; `evidence` by default."""
    parameters = dict(scoring or {})
    return policy_named(str(parameters.pop("name", "evidence")), parameters)


def _choose(decision: Decision, request: RecallRequest, words: AnalysedQuery, policy: ScoringPolicy) -> _Personal:
    index = sealed_index.open_whole(decision)
    view = _view(request, decision)
    allowed = index.take(recallable(index, decision, view)) if view else Index.empty()
    vectors = (request.encoded.query(),) if request.encoded else ()
    query = Query(hash_query(words, term_key(decision)), vectors)
    ranking = rank(
        allowed,
        query,
        policy=policy,
        now=view.as_of if view else datetime.now(UTC),
        limit=request.limit,
        access=_accesses,
        with_dropped=request.explain,
    )
    rows = rows_in_order([candidate.id for candidate in ranking.candidates], index, decision)
    profile = permitted_entries(decision, request.project_id) if request.with_profile else []
    return _Personal(decision, rows, ranking, profile, ranking.dropped)


def _view(request: RecallRequest, decision: Decision) -> View | None:
    """None when a session is named that never was: nothing can come from it."""
    session_id = session_id_of(request.session, decision) if request.session else None
    if request.session and session_id is None:
        return None
    return View(
        as_of=request.as_of or datetime.now(UTC),
        project_id=request.project_id,
        agent=request.agent,
        session_id=session_id,
        across_projects=request.across_projects,
        kinds=request.kinds,
        categories=request.categories,
        created_after=request.created_after,
    )


def _accesses(ids: Sequence[UUID]) -> dict[UUID, Access]:
    rows = Memory.objects.filter(id__in=ids).values_list("id", "access_count", "last_accessed_at")
    return {memory_id: Access(count, last) for memory_id, count, last in rows}


def _knowledge_query(request: RecallRequest, words: AnalysedQuery) -> KnowledgeQuery:
    return KnowledgeQuery(
        text=words,
        encoded=request.encoded,
        project_id=request.project_id,
        limit=request.knowledge_limit if request.with_knowledge else 0,
    )


def _record(personal: _Personal, found: Sequence[Found], principal: Principal) -> Grant:
    """One committed entry for everything that will be opened; a refusal stands beside the shared part's."""
    counts = {"memories": len(personal.rows), "profile": len(personal.profile), "knowledge": len(found)}
    chunk_ids = [each.id for each in found]
    if personal.decision.allowed:
        return record_read(personal.decision, personal.ids + chunk_ids, action="memory.recall.answered", counts=counts)
    record_refusal(personal.decision)
    shared = decide_for_tenant(Act.TENANT, caller=principal)
    return record_read(shared, chunk_ids, action="memory.knowledge.read", counts=counts)


def _answer(personal: _Personal, found: Sequence[Found], grant: Grant, request: RecallRequest) -> Recall:
    decision = personal.decision
    memories = opened(personal.rows, grant)
    profile = opened_entries(personal.profile, grant)
    passages = open_chunks(found, grant)
    by_id = {candidate.id: candidate for candidate in personal.ranking.candidates}
    recalled = tuple(RecalledMemory(memory, by_id[memory.id]) for memory in memories)
    counted = note_memory_use(decision.tenant_id, personal.decision.subject, [memory.id for memory in memories])
    return Recall(
        recall_id=grant.event_id,
        personal_status="answered" if decision.allowed else "refused",
        personal_code=decision.reason,
        memories=recalled,
        dropped=personal.dropped,
        profile=tuple(profile),
        knowledge=tuple(passages),
        context=build_context(_parts(recalled, profile, passages), request.budget_tokens, count_tokens),
        degraded=tuple(part for part, down in (("embedder", request.encoded is None), ("usage", not counted)) if down),
        left_out_parts=request.left_out_parts,
    )


def _parts(
    recalled: Sequence[RecalledMemory], profile: Sequence[ProfileLine], passages: Sequence[Passage]
) -> dict[Section, list[ContextItem]]:
    def line(each: RecalledMemory) -> ContextItem:
        memory = each.memory
        return ContextItem(memory.id, memory.text, memory.occurred_at.date(), memory.source.name.lower())

    return {
        Section.PROFILE: [ContextItem(each.id, f"{each.key}: {each.in_words}", source="profile") for each in profile],
        Section.CRITICAL: [line(each) for each in recalled if each.candidate.critical],
        Section.MEMORIES: [line(each) for each in recalled if not each.candidate.critical],
        Section.KNOWLEDGE: [
            ContextItem(each.id, each.text, source=citation(each.title, each.heading)) for each in passages
        ],
    }
