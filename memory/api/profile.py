"""Profile keys a tenant declares, and a person's values."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import selectors as accounts
from accounts.http.paging import PageQuery, page_of
from accounts.http.versions import IF_MATCH, etag, if_match
from accounts.http.views import ApiView
from accounts.scopes import Scope
from accounts.services.idempotency import Answer
from memory import selectors
from memory.api import serializers as shapes
from memory.services import profile


class ProfileKeys(ApiView):
    required_scopes: ClassVar = {"GET": Scope.PROFILE_READ}
    queries: ClassVar = {"GET": PageQuery}

    @extend_schema(operation_id="list_profile_keys", responses=page_of(shapes.ProfileKeyAnswer))
    def get(self, request: Request) -> Response:
        """List the profile keys that are declared."""
        page = self.page()
        with self.tenant() as principal:
            rows = selectors.profile_keys(principal, after=page.after)[: page.limit + 1]
            return Response(page.answer(list(rows), _key_answer, lambda row: row.id))


class OneProfileKey(ApiView):
    required_scopes: ClassVar = {"PUT": Scope.PROJECTS_WRITE}
    queries: ClassVar = {"PUT": shapes.ProjectQuery}

    @extend_schema(
        operation_id="declare_profile_key",
        request=shapes.ProfileKeyInput,
        responses=shapes.ProfileKeyAnswer,
    )
    def put(self, request: Request, key: str) -> Response:
        """Declare a profile key with its JSON Schema, for the tenant or one project, or change it."""
        body = self.parse(shapes.ProfileKeyInput)
        with self.tenant() as principal:

            def declare() -> Answer:
                project = accounts.project_for(principal, self.query.get("project"))
                where = project.id if project else None
                return Answer(_key_answer(profile.declare_key(key, project_id=where, actor=principal.actor, **body)))

            return self.once(declare)


class Profile(ApiView):
    required_scopes: ClassVar = {"GET": Scope.PROFILE_READ}
    queries: ClassVar = {"GET": shapes.ProjectQuery}

    @extend_schema(
        operation_id="list_profile",
        responses=page_of(shapes.ProfileLineAnswer),
    )
    def get(self, request: Request, external_id: str) -> Response:
        """List a person's profile values that may appear."""
        with self.person(external_id) as subject:
            lines = profile.read_profile(subject, principal=self.principal, project_id=self.query.get("project"))
        return Response({"items": shapes.ProfileLineAnswer(lines, many=True).data, "next_cursor": None})


class OneProfileValue(ApiView):
    required_scopes: ClassVar = {
        "GET": Scope.PROFILE_READ,
        "PUT": Scope.PROFILE_WRITE,
        "DELETE": Scope.PROFILE_WRITE,
    }
    queries: ClassVar = {"GET": shapes.ProjectQuery, "PUT": shapes.ProjectQuery, "DELETE": shapes.ProjectQuery}

    @extend_schema(
        operation_id="show_profile_value",
        responses=shapes.ProfileLineAnswer,
    )
    def get(self, request: Request, external_id: str, key: str) -> Response:
        """Show one profile value."""
        with self.person(external_id) as subject:
            (line,) = profile.read_profile(
                subject, principal=self.principal, project_id=self.query.get("project"), key=key
            )
        return Response(shapes.ProfileLineAnswer(line).data, headers={"ETag": etag(line.version)})

    @extend_schema(
        operation_id="set_profile_value",
        parameters=[IF_MATCH],
        request=shapes.ProfileInput,
        responses=shapes.ProfileState,
    )
    def put(self, request: Request, external_id: str, key: str) -> Response:
        """Set a declared profile key to a value that satisfies its schema."""
        body, version = self.parse(shapes.ProfileInput), if_match(request)
        with self.person(external_id) as subject:

            def put() -> Answer:
                row = profile.set_value(
                    subject,
                    key,
                    body["value"],
                    principal=self.principal,
                    project_id=self.query.get("project"),
                    if_version=version,
                )
                return Answer({"id": str(row.id), "version": row.version}, 200, {"ETag": etag(row.version)})

            return self.once(put, subject)

    @extend_schema(
        operation_id="remove_profile_value",
        responses={200: shapes.MemoryState},
    )
    def delete(self, request: Request, external_id: str, key: str) -> Response:
        """Remove a profile value for good."""
        with self.person(external_id) as subject:

            def remove() -> Answer:
                removed = profile.remove_value(
                    subject, key, principal=self.principal, project_id=self.query.get("project")
                )
                return Answer({"id": str(removed), "state": "forgotten"})

            return self.once(remove, subject)


def _key_answer(row: Any) -> dict[str, Any]:
    return dict(shapes.ProfileKeyAnswer(row).data)
