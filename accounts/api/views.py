"""Projects and jobs over REST."""

from typing import ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import selectors
from accounts.api.serializers import JobAnswer, ProjectAnswer, ProjectInput, job_answer, project_answer
from accounts.http.paging import PageQuery
from accounts.http.views import ApiView
from accounts.scopes import Scope
from accounts.services.idempotency import Answer
from accounts.services.tenants import create_project
from accounts.tenancy import ALL


class Projects(ApiView):
    required_scopes: ClassVar = {"GET": Scope.PROJECTS_READ, "POST": Scope.PROJECTS_WRITE}

    @extend_schema(operation_id="list_projects", parameters=[PageQuery], responses=ProjectAnswer(many=True))
    def get(self, request: Request) -> Response:
        page = self.page()
        with self.tenant():
            rows = selectors.projects()
            rows = rows.filter(id__gt=page.after) if page.after else rows
            return Response(page.answer(list(rows[: page.limit + 1]), project_answer, lambda row: row.id))

    @extend_schema(operation_id="create_project", request=ProjectInput, responses={201: ProjectAnswer})
    def post(self, request: Request) -> Response:
        body = self.parse(ProjectInput)
        with self.tenant() as principal:
            return self.once(lambda: Answer(project_answer(create_project(**body, actor=principal.actor)), 201))


class ShowJob(ApiView):
    required_scopes: ClassVar = {"GET": Scope.JOBS_READ}

    @extend_schema(operation_id="show_job", responses=JobAnswer)
    def get(self, request: Request, job_id: UUID) -> Response:
        with self.tenant(ALL):
            return Response(job_answer(selectors.job_by_id(job_id)))
