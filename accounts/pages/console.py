"""The console: where the team that runs the agents sees what they do."""

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.formats import date_format
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from accounts import selectors
from accounts.credentials import id_text
from accounts.http.pages import EVERY_ROLE, LAST_TENANT, member_page, member_render, tenant_of
from accounts.models import User
from accounts.pages.activity import activity_of
from accounts.tenancy import ALL, user_scope
from accounts.types import Member, Role, SubjectState

ROLE_NAMES = {
    Role.OWNER: _("owner"),
    Role.ADMIN: _("admin"),
    Role.DEVELOPER: _("developer"),
    Role.PRIVACY_OFFICER: _("privacy officer"),
    Role.AUDITOR: _("auditor"),
}
_HELD = (SubjectState.RESTRICTED, SubjectState.OBJECTED)


@require_safe
def choose(request: HttpRequest) -> HttpResponse:
    """To the tenant last looked at, else to the only one, else (or when asked for) a choice."""
    with user_scope(cast("User", request.user).id):
        workplaces = selectors.workplaces()
    by_text = {id_text(each.tenant_id): each for each in workplaces}
    last = by_text.get(request.session.get(LAST_TENANT, "")) or (workplaces[0] if len(workplaces) == 1 else None)
    if last and "choose" not in request.GET:
        return redirect("console-overview", tenant_id=last.tenant_id)
    places = [(each, ROLE_NAMES[each.role]) for each in workplaces]
    return render(request, "console/choose.html", {"places": places})


@require_safe
@member_page(EVERY_ROLE)
def overview(request: HttpRequest, member: Member) -> HttpResponse:
    """People, keys, calls and refusals of the last seven days. Numbers only: nobody's data is opened."""
    with tenant_of(member, ALL):
        people, keys = selectors.subjects_by_state(), selectors.api_keys()
        activity = activity_of(member.tenant_id)
    context = {
        "people_known": sum(count for state, count in people.items() if state is not SubjectState.ERASED),
        "people_held": sum(people.get(state, 0) for state in _HELD),
        "keys": keys,
        "activity": activity,
        "calls_by_day": [(date_format(each.day, "D j"), each.calls) for each in activity.days],
    }
    return member_render(request, member, "console/overview.html", context)
