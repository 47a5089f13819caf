"""Log lines without content: a path names a person, an exception's message quotes what was sent or stored.

Every handler's formatter (LOGGING in config.settings.base). Relies on Django handing the request to its log records.
"""

import logging
import traceback
from collections.abc import Iterator, Mapping
from copy import copy
from types import TracebackType
from typing import Any

import psycopg
from django.http import HttpRequest

from accounts.errors import DomainError
from audit.context import request_id

# Where the request carries its id: Django logs an answer after the middleware that made the id has ended.
LOGGED_ID = "forgetmenot.request_id"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class ContentFree(logging.Formatter):
    """A request as method, route and status; a message up to its first line; an exception by type and place."""

    def format(self, record: logging.LogRecord) -> str:
        plain = copy(record)
        # What another formatter made of the exception is kept there, with its message.
        plain.exc_text = None
        request = getattr(record, "request", None)
        identity = request_id.get()
        if isinstance(request, HttpRequest):
            plain.msg, identity = _summary(request, getattr(record, "status_code", 0)), request.META.get(LOGGED_ID, "")
        else:
            plain.args = _without_exception(record.args)
            plain.msg = (plain.getMessage().splitlines() or [""])[0]
        plain.args = None
        plain.request_id = identity or "-"
        return super().format(plain)

    def formatException(self, ei: object) -> str:  # noqa: N802  the library's name
        error = ei[1] if isinstance(ei, tuple) else None
        return "\n".join(_told(error)) if isinstance(error, BaseException) else ""


def _without_exception(args: Any) -> Any:
    """Celery gives a failed task's exception as an argument of the message; its type and places follow anyway."""
    return {**args, "exc": "(below)"} if isinstance(args, Mapping) and "exc" in args else args


def _summary(request: HttpRequest, status: int) -> str:
    route = request.resolver_match.route if request.resolver_match else "no route"
    return f"{request.method if request.method in _METHODS else 'odd method'} {route} answered {status}"


def _told(error: BaseException) -> Iterator[str]:
    """The chain of exceptions, the first cause first, each with the lines of code it passed."""
    chain = [error]
    while (before := _before(chain[-1])) is not None and before not in chain:
        chain.append(before)
    for each in reversed(chain):
        yield _kind(each)
        yield from _places(each.__traceback__)


def _before(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _places(trace: TracebackType | None) -> Iterator[str]:
    for frame in traceback.extract_tb(trace):
        yield f"  {frame.filename}:{frame.lineno} in {frame.name}: {frame.line}"


def _kind(error: BaseException) -> str:
    """The type, and of what goes with it only what can hold no content."""
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    match error:
        case DomainError():
            return f"{name}: {error.code}"
        case psycopg.Error():
            return f"{name}: {error.sqlstate or 'no SQLSTATE'} {error.diag.constraint_name or ''}".rstrip()
        case OSError():
            return f"{name}: errno {error.errno}"
    return name
