"""The compliance desk: who did what, searchable, without anybody's text."""

from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.errors import NotFound, SubjectErased, ValidationFailed
from accounts.http.pages import DESK_ROLES, member_page, member_render, tenant_of
from accounts.http.paging import decode_cursor, encode_cursor
from accounts.http.views import checked_external_id
from accounts.selectors import names_of_actors
from accounts.types import Member
from audit.registry import action_by_name
from audit.types import Event
from consent.qualifiers import Asked, parse
from consent.services.log import LogPage, read_event, read_log

PAGE_SIZE = 50
_NOTHING = LogPage((), more=False)


@require_safe
@member_page(DESK_ROLES)
def events(request: HttpRequest, member: Member) -> HttpResponse:
    """The log, newest first, as far as the search line asks."""
    line, cursor = request.GET.get("q", ""), request.GET.get("cursor", "")
    asked = parse(line)
    page, names, errors = _search(asked, member, decode_cursor(cursor) if cursor else None)
    context = {
        "line": line,
        "errors": errors,
        "chips": [(part, asked.without(part)) for part in asked.parts],
        "page": page,
        "rows": [(each, names.get(each.actor.id, each.actor.id), numbers(each)) for each in page.events],
        "is_first_page": not cursor,
        "newer": _address(q=line) if cursor else "",
        "older": _address(q=line, cursor=encode_cursor(page.last_id)) if page.last_id else "",
    }
    return member_render(request, member, "desk/events.html", context)


@require_safe
@member_page(DESK_ROLES)
def event(request: HttpRequest, member: Member, event_id: UUID) -> HttpResponse:
    """One event, in full."""
    with tenant_of(member):
        found = read_event(event_id, caller=member)
        names = names_of_actors([found.actor])
    context = {
        "event": found,
        "actor": names.get(found.actor.id, found.actor.id),
        "numbers": numbers(found),
        "meaning": action_by_name(found.action).summary,
    }
    return member_render(request, member, "desk/event.html", context)


def numbers(event: Event) -> str:
    """The event's counts in a line: `5 memories, 1 profile`."""
    return ", ".join(f"{count} {name}" for name, count in event.counts.items())


def _search(asked: Asked, member: Member, after: UUID | None) -> tuple[LogPage, dict[str, str], list[str]]:
    """The page, the names of its actors, and what is wrong with the question; then nothing is searched."""
    if asked.errors:
        return _NOTHING, {}, list(asked.errors)
    try:
        with tenant_of(member):
            external_id = None if asked.subject is None else checked_external_id(asked.subject)
            page = read_log(asked.filter, caller=member, external_id=external_id, after=after, limit=PAGE_SIZE)
            return page, names_of_actors(event.actor for event in page.events), []
    except (NotFound, SubjectErased, ValidationFailed):
        return _NOTHING, {}, [_("subject: nobody of this tenant has this id, or they were erased.")]


def _address(**query: str) -> str:
    return "?" + urlencode({name: value for name, value in query.items() if value})
