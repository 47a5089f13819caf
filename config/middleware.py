"""Outermost: a request gets an id that its log lines, audit entries and answer share, an exact path, a bounded body."""

import re
from collections.abc import Callable
from urllib.parse import unquote_to_bytes
from uuid import uuid4

from django.core.exceptions import RequestDataTooBig
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, UnreadablePostError

from accounts.errors import FieldError, PayloadTooLarge, ValidationFailed
from accounts.http.parsing import declared_too_large
from accounts.usage import lossy_store
from audit.context import request_id
from config.logs import LOGGED_ID
from config.problems import problem

type GetResponse = Callable[[HttpRequest], HttpResponse]

_HARMLESS = re.compile(r"[A-Za-z0-9_-]{8,64}")


class RequestIdentity:
    """Makes the request's id and answers with it. The caller's own `X-Request-Id` may be words about a person.

    So that one goes back to the caller, when it is harmless, as `X-Client-Request-Id`, and nowhere else.
    `X-Degraded: valkey` says that uses are not counted and background work starts late; everything else works.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        identity = request.META[LOGGED_ID] = uuid4().hex
        token = request_id.set(identity)
        try:
            response = self.get_response(request)
        finally:
            request_id.reset(token)
        response["X-Request-Id"] = identity
        offered = request.headers.get("X-Request-Id", "")
        if _HARMLESS.fullmatch(offered):
            response["X-Client-Request-Id"] = offered
        response.setdefault("Cache-Control", "no-store")
        if lossy_store().paused:
            response["X-Degraded"] = "valkey"
        return response


class ExactPath:
    """Refuses a path that says another thing once decoded: `%2F` would part it, a byte that is not UTF-8 be any other.

    Relies on the server to hand on the path as sent: `raw_path` (ASGI), `RAW_URI` or `REQUEST_URI` (WSGI).
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        wrong = _what_is_lost(_path_as_sent(request))
        if wrong:
            return problem(ValidationFailed(errors=[FieldError("", wrong)]), request.path)
        return self.get_response(request)


def _path_as_sent(request: HttpRequest) -> bytes:
    """Percent-encoded, without the query; empty when the server does not say."""
    if isinstance(request, ASGIRequest):
        return request.scope.get("raw_path") or b""
    target: str = request.META.get("RAW_URI") or request.META.get("REQUEST_URI") or ""
    return target.partition("?")[0].encode("latin-1", "replace")


def _what_is_lost(path: bytes) -> str:
    if b"%2f" in path.lower():
        return "The path must not hold an encoded `/`."
    try:
        unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        return "The path is not UTF-8."
    return ""


class BodyLimit:
    """Refuses a body over 1 MiB before anything looks at it. Under ASGI `config.body_door` has done so already."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if declared_too_large(request.headers.get("Content-Length", "")):
            return problem(PayloadTooLarge(), request.path)
        try:
            request.body  # noqa: B018  reading it here keeps the exact bytes for idempotency
        except RequestDataTooBig:
            return problem(PayloadTooLarge(), request.path)
        except UnreadablePostError:
            return HttpResponse(status=400)
        return self.get_response(request)
