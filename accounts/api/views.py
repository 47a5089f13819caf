"""Jobs over REST."""

from typing import ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import selectors
from accounts.api.serializers import JobAnswer, job_answer
from accounts.http.views import ApiView
from accounts.scopes import Scope
from accounts.tenancy import ALL


class ShowJob(ApiView):
    required_scopes: ClassVar = {"GET": Scope.JOBS_READ}

    @extend_schema(operation_id="show_job", responses=JobAnswer)
    def get(self, request: Request, job_id: UUID) -> Response:
        """Show a piece of background work: state, progress, and at its end the ids and counts of its result."""
        with self.tenant(ALL) as principal:
            return Response(job_answer(selectors.job_by_id(principal, job_id)))
