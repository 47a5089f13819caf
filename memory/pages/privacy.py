"""The privacy centre: what is remembered of the person who looks, and how to have it forgotten."""

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.errors import LinkUnusable
from accounts.http.pages import VISIT_COOKIE, visitor_page
from accounts.http.paging import decode_cursor, encode_cursor
from accounts.services import portal
from accounts.types import Visitor
from consent.selectors import consents_of_person
from memory.pages import wording
from memory.services import forgetting, profile
from memory.services.disclosing import Use, disclose, disclose_memory, disclose_value


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def open_link(request: HttpRequest, link: str) -> HttpResponse:
    """Opening the address shows a button: a mail scanner that follows it must not use the link up."""
    if request.method != "POST":
        if not portal.is_usable(link):
            raise LinkUnusable
        return render(request, "privacy/open.html")
    visit = portal.open_link(link)
    answer = redirect("privacy")
    answer.set_cookie(
        VISIT_COOKIE,
        visit.text,
        expires=visit.expires_at,
        path=reverse("privacy"),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return answer


@login_not_required
@require_POST
def leave(request: HttpRequest) -> HttpResponse:
    portal.end_visit(request.COOKIES.get(VISIT_COOKIE, ""))
    answer = render(request, "privacy/left.html")
    answer.delete_cookie(VISIT_COOKIE, path=reverse("privacy"), samesite="Lax")
    return answer


@require_safe
@visitor_page
def home(request: HttpRequest, visitor: Visitor) -> HttpResponse:
    """Everything, and apart from it what is kept without being used."""
    cursor = request.GET.get("cursor", "")
    found = disclose(visitor, after=decode_cursor(cursor) if cursor else None)
    context = {
        "visitor": visitor,
        "found": found,
        "heading": wording.heading(visitor.organisation, found),
        "refusal": wording.refusal(found),
        "in_use": [wording.sentence(each) for each in found.memories if each.use is Use.USED],
        "kept": [wording.sentence(each) for each in found.memories if each.use is not Use.USED],
        "profile": [wording.entry(each) for each in found.profile],
        "standing": [wording.standing(each) for each in consents_of_person()],
        "is_first_page": not cursor,
        "newer": request.path if cursor else "",
        "older": f"?cursor={encode_cursor(found.next_after)}" if found.next_after else "",
    }
    return render(request, "privacy/home.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@visitor_page
def forget_memory(request: HttpRequest, visitor: Visitor, memory_id: UUID) -> HttpResponse:
    """A page that says what goes; its button does it."""
    if request.method != "POST":
        return _review(request, visitor, text=disclose_memory(visitor, memory_id).text)
    forgetting.forget_memory(visitor.subject, memory_id, caller=visitor)
    return _forgotten(request)


@require_http_methods(["GET", "HEAD", "POST"])
@visitor_page
def forget_value(request: HttpRequest, visitor: Visitor, entry_id: UUID) -> HttpResponse:
    if request.method != "POST":
        line = disclose_value(visitor, entry_id)
        return _review(request, visitor, text=f"{line.key}: {line.in_words}")
    profile.forget_value(visitor.subject, entry_id, caller=visitor)
    return _forgotten(request)


def _review(request: HttpRequest, visitor: Visitor, *, text: str) -> HttpResponse:
    context = {
        "visitor": visitor,
        "text": text,
        "goes": [_("This sentence, and the means of finding it.")],
        "stays": [_("The entry in the record that it was forgotten, without its words."), _("Everything else.")],
        "final": _("At once, and for good. Backups of the database still hold it, sealed, until they are replaced."),
    }
    return render(request, "privacy/forget.html", context)


def _forgotten(request: HttpRequest) -> HttpResponse:
    messages.success(request, _("Forgotten. No assistant can be given it any more."))
    return redirect("privacy")
