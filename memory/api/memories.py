"""Memories and recall."""

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import FieldError, ProjectForbidden, ValidationFailed
from accounts.http.paging import page_of
from accounts.http.views import ApiView
from accounts.scopes import Scope
from accounts.services.idempotency import Answer
from accounts.types import Principal
from memory.api import serializers as shapes
from memory.api.answers import memory_answer, recall_answer, stored_answer
from memory.encoding import encode, encode_question
from memory.errors import MessagesNotTaken
from memory.services.forgetting import forget_memory
from memory.services.reading import list_memories, read_memory, view_for
from memory.services.recalling import RecallRequest, recall
from memory.services.remembering import NewMemory, remember
from memory.types import Audience, Kind, SourceClass

CLOCK_TOLERANCE = timedelta(minutes=5)
_ONE_OR_MANY = PolymorphicProxySerializer(
    component_name="MemoriesInput",
    serializers=[shapes.MemoryInput, shapes.BatchInput],
    resource_type_field_name=None,
)


class Memories(ApiView):
    required_scopes: ClassVar = {"GET": Scope.MEMORIES_READ, "POST": Scope.MEMORIES_WRITE}
    queries: ClassVar = {"GET": shapes.MemoriesQuery}

    @extend_schema(
        operation_id="list_memories",
        responses=page_of(shapes.MemoryAnswer),
    )
    def get(self, request: Request, external_id: str) -> Response:
        """List what can be recalled of a person from this project and agent, newest first."""
        query, page = self.query, self.page()
        with self.person(external_id) as subject:
            view = view_for(self.principal, project_id=query.get("project"), **_asked(query))
            _refuse_across(self, view.across_projects)
            found = list_memories(subject, view, principal=self.principal, after=page.after, limit=page.limit + 1)
        return Response(page.answer(found, memory_answer, lambda memory: memory.id))

    @extend_schema(operation_id="store_memories", request=_ONE_OR_MANY, responses={201: shapes.MemoriesStored})
    def post(self, request: Request, external_id: str) -> Response:
        """Store one memory as given, or up to a hundred, all or none."""
        given = request.data if isinstance(request.data, dict) else {}
        if "messages" in given or given.get("infer") is True:
            raise MessagesNotTaken
        body = self.parse(shapes.BatchInput if "items" in given else shapes.MemoryInput)
        news = _new_memories(body)
        encoded = encode([new.text for new in news])
        with self.person(external_id) as subject:

            def store() -> Answer:
                stored = remember(subject, news, encoded, principal=self.principal, project_id=body.get("project"))
                degraded = [] if encoded else ["embedder"]
                return Answer({"memories": [stored_answer(each) for each in stored], "degraded": degraded}, 201)

            return self.once(store, subject)


class OneMemory(ApiView):
    required_scopes: ClassVar = {"GET": Scope.MEMORIES_READ, "DELETE": Scope.MEMORIES_DELETE}
    queries: ClassVar = {"GET": shapes.OneMemoryQuery}

    @extend_schema(operation_id="show_memory", responses=shapes.MemoryAnswer)
    def get(self, request: Request, external_id: str, memory_id: UUID) -> Response:
        """Show one memory, current or replaced."""
        query = dict(self.query)
        with self.person(external_id) as subject:
            view = view_for(self.principal, project_id=query.pop("project", None), history=True, **query)
            _refuse_across(self, view.across_projects)
            memory = read_memory(subject, memory_id, view, principal=self.principal)
        return Response(memory_answer(memory), headers={"ETag": f'"{memory.version}"'})

    @extend_schema(operation_id="forget_memory", responses={200: shapes.MemoryState})
    def delete(self, request: Request, external_id: str, memory_id: UUID) -> Response:
        """Delete a memory for good: its row, its place in the index, its descent."""
        with self.person(external_id) as subject:

            def forget() -> Answer:
                forget_memory(subject, memory_id, caller=self.principal)
                return Answer({"id": str(memory_id), "state": "forgotten"})

            return self.once(forget, subject)


class Recall(ApiView):
    required_scopes: ClassVar = {"POST": Scope.MEMORIES_READ}

    @extend_schema(operation_id="recall", request=shapes.RecallInput, responses=shapes.RecallAnswer)
    def post(self, request: Request, external_id: str) -> Response:
        """Answer a question from a person's memory and the shared knowledge, as far as each may be used now."""
        body = self.parse(shapes.RecallInput)
        _refuse_across(self, body["across_projects"])
        asked = _recall_request(body, self.principal)
        with self.person(external_id) as subject:
            answer = recall(subject, asked, principal=self.principal)
        return Response(recall_answer(answer, explain=body["explain"]))


def _refuse_across(view: ApiView, across_projects: bool) -> None:
    """A key bound to one project does not see the others, whatever the person allowed."""
    if across_projects and view.principal.project_id:
        raise ProjectForbidden


def _asked(query: dict[str, Any]) -> dict[str, Any]:
    return {
        "agent": query["agent"],
        "across_projects": query["across_projects"],
        "history": query["history"],
        "kinds": frozenset({Kind[query["kind"].upper()]} if "kind" in query else ()),
        "categories": frozenset({query["category"]} if "category" in query else ()),
        "created_after": query.get("created_after"),
    }


def _new_memories(body: dict[str, Any]) -> list[NewMemory]:
    if "items" in body:
        return [_new_memory(item, f"/items/{place}") for place, item in enumerate(body["items"])]
    return [_new_memory(body, "")]


def _new_memory(item: dict[str, Any], pointer: str) -> NewMemory:
    now = datetime.now(UTC)
    if item.get("occurred_at") and item["occurred_at"] > now + CLOCK_TOLERANCE:
        detail = "Lies in the future. It says when this was said or happened; put dates to come into the text."
        raise ValidationFailed(errors=[FieldError(f"{pointer}/occurred_at", detail)])
    return NewMemory(
        text=item["text"],
        kind=Kind[item["kind"].upper()],
        source=SourceClass[item["source"].upper()],
        audience=Audience[item["audience"].upper()],
        importance=item["importance"],
        confidence=item["confidence"],
        categories=tuple(dict.fromkeys(item["categories"])),
        metadata=item["metadata"],
        occurred_at=item.get("occurred_at"),
        expires_at=item.get("expires_at"),
        agent=item["agent"],
        session=item["session"],
        supersedes=tuple(dict.fromkeys(item["supersedes"])),
        derived_from=tuple(dict.fromkeys(item["derived_from"])),
    )


def _recall_request(body: dict[str, Any], principal: Principal) -> RecallRequest:
    return RecallRequest(
        query=body["query"],
        encoded=encode_question(body["query"], principal.tenant_id),
        project_id=body.get("project"),
        agent=body["agent"],
        session=body["session"],
        across_projects=body["across_projects"],
        as_of=body.get("as_of"),
        kinds=frozenset(Kind[kind.upper()] for kind in body["kinds"]),
        categories=frozenset(body["categories"]),
        created_after=body.get("created_after"),
        limit=body["limit"],
        knowledge_limit=body["knowledge_limit"],
        budget_tokens=body["budget_tokens"],
        scoring=body.get("scoring"),
        with_profile=Scope.PROFILE_READ in principal.scopes,
        with_knowledge=Scope.KNOWLEDGE_READ in principal.scopes,
        explain=body["explain"],
    )
