"""The REST view: authenticates, enters the scope inside the handler so that a refusal rolls back, answers a retry once.

A handler parses, calls `tenant()` or `person()`, and hands one service or selector to `Response` or `once`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar, cast

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import selectors
from accounts.errors import DomainError, FieldError, ValidationFailed
from accounts.http.fields import StrictSerializer
from accounts.http.paging import Page
from accounts.scopes import Scope
from accounts.services import idempotency
from accounts.services.refusals import record_refused_request
from accounts.tenancy import NONE, Reach, narrow, scope
from accounts.types import Principal, SubjectRef

MAX_EXTERNAL_ID_BYTES = 255
# Not the strangers' 404, which would fill the log with typing errors, and not what the input's form was refused for.
_RECORDED = frozenset({403, 410})


class ApiView(APIView):
    """`required_scopes` names the scope of each method; a method without one answers nobody.

    `queries` names the query parameters of a method; any other parameter is refused, so none can be ignored.
    """

    required_scopes: ClassVar[dict[str, Scope]] = {}
    queries: ClassVar[dict[str, type[StrictSerializer]]] = {}
    # Writes whose answer may not be kept: an Idempotency-Key changes nothing there.
    answers_anew: ClassVar[frozenset[str]] = frozenset()
    query: dict[str, Any]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """After who and whether: what the address asks. Sets `query`."""
        super().initial(request, *args, **kwargs)
        method = "GET" if request.method == "HEAD" else str(request.method)
        self.query = self._parsed_query(self.queries.get(method, StrictSerializer))

    def handle_exception(self, exc: Exception) -> Response:
        """The scope has rolled back by now. What was refused to a key, and why, is entered in the log."""
        if isinstance(exc, DomainError) and _is_to_record(exc) and isinstance(self.request.auth, Principal):
            record_refused_request(self.request.auth, exc.code)
        return super().handle_exception(exc)

    @property
    def principal(self) -> Principal:
        return cast("Principal", self.request.auth)

    @contextmanager
    def tenant(self, reach: Reach = NONE) -> Iterator[Principal]:
        """The tenant's own rows (or, with ALL, everybody's), in one transaction."""
        with scope(self.principal.tenant_id, reach):
            yield self.principal

    @contextmanager
    def person(self, external_id: str) -> Iterator[SubjectRef]:
        """One person's rows and the tenant's shared ones, in one transaction. Raises NotFound, SubjectErased."""
        checked = checked_external_id(external_id)
        with self.tenant() as principal:
            subject = selectors.subject_by_external_id(principal, checked)
            with narrow(subject.id, to_the_end=True):
                yield subject

    def parse[S: StrictSerializer](self, serializer: type[S], data: Any = None) -> dict[str, Any]:
        """The validated body; raises what the problem handler turns into `validation_failed`."""
        if data is None and not self.request.body:
            raise ValidationFailed(errors=[FieldError("", "The body is empty; send a JSON object.")])
        given = self.request.data if data is None else data
        if given is None:
            serializer(data=None).is_valid(raise_exception=True)
        return cast("dict[str, Any]", _bound(serializer).run_validation(given))

    def _parsed_query(self, serializer: type[StrictSerializer]) -> dict[str, Any]:
        parameters = self.request.query_params
        repeated = [name for name in parameters if len(parameters.getlist(name)) > 1]
        if repeated:
            raise ValidationFailed(errors=[FieldError(name, "Given more than once.") for name in repeated])
        return self.parse(serializer, parameters.dict())

    def page(self) -> Page:
        """The page of a list that was asked for; its query is a PageQuery."""
        return Page.of(self.query)

    def once(self, work: Callable[[], idempotency.Answer], subject: SubjectRef | None = None) -> Response:
        """Do the work, or, when its Idempotency-Key was seen with this very request, give the answer it gave."""
        answer = idempotency.run_once(
            work,
            principal=self.principal,
            key=self.request.headers.get("Idempotency-Key", ""),
            request=self._request_bytes(),
            subject_id=subject.id if subject else None,
        )
        headers = {"Idempotency-Replayed": "true"} if answer.replayed else {}
        return Response(answer.body, status=answer.status, headers=headers | answer.headers)

    def _request_bytes(self) -> tuple[bytes, ...]:
        return (str(self.request.method).encode(), self.request.get_full_path().encode(), self.request.body)


@cache
def _bound(serializer: type[StrictSerializer]) -> StrictSerializer:
    """The one that parses for everybody: making one copies all its fields, and validating changes nothing in it."""
    return serializer()


def _is_to_record(refusal: DomainError) -> bool:
    return refusal.status in _RECORDED and not refusal.recorded


def checked_external_id(external_id: str) -> str:
    """The tenant's id of a person, byte-exact: 1–255 bytes of UTF-8; no `/`, no NUL, no broken character."""
    size = len(external_id.encode("utf-8", "surrogatepass"))
    if not 1 <= size <= MAX_EXTERNAL_ID_BYTES:
        raise ValidationFailed(errors=[FieldError("external_id", "Must be 1 to 255 bytes long.")])
    # A server that decodes the path leniently turns every broken byte into U+FFFD: two ids would be one person.
    if any(character in "/\x00\ufffd" or 0xD800 <= ord(character) <= 0xDFFF for character in external_id):
        raise ValidationFailed(errors=[FieldError("external_id", "Must not hold `/`, NUL or broken characters.")])
    return external_id
