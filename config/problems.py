"""Every refusal in one shape: RFC 9457 problem details with a stable code and the request's id."""

import logging
from collections.abc import Iterable, Iterator
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response

from accounts import errors
from accounts.http.fields import MAX_ERRORS, and_more
from audit.context import request_id
from audit.errors import AuditUnavailable

logger = logging.getLogger(__name__)

PROBLEM_TYPE = "application/problem+json"
DOCS = "/docs/errors#"


def problem(error: errors.DomainError, path: str) -> JsonResponse:
    return JsonResponse(problem_body(error, path), status=error.status, content_type=PROBLEM_TYPE)


def problem_body(error: errors.DomainError, path: str) -> dict[str, Any]:
    return {
        "type": f"{DOCS}{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "instance": path,
        "code": error.code,
        "errors": [{"pointer": item.pointer, "detail": item.detail} for item in error.errors],
        "request_id": request_id.get(),
    }


def problem_response(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's exception handler. The scope's transaction has rolled back by the time this runs."""
    domain = as_domain_error(error)
    if domain.status >= 500:
        logger.error("%s answered %s", type(error).__name__, domain.code, exc_info=error)
    response = Response(problem_body(domain, context["request"].path), status=domain.status, content_type=PROBLEM_TYPE)
    if isinstance(domain, errors.Unauthenticated):
        response["WWW-Authenticate"] = 'Bearer realm="forget-me-not"'
    if domain.status == 503:
        response["Retry-After"] = "5"
    return response


def as_domain_error(error: Exception) -> errors.DomainError:  # noqa: PLR0911  one line a case reads best
    match error:
        case errors.DomainError():
            return error
        case AuditUnavailable():
            return errors.AuditUnavailableError()
        case exceptions.ValidationError():
            return errors.ValidationFailed(errors=_first(_field_errors(error.detail)))
        case exceptions.UnsupportedMediaType():
            return errors.UnsupportedMediaType()
        case exceptions.MethodNotAllowed():
            return errors.MethodNotAllowed(str(error.detail))
        case exceptions.ParseError():
            return errors.ValidationFailed(str(error.detail))
        case SuspiciousOperation():
            return errors.ValidationFailed("The request is not well-formed.")
        case Http404() | exceptions.NotFound():
            return errors.NotFound()
        case OperationalError() | InterfaceError():
            return errors.DatabaseUnavailable()
    return errors.InternalError()


def _first(found: Iterable[errors.FieldError]) -> list[errors.FieldError]:
    """At most MAX_ERRORS; when there are more, the last one says how many."""
    every = list(found)
    if len(every) <= MAX_ERRORS:
        return every
    shown = every[: MAX_ERRORS - 1]
    return [*shown, errors.FieldError("", and_more(len(every) - len(shown)))]


def _field_errors(detail: Any, pointer: str = "") -> Iterator[errors.FieldError]:
    if isinstance(detail, dict):
        for name, inner in detail.items():
            step = "" if name == "non_field_errors" else f"/{str(name).replace('~', '~0').replace('/', '~1')}"
            yield from _field_errors(inner, pointer + step)
    elif isinstance(detail, list):
        for position, inner in enumerate(detail):
            yield from _field_errors(
                inner, f"{pointer}/{position}" if isinstance(inner, dict | list) and inner else pointer
            )
    else:
        yield errors.FieldError(pointer, str(detail))
