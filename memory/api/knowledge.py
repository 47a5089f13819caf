"""Documents of the tenant, and searching them."""

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.serializers import JobAnswer, job_answer
from accounts.http.fields import (
    ExactChoice,
    ExactId,
    ExactInstant,
    ExactInteger,
    ExactList,
    ExactPattern,
    ExactText,
    StrictSerializer,
)
from accounts.http.paging import PageQuery, page_of
from accounts.http.views import ApiView
from accounts.scopes import Scope
from accounts.services.idempotency import Answer
from memory import selectors
from memory.api.answers import passage_answer
from memory.api.serializers import MAX_TEXT, MemoryState, PassageAnswer
from memory.encoding import encode_question
from memory.models import Document
from memory.services import documents
from memory.services.documents import NewDocument
from memory.services.searching import search_knowledge

MAX_DOCUMENT = 500_000
DOCUMENT_STATES = list(Document.State.values)
_TAG = r"^[\w][\w .:/-]{0,49}$"


class DocumentInput(StrictSerializer):
    """A document. `name` identifies it within its project: storing it again replaces it."""

    name = ExactText(plain=True, max_length=200)
    title = ExactText(plain=True, max_length=300, allow_blank=True, default="")
    text = ExactText(
        plain=True, max_length=MAX_DOCUMENT, says_something=True, example="A refund takes five working days."
    )
    format = ExactChoice(choices=["text", "markdown"], default="text")
    source = ExactText(plain=True, max_length=1000, allow_blank=True, default="")  # type: ignore[assignment] # a field's name
    tags = ExactList(child=ExactPattern(_TAG), max_length=20, default=list)
    project = ExactId(required=False)


class DocumentListed(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    title = serializers.CharField()
    format = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment] # a field's name
    tags = serializers.ListField(child=serializers.CharField())
    project = serializers.UUIDField(allow_null=True, source="project_id")
    state = serializers.ChoiceField(choices=DOCUMENT_STATES)
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class DocumentAnswer(DocumentListed):
    text = serializers.CharField()


class DocumentStored(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    version = serializers.IntegerField()
    state = serializers.CharField()
    job = JobAnswer()


class SearchInput(StrictSerializer):
    """A question about the shared knowledge."""

    query = ExactText(max_length=MAX_TEXT, says_something=True)
    project = ExactId(required=False)
    tags = ExactList(child=ExactPattern(_TAG), max_length=20, default=list)
    created_after = ExactInstant(required=False)
    limit = ExactInteger(min_value=1, max_value=50, default=5)


class SearchAnswer(serializers.Serializer[Any]):
    search_id = serializers.UUIDField(help_text="The id of this read in the audit log.")
    knowledge = PassageAnswer(many=True)
    degraded = serializers.ListField(child=serializers.ChoiceField(choices=["embedder"]))


class Documents(ApiView):
    required_scopes: ClassVar = {"GET": Scope.KNOWLEDGE_READ, "POST": Scope.KNOWLEDGE_WRITE}
    queries: ClassVar = {"GET": PageQuery}

    @extend_schema(operation_id="list_documents", responses=page_of(DocumentListed))
    def get(self, request: Request) -> Response:
        """List the documents this key may see, without their texts."""
        page = self.page()
        with self.tenant() as principal:
            rows = selectors.documents(principal, after=page.after)[: page.limit + 1]
            return Response(page.answer(list(rows), _listed, lambda row: row.id))

    @extend_schema(operation_id="store_document", request=DocumentInput, responses={202: DocumentStored})
    def post(self, request: Request) -> Response:
        """Store or replace a document; a worker cuts, embeds and indexes it, and the job says how far it is."""
        body = self.parse(DocumentInput)
        project_id = body.pop("project", None)
        new = NewDocument(**body | {"tags": tuple(body["tags"])})
        with self.tenant() as principal:

            def store() -> Answer:
                row, job = documents.store_document(new, principal=principal, project_id=project_id)
                state = {
                    "id": str(row.id),
                    "version": row.version,
                    "state": row.state,
                    "job": job_answer(job),
                }
                return Answer(state, 202)

            return self.once(store)


class OneDocument(ApiView):
    required_scopes: ClassVar = {"GET": Scope.KNOWLEDGE_READ, "DELETE": Scope.KNOWLEDGE_WRITE}

    @extend_schema(operation_id="show_document", responses=DocumentAnswer)
    def get(self, request: Request, document_id: UUID) -> Response:
        """Show a document with its text."""
        with self.tenant() as principal:
            return Response(DocumentAnswer(documents.read_document(document_id, principal=principal)).data)

    @extend_schema(operation_id="remove_document", responses={200: MemoryState})
    def delete(self, request: Request, document_id: UUID) -> Response:
        """Remove a document with its passages."""
        with self.tenant() as principal:

            def remove() -> Answer:
                documents.remove_document(document_id, principal=principal)
                return Answer({"id": str(document_id), "state": "removed"})

            return self.once(remove)


class SearchKnowledge(ApiView):
    required_scopes: ClassVar = {"POST": Scope.KNOWLEDGE_READ}

    @extend_schema(operation_id="search_knowledge", request=SearchInput, responses=SearchAnswer)
    def post(self, request: Request) -> Response:
        """Search the shared knowledge by meaning and by words."""
        body = self.parse(SearchInput)
        encoded = encode_question(body["query"], self.principal.tenant_id)
        with self.tenant() as principal:
            search_id, passages = search_knowledge(
                body["query"],
                encoded,
                principal=principal,
                project_id=body.get("project"),
                tags=tuple(body["tags"]),
                created_after=body.get("created_after"),
                limit=body["limit"],
            )
        found = [passage_answer(passage, explain=False) for passage in passages]
        degraded = [] if encoded else ["embedder"]
        return Response({"search_id": str(search_id), "knowledge": found, "degraded": degraded})


def _listed(row: Document) -> dict[str, Any]:
    return dict(DocumentListed(row).data)
