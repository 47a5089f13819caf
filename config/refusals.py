"""A refusal as a page, for a browser that asked for one: what happened, the one next step, the request's id.

Everybody else gets problem details (`config.problems`). Nothing here asks a database: it may be what is away.
"""

import logging
from collections.abc import Callable

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.http.request import MediaType
from django.template.loader import render_to_string
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from accounts import errors
from config.problems import as_domain_error, problem
from config.reader import is_page

type GetResponse = Callable[[HttpRequest], HttpResponse]
type Words = str | Promise

logger = logging.getLogger(__name__)
# What a person is told; the others say themselves what happened. (heading, what to do)
WORDS: dict[str, tuple[Words, Words]] = {
    "not_found": (_("There is nothing here"), _("The address is wrong, or it is not for you.")),
    "validation_failed": (_("This address or form is not right"), _("Go back and try again.")),
    "permission_denied": (
        _("Not allowed"),
        _("The page may have been open too long. Load it again, then try once more."),
    ),
    "method_not_allowed": (_("Not possible here"), _("Go back and try again.")),
    "database_unavailable": (
        _("We cannot be reached just now"),
        _("It may not have been done. Try again in a moment, and look."),
    ),
    "internal_error": (
        _("Something failed on our side"),
        _("It may not have been done. Name the request below when you report it."),
    ),
}
# When even the template fails.
LAST_WORDS = "<!doctype html><title>Something went wrong</title><h1>Something went wrong</h1><p>Please try again later."


class PageRefusals:
    """Turns what a page's view raises into its answer; what nobody expected goes on to Django, which records it."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        error = as_domain_error(exception)
        if not is_page(request) or isinstance(error, errors.InternalError):
            return None
        if error.status >= 500:
            logger.error("%s answered %s", type(exception).__name__, error.code, exc_info=exception)
        return refusal(request, error)


def refusal(request: HttpRequest, error: errors.DomainError) -> HttpResponse:
    response = _page(request, error) if _wants_page(request) else problem(error, request.path)
    if error.status == 503:
        response["Retry-After"] = "5"
    return response


def _wants_page(request: HttpRequest) -> bool:
    """Whether the browser names HTML; `*/*` alone is a program's way of asking."""
    return is_page(request) and any(_is_html(kind) for kind in request.accepted_types)


def _is_html(kind: MediaType) -> bool:
    return (kind.main_type, kind.sub_type) == ("text", "html")


def _page(request: HttpRequest, error: errors.DomainError) -> HttpResponse:
    content: str
    try:
        heading, text = WORDS.get(error.code, (error.title, error.detail))
        facts = {"error": error, "status": error.status, "heading": heading, "text": text}
        content = render_to_string("error.html", facts, request)
    except Exception:  # the page about a failure must not fail
        logger.exception("The error page could not be made")
        content = LAST_WORDS
    return HttpResponse(content, status=error.status)


@login_not_required
def form_refused(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without the token of its page: sent from elsewhere, or from a page that was open too long."""
    return refusal(
        request, errors.PermissionDenied("The form was not sent from its own page, or the page was open too long.")
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return refusal(request, errors.NotFound())


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return refusal(request, errors.PermissionDenied())


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return refusal(request, errors.ValidationFailed("The request is not well-formed."))


def server_error(request: HttpRequest) -> HttpResponse:
    return refusal(request, errors.InternalError())
