"""The search line of the compliance desk: `actor:person action:memory.recall before:2026-11-30`. Pure.

Only qualifiers search; the log holds no text to search in. What is not understood is said, never ignored.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time
from typing import get_args

from audit.selectors import EventFilter
from audit.types import ActorKind, Result

MAX_LENGTH = 500
_OUTCOMES = get_args(Result)
_KINDS = get_args(ActorKind)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a search line asks: a filter, the person by the tenant's id, and each part as it was written."""

    filter: EventFilter = field(default_factory=EventFilter)
    subject: str | None = None
    parts: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    def without(self, part: str) -> str:
        """The search line with one part taken out."""
        return " ".join(each for each in self.parts if each != part)


class NotUnderstood(Exception):
    """A part of the line; the message says what would be understood."""


def parse(line: str) -> Asked:
    """Never raises: what is wrong with the line is in `errors`, and then nothing should be searched."""
    if len(line) > MAX_LENGTH:
        return Asked(errors=(f"The search may be {MAX_LENGTH} characters long.",))
    if not line.isprintable():
        return Asked(errors=("The search may hold no control characters.",))
    asked = Asked(parts=tuple(dict.fromkeys(line.split())))
    seen: set[str] = set()
    for part in asked.parts:
        name, colon, value = part.partition(":")
        try:
            asked = _read(asked, name if colon else "", value, seen)
        except NotUnderstood as error:
            asked = replace(asked, errors=(*asked.errors, f"{part}: {error}"))
    return asked


def _read(asked: Asked, name: str, value: str, seen: set[str]) -> Asked:
    reader = _READERS.get(name)
    if reader is None:
        raise NotUnderstood(f"Use {', '.join(f'{each}:' for each in _READERS)}.")
    if not value:
        raise NotUnderstood("Needs a value.")
    if name in seen:
        raise NotUnderstood(f"Give {name}: once.")
    seen.add(name)
    return reader(asked, value)


def _subject(asked: Asked, value: str) -> Asked:
    return replace(asked, subject=value)


def _actor(asked: Asked, value: str) -> Asked:
    field = "actor_kind" if value in _KINDS else "actor_id"
    return _with(asked, **{field: value})


def _action(asked: Asked, value: str) -> Asked:
    return _with(asked, action=value.rstrip("."))


def _purpose(asked: Asked, value: str) -> Asked:
    return _with(asked, purpose=value)


def _outcome(asked: Asked, value: str) -> Asked:
    if value not in _OUTCOMES:
        raise NotUnderstood(f"Use {', '.join(_OUTCOMES)}.")
    return _with(asked, result=value)


def _since(asked: Asked, value: str) -> Asked:
    return _with(asked, since=_moment(value))


def _before(asked: Asked, value: str) -> Asked:
    return _with(asked, before=_moment(value))


_READERS: dict[str, Callable[[Asked, str], Asked]] = {
    "actor": _actor,
    "subject": _subject,
    "action": _action,
    "purpose": _purpose,
    "outcome": _outcome,
    "since": _since,
    "before": _before,
}


def _with(asked: Asked, **facts: object) -> Asked:
    return replace(asked, filter=replace(asked.filter, **facts))  # type: ignore[arg-type]  # names of its fields


def _moment(text: str) -> datetime:
    """A day (its beginning in UTC) or an instant of ISO 8601; one without a zone is UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise NotUnderstood("Use a day, 2026-11-30, or an instant, 2026-11-30T14:20Z.") from None
    return found if found.tzinfo else datetime.combine(found.date(), found.time() or time.min, UTC)
