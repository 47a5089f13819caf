"""The living style page: every shared part of the pages in each of its states. Asks no database."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe


class Sample(forms.Form):
    """A field of each kind; submitted empty, so that its errors show."""

    email = forms.EmailField(label=_("Email"), help_text=_("Where a link can reach you."))
    purpose = forms.ChoiceField(label=_("Purpose"), choices=[("store", _("Remember")), ("share", _("Share"))])
    note = forms.CharField(label=_("Note"), widget=forms.Textarea(attrs={"rows": 2}), required=False)


@login_not_required
@require_safe
def style_page(request: HttpRequest) -> HttpResponse:
    now = datetime.now(UTC)
    if "progress" in request.GET:  # the one part that goes on by itself, asked for by htmx
        return render(request, "components/progress.html", _taken_in(now))
    context: dict[str, Any] = {
        "form": Sample(auto_id="good_%s"),
        "form_with_errors": Sample({"email": "nobody", "purpose": "other"}, auto_id="bad_%s"),
        "times": [now - timedelta(minutes=4), now - timedelta(days=23), now + timedelta(days=9), None],
        "series": [("Mon", 4), ("Tue", 9), ("Wed", 0), ("Thu", 14), ("Fri", 11), ("Sat", 2), ("Sun", 3)],
        "reasons": [("consent_required", 12), ("scope_missing", 5), ("subject_restricted", 1)],
        "goes": [_("12 memories"), _("the means of finding them")],
        "stays": [(_("the entry in the record"), _("without any words, as proof"))],
        "tabs": [
            {"url": "#tabs", "text": _("All"), "current": True},
            {"url": "#tabs", "text": _("Held"), "current": False},
        ],
        "job": _taken_in(now),
    }
    if "rtl" in request.GET:
        context["page_dir"] = "rtl"
    return render(request, "style.html", context)


def _taken_in(now: datetime) -> dict[str, Any]:
    """A job that is done once a minute, as `components/progress.html` shows it."""
    done = 2 * now.second
    return {"id": "job", "label": _("Taking in the handbook"), "done": done, "total": 120, "poll": "?progress"}
