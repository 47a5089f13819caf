"""What the privacy centre says, in everyday words: where a memory is from, why it is not used, what was allowed."""

from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from consent.types import IN_FORCE_AFTER, ConsentActor, ConsentRef, LedgerEvent, PurposeKey
from memory.services.disclosing import Disclosure, KeptMemory, KeptValue, Use
from memory.services.profile import ProfileLine
from memory.services.reading import MemoryView
from memory.types import SourceClass

SOURCES = {
    SourceClass.PERSON: _("You said this"),
    SourceClass.PERSON_CONFIRMED: _("Guessed, and you confirmed it"),
    SourceClass.AGENT_INFERENCE: _("Guessed by the assistant, not said by you"),
    SourceClass.TOOL: _("From a tool the assistant used"),
    SourceClass.DOCUMENT: _("From a document"),
    SourceClass.OTHER_AGENT: _("From another assistant"),
    SourceClass.IMPORT: _("Brought in from another system"),
}
WHY_UNUSED = {
    Use.NOT_ALLOWED: _("You do not allow its use at the moment"),
    Use.SENSITIVE: _("Sensitive, and you do not allow the use of sensitive things"),
    Use.QUARANTINED: _("Not used until it is confirmed"),
    Use.REPLACED: _("Replaced by something newer; comes up only when the past is asked about"),
    Use.EXPIRED: _("Has run out; comes up only when the past is asked about"),
    Use.NOT_YET: _("Holds from a later day on"),
}
PURPOSES = {
    PurposeKey.STORE: _("Remember things about you"),
    PurposeKey.PERSONALISE: _("Use them to answer you"),
    PurposeKey.INFER: _("Draw conclusions from them"),
    PurposeKey.SENSITIVE: _("Sensitive things, such as health or belief"),
    PurposeKey.SHARE: _("Share between products of the company"),
    PurposeKey.SEND: _("Send to an outside AI provider"),
    PurposeKey.IMPROVE: _("Use to improve the product"),
}
ALLOWED = _("Allowed by you")
ANSWERS = {
    LedgerEvent.REFUSED: _("Not allowed by you"),
    LedgerEvent.WITHDRAWN: _("Taken back by you"),
    LedgerEvent.EXPIRED: _("Has run out"),
}
REFUSALS = {
    "consent_required": _("You have not been asked whether it may be used, or have not answered."),
    "consent_refused": _("You said no to its use."),
    "consent_withdrawn": _("You took your permission to use it back."),
    "consent_expired": _("Your permission to use it has run out."),
    "guardian_required": _("A parent or guardian has to allow its use first."),
    "subject_restricted": _("Its use is paused."),
}
UNUSED = _("No answer is made from any of it, and no assistant or system is given it.")
STILL_LISTED = _("No answer is made from any of it. Assistants and systems of the company can still list it.")
BY_GUARDIAN = _("Allowed by a parent or guardian")
BY_OTHERS = _("Allowed on your behalf")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A memory with what is said beside it."""

    memory: MemoryView
    said: str
    why: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A profile value, likewise."""

    line: ProfileLine
    why: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What the person said about one purpose, and since when."""

    purpose: str
    answer: str
    since: datetime


def sentence(kept: KeptMemory) -> Sentence:
    return Sentence(kept.memory, str(SOURCES[kept.memory.source]), _why(kept.use))


def entry(kept: KeptValue) -> Entry:
    return Entry(kept.line, _why(kept.use))


def standing(consent: ConsentRef) -> Standing:
    return Standing(str(PURPOSES[PurposeKey(consent.purpose)]), str(_answer(consent)), consent.since)


def _answer(consent: ConsentRef) -> Promise | str:
    """Who allowed it, as long as that is in force."""
    if consent.state not in IN_FORCE_AFTER:
        return ANSWERS[consent.state]
    if not consent.in_force(datetime.now(UTC)):
        return ANSWERS[LedgerEvent.EXPIRED]
    return {ConsentActor.GUARDIAN: BY_GUARDIAN, ConsentActor.STAFF: BY_OTHERS}.get(consent.spoken_by, ALLOWED)


def heading(organisation: str, found: Disclosure) -> str:
    count = found.used + found.unused
    text = ngettext(
        "%(organisation)s’s assistant remembers %(count)d thing about you",
        "%(organisation)s’s assistant remembers %(count)d things about you",
        count,
    )
    return text % {"organisation": organisation, "count": count}


def refusal(found: Disclosure) -> str:
    """Why nothing is used, or ""; where nothing is kept there is nothing to explain."""
    if found.is_empty or not found.refusal:
        return ""
    return f"{REFUSALS[found.refusal]} {STILL_LISTED if found.readable else UNUSED}"


def _why(use: Use) -> str:
    return "" if use is Use.USED else str(WHY_UNUSED[use])
