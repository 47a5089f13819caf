"""The parts pages are made of that are more than a template: icons, badges, times, tables, charts, reviews.

The markup of each is in `templates/components/`; the style page (`/docs/style`) shows every one in every state.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.humanize.templatetags.humanize import NaturalTimeFormatter, naturaltime
from django.contrib.messages.storage.base import Message
from django.template import Context, Library
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince
from django.utils.translation import gettext_lazy as _

register = Library()

ICONS = settings.BASE_DIR / "static" / "vendor" / "lucide"
BADGE_ICONS = {
    "neutral": "circle-dot",
    "info": "info",
    "needs": "triangle-alert",
    "final": "trash-2",
    "verified": "badge-check",
    "sandbox": "flask-conical",
    "live": "radio",
}
MODES = {"sandbox": _("Sandbox"), "live": _("Live")}
DAY_SECONDS = 24 * 3600


@register.simple_tag(name="icon")
def draw(name: str) -> SafeString:
    """The drawing alone: the word beside it says what it means."""
    return format_html(
        '<svg class="icon" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" '
        'stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false">{}</svg>',
        _drawing(name),
    )


@cache
def _drawing(name: str) -> SafeString:
    """The shapes of a file that comes with the product; raises FileNotFoundError for a name that is none."""
    source = (ICONS / f"{name}.svg").read_text(encoding="utf-8")
    shapes = source.partition("<svg")[2].partition(">")[2]
    return mark_safe(" ".join(shapes.rpartition("</svg>")[0].split()))  # noqa: S308  our own file, no user's words


@register.simple_tag
def badge(kind: str, word: str, icon: str = "") -> SafeString:
    """A state: icon and word, the colour only repeats them. `kind` is one of BADGE_ICONS."""
    drawn = draw(icon or BADGE_ICONS[kind])
    return format_html('<span class="badge" data-kind="{}">{}<span>{}</span></span>', kind, drawn, word)


@register.simple_tag
def mode_badge(mode: str) -> SafeString:
    value = str(getattr(mode, "value", mode))
    return badge(value, str(MODES[value]))


# --- times ------------------------------------------------------------------------------------------------------------


@register.simple_tag
def when(instant: datetime | None, form: str = "") -> SafeString | str:
    """`<time>` in the reader's zone and language. `form`: both (default), `exact`, or `relative`."""
    if instant is None:
        return str(_("never"))
    local = timezone.localtime(instant)
    machine, spoken, ago = local.isoformat(), _absolute(local), _relative(instant)
    if form == "exact":
        exact = f"{local:%Y-%m-%d %H:%M:%S} {_zone_name(local)}"
        return format_html('<time datetime="{}" title="{}" class="exact">{}</time>', machine, ago, exact)
    if form == "relative":
        return format_html('<time datetime="{}" title="{}">{}</time>', machine, spoken, ago)
    spoken_time = '<time datetime="{}" data-spoken>{}</time> <span class="ago">{}</span>'
    return format_html(spoken_time, machine, spoken, ago)


def _absolute(local: datetime) -> str:
    """With the zone's name while the reader's zone is not known."""
    text = date_format(local, "DATETIME_FORMAT")
    return text if timezone.get_current_timezone_name() != "UTC" else f"{text} UTC"


def _zone_name(local: datetime) -> str:
    name = local.tzname() or ""
    return name if name.isalpha() else f"UTC{local:%:z}"


def _relative(instant: datetime) -> str:
    """One unit: "3 weeks ago", not "3 weeks, 2 days ago"."""
    now = timezone.now()
    if abs((now - instant).total_seconds()) < DAY_SECONDS:
        return str(naturaltime(instant))
    words = NaturalTimeFormatter
    if instant < now:
        delta = timesince(instant, now, time_strings=words.past_substrings, depth=1)
        return str(words.time_strings["past-day"]) % {"delta": delta}
    delta = timesince(now, instant, time_strings=words.future_substrings, depth=1)
    return str(words.time_strings["future-day"]) % {"delta": delta}


# --- what holds other parts -------------------------------------------------------------------------------------------


