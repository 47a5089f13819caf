"""What the privacy centre says, in everyday words: where a memory is from, why it is not used, what was allowed."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from consent.types import IN_FORCE_AFTER, ConsentRef, LedgerEvent, PurposeKey
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
ANSWERS = {
    LedgerEvent.REFUSED: _("Not allowed by you"),
    LedgerEvent.WITHDRAWN: _("Taken back by you"),
    LedgerEvent.EXPIRED: _("Has run out"),
}
REFUSALS = {
    "consent_required": _("You have not been asked whether it may be used, so no assistant is given any of it."),
    "consent_refused": _("You said no, so no assistant is given any of it."),
    "consent_withdrawn": _("You took your permission back, so no assistant is given any of it."),
    "consent_expired": _("Your permission has run out, so no assistant is given any of it."),
    "guardian_required": _("A parent or guardian has to allow it first, so no assistant is given any of it."),
    "subject_restricted": _("Its use is paused, so no assistant is given any of it."),
}


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
    answer = _("Allowed by you") if consent.state in IN_FORCE_AFTER else ANSWERS[consent.state]
    return Standing(str(PURPOSES[PurposeKey(consent.purpose)]), str(answer), consent.since)


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
    return "" if found.is_empty or not found.refusal else str(REFUSALS[found.refusal])


def _why(use: Use) -> str:
    return "" if use is Use.USED else str(WHY_UNUSED[use])
