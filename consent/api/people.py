"""People: made known, read, listed."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import selectors
from accounts.http.paging import PageQuery, page_of
from accounts.http.versions import IF_MATCH, etag, if_match
from accounts.http.views import ApiView, checked_external_id
from accounts.models import Subject
from accounts.scopes import Scope
from accounts.services.idempotency import Answer
from accounts.services.subjects import AccountData, OpenedSubject
from accounts.types import AgeBand, SubjectRef
from consent.api.serializers import SubjectAnswer, SubjectInput, SubjectListed, SubjectState
from consent.services import people


class Subjects(ApiView):
    required_scopes: ClassVar = {"GET": Scope.SUBJECTS_READ}
    queries: ClassVar = {"GET": PageQuery}

    @extend_schema(operation_id="list_subjects", responses=page_of(SubjectListed))
    def get(self, request: Request) -> Response:
        """List the people known to the tenant, by the tenant's own ids."""
        page = self.page()
        with self.tenant() as principal:
            rows = selectors.subjects_not_erased()
            rows = rows.filter(id__gt=page.after) if page.after else rows
            found = people.read_directory(rows[: page.limit + 1], principal=principal)
        return Response(page.answer(found, _listed, lambda pair: pair[0].id))


class OneSubject(ApiView):
    required_scopes: ClassVar = {"GET": Scope.SUBJECTS_READ, "PUT": Scope.SUBJECTS_WRITE}

    @extend_schema(operation_id="show_subject", responses=SubjectAnswer)
    def get(self, request: Request, external_id: str) -> Response:
        """Show a person's account data. Recorded as a read."""
        with self.person(external_id) as subject:
            opened = people.read_subject(subject, principal=self.principal)
        return Response(_answer(opened), headers={"ETag": etag(opened.ref.version)})

    @extend_schema(
        operation_id="put_subject",
        parameters=[IF_MATCH],
        request=SubjectInput,
        responses={200: SubjectState, 201: SubjectState},
    )
    def put(self, request: Request, external_id: str) -> Response:
        """Make a person known, or replace their account data. An erased person's id makes a new person."""
        body = self.parse(SubjectInput)
        data = AccountData(**body | {"age_band": AgeBand(body["age_band"])})
        checked, if_version = checked_external_id(external_id), if_match(request)
        with self.tenant() as principal:

            def put() -> Answer:
                ref, new = people.put_subject(checked, data, principal=principal, if_version=if_version)
                return Answer(_state(ref), 201 if new else 200, {"ETag": etag(ref.version)})

            return self.once(put)


def _state(ref: SubjectRef) -> dict[str, Any]:
    return dict(SubjectState(ref).data)


def _answer(opened: OpenedSubject) -> dict[str, Any]:
    account = opened.account
    private = {"email": account.email, "name": account.name}
    public = {"locale": account.locale, "time_zone": account.time_zone, "age_band": account.age_band.value}
    return _state(opened.ref) | {"external_id": opened.external_id} | private | public


def _listed(pair: tuple[Subject, str]) -> dict[str, Any]:
    row, external_id = pair
    return _state(selectors.subject_ref(row)) | {"external_id": external_id}
