"""Projects, with the recall policy that memory checks and applies."""

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import selectors
from accounts.http.fields import ExactBoolean, ExactText, StrictSerializer
from accounts.http.paging import PageQuery, page_of
from accounts.http.views import ApiView
from accounts.models import Project
from accounts.scopes import Scope
from accounts.services.idempotency import Answer
from accounts.services.tenants import change_project, create_project
from memory.api.serializers import ScoringField


class ProjectInput(StrictSerializer):
    """A project and its recall policy."""

    name = ExactText(plain=True, max_length=100)
    scoring = ScoringField(default=dict, help_text='For example {"name": "recency", "recency_weight": 0.3}.')
    undeclared_profile_keys = ExactBoolean(default=False)


class ProjectAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    scoring = serializers.DictField()
    undeclared_profile_keys = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class Projects(ApiView):
    required_scopes: ClassVar = {"GET": Scope.PROJECTS_READ, "POST": Scope.PROJECTS_WRITE}
    queries: ClassVar = {"GET": PageQuery}

    @extend_schema(operation_id="list_projects", responses=page_of(ProjectAnswer))
    def get(self, request: Request) -> Response:
        """List the projects this key may see."""
        page = self.page()
        with self.tenant() as principal:
            rows = selectors.projects_of(principal, after=page.after)[: page.limit + 1]
            return Response(page.answer(list(rows), _answer, lambda row: row.id))

    @extend_schema(operation_id="create_project", request=ProjectInput, responses={201: ProjectAnswer})
    def post(self, request: Request) -> Response:
        """Create a project with its recall policy."""
        body = self.parse(ProjectInput)
        with self.tenant() as principal:
            return self.once(lambda: Answer(_answer(create_project(**body, actor=principal.actor)), 201))


class OneProject(ApiView):
    required_scopes: ClassVar = {"GET": Scope.PROJECTS_READ, "PUT": Scope.PROJECTS_WRITE}

    @extend_schema(operation_id="show_project", responses=ProjectAnswer)
    def get(self, request: Request, project_id: UUID) -> Response:
        """Show a project."""
        with self.tenant() as principal:
            return Response(_answer(selectors.project_by_id(principal, project_id)))

    @extend_schema(operation_id="put_project", request=ProjectInput, responses=ProjectAnswer)
    def put(self, request: Request, project_id: UUID) -> Response:
        """Replace a project's name and settings."""
        body = self.parse(ProjectInput)
        with self.tenant() as principal:
            project = selectors.project_by_id(principal, project_id)
            return self.once(lambda: Answer(_answer(change_project(project.id, **body, actor=principal.actor))))


def _answer(row: Project) -> dict[str, Any]:
    return dict(ProjectAnswer(row).data)