@register.simple_block_tag
def card(content: str, title: str = "", level: int = 2) -> SafeString:
    """Something one acts on. No card in a card."""
    heading = format_html("<h{}>{}</h{}>", level, title, level) if title else ""
    return format_html('<section class="card">{}{}</section>', heading, content)


@register.simple_block_tag
def table(content: str, caption: str, dense: bool = False, quiet: bool = False) -> str:  # noqa: FBT001, FBT002, RUF100
    """`<thead>` and `<tbody>` inside a frame that scrolls sideways and can be reached by keyboard."""
    return render_to_string(
        "components/table.html", {"content": content, "caption": caption, "dense": dense, "quiet": quiet}
    )


@register.simple_block_tag
def filters(content: str, label: str, clear: str = "", target: str = "") -> str:
    """A GET form, so that a filtered list is an address one can keep. `clear` is the unfiltered one.

    `target`: the id of what alone is renewed where scripts run, so that the line being typed in stays.
    """
    known = {"content": content, "label": label, "clear": clear, "target": target}
    return render_to_string("components/filters.html", known)


@register.simple_block_tag(takes_context=True)
def review(  # noqa: PLR0917, RUF100
    context: Context,
    content: str,
    title: str,
    button: str,
    action: str,
    cancel: str,
    goes: Iterable[str] = (),
    stays: Iterable[Any] = (),
    final: str = "",
    irreversible: bool = False,  # noqa: FBT001, FBT002, RUF100
) -> str:
    """Confirm by review: what goes, what stays and why, when it is final; the button repeats verb and object."""
    facts = {"content": content, "title": title, "button": button, "action": action, "cancel": cancel}
    lists = {"goes": list(goes), "stays": [_with_reason(each) for each in stays], "final": final}
    known = {"irreversible": irreversible, "csrf_token": context.get("csrf_token", "")}
    return render_to_string("components/review.html", facts | lists | known)


def _with_reason(each: Any) -> tuple[str, str]:
    return (each[0], each[1]) if isinstance(each, tuple) else (each, "")


@register.simple_tag(takes_context=True)
def nav_link(context: Context, url: str, text: str, icon: str = "") -> SafeString:
    """One line of the rail; the one that leads here says so."""
    path = context["request"].path if "request" in context else ""
    here = mark_safe(' aria-current="page"') if path == url else ""
    drawn = draw(icon) if icon else ""
    return format_html('<li><a href="{}"{}>{}<span>{}</span></a></li>', url, here, drawn, text)


@register.filter
def undo_address(message: Message) -> str:
    """Where to post to take it back; empty when the message names none (`extra_tags="undo=/…"`)."""
    return next((tag.removeprefix("undo=") for tag in str(message.extra_tags).split() if tag.startswith("undo=/")), "")


# --- charts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bar:
    """Sizes and places are percent of the drawing, as SVG attributes: the policy allows no inline style."""

    label: str
    value: float
    size: float
    start: float = 0


@register.inclusion_tag("components/bars.html")
def bars(title: str, rows: Iterable[tuple[str, float]], unit: str = "") -> dict[str, Any]:
    """One question, answered by lengths labelled directly, with the same figures as a table below."""
    found = list(rows)
    most = max([value for _label, value in found], default=0) or 1
    drawn = [Bar(label, value, _percent(value / most)) for label, value in found]
    return {"title": title, "bars": drawn, "unit": unit}


@register.inclusion_tag("components/columns.html")
def columns(title: str, rows: Iterable[tuple[str, float]], unit: str = "") -> dict[str, Any]:
    """The same over time, oldest first; the largest and the ends are labelled."""
    found = list(rows)
    most = max([value for _label, value in found], default=0)
    width = 100 / max(len(found), 1)
    drawn = [
        Bar(label, value, _percent(value / (most or 1)), _percent(at * width / 100))
        for at, (label, value) in enumerate(found)
    ]
    total = sum(value for _label, value in found)
    return {"title": title, "bars": drawn, "unit": unit, "most": most, "total": total, "width": round(width * 0.7, 2)}


def _percent(share: float) -> float:
    return round(share * 100, 2)
