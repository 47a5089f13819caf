"""Outermost: every request gets an id that its log lines, audit entries and answer share, and a bounded body."""

import re
from collections.abc import Callable
from uuid import uuid4

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, UnreadablePostError

from accounts.errors import PayloadTooLarge
from accounts.http.parsing import MAX_BODY_BYTES
from accounts.usage import lossy_store
from audit.context import request_id
from config.problems import problem

type GetResponse = Callable[[HttpRequest], HttpResponse]

_ACCEPTED_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")


class RequestIdentity:
    """Takes the caller's `X-Request-Id` when it is harmless, else makes one; answers with it.

    `X-Degraded: valkey` says that uses are not counted and background work starts late; everything else works.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        offered = request.headers.get("X-Request-Id", "")
        identity = offered if _ACCEPTED_ID.fullmatch(offered) else uuid4().hex
        token = request_id.set(identity)
        try:
            response = self.get_response(request)
        finally:
            request_id.reset(token)
        response["X-Request-Id"] = identity
        response.setdefault("Cache-Control", "no-store")
        if lossy_store().paused:
            response["X-Degraded"] = "valkey"
        return response


class BodyLimit:
    """Refuses a body over 1 MiB before anything looks at it, by its declared length and by what really comes."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        declared = request.headers.get("Content-Length", "")
        if declared.isdigit() and int(declared) > MAX_BODY_BYTES:
            return problem(PayloadTooLarge(), request.path)
        try:
            request.body  # noqa: B018  reading it here keeps the exact bytes for idempotency
        except RequestDataTooBig:
            return problem(PayloadTooLarge(), request.path)
        except UnreadablePostError:
            return HttpResponse(status=400)
        return self.get_response(request)
