"""The event: who did what to which things, when, and why it was allowed.

By construction an event holds no content and no free text: building one checks every string against a narrow
pattern (ids, codes, hex digests) and raises `UndeclaredField` otherwise. Whether the action exists is
`audit.registry`'s business.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args
from uuid import UUID

from audit.errors import UndeclaredField

ActorKind = Literal["user", "api_key", "person", "system"]
Decision = Literal["", "allowed", "refused"]
Result = Literal["ok", "refused", "failed"]

UUID_VERSION = 7
MAX_RESOURCE_IDS = 10_000
MAX_REFERENCES = 64
MAX_COUNT = 2**53 - 1  # the largest integer every JSON reader keeps exactly (RFC 8259, 6)

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_PSEUDONYM = r"[0-9a-f]{32,64}"
_NAME = r"[a-z][a-z_]{0,39}"
_ID = re.compile(_UUID)
_PSEUDONYM_OR_NONE = re.compile(rf"(?:{_PSEUDONYM})?")
_ID_OR_PSEUDONYM = re.compile(rf"{_UUID}|{_PSEUDONYM}")
_ID_OR_PSEUDONYM_OR_NONE = re.compile(rf"(?:{_UUID}|{_PSEUDONYM})?")
_PURPOSE = re.compile(rf"{_NAME}(?:\.{_NAME}){{0,2}}")

NAME_PATTERN = re.compile(_NAME)
ACTION_PATTERN = re.compile(rf"{_NAME}\.{_NAME}\.{_NAME}")
REASON_PATTERN = re.compile(r"[a-z_]{0,40}")
REQUEST_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{0,64}")

# A person acts under the pseudonym: the log must not name them after erasure.
_ACTOR_ID: Mapping[str, re.Pattern[str]] = {
    "user": _ID,
    "api_key": _ID,
    "person": re.compile(_PSEUDONYM),
    "system": re.compile(rf"{_NAME}(?:\.{_NAME}){{0,3}}"),
}


def require(field: str, condition: bool) -> None:
    """Raise `UndeclaredField` naming the field; the value stays out of the message, it may be content."""
    if not condition:
        raise UndeclaredField(f"{field}: not a value this field is declared to hold")


def require_match(field: str, pattern: re.Pattern[str], value: object) -> None:
    require(field, isinstance(value, str) and pattern.fullmatch(value) is not None)


def _require_uuids(field: str, values: Iterable[object]) -> None:
    require(field, all(isinstance(value, UUID) for value in values))


def _require_references(field: str, pattern: re.Pattern[str], values: tuple[str, ...]) -> None:
    require(field, isinstance(values, tuple) and len(values) <= MAX_REFERENCES)
    for value in values:
        require_match(field, pattern, value)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts. `id`: the UUID of a user or API key, a person's pseudonym, or a code name inside the system.

    `on_behalf_of` is "", a UUID, or the pseudonym of the person an agent acts for.
    """

    kind: ActorKind
    id: str
    on_behalf_of: str = ""

    def __post_init__(self) -> None:
        require("actor.kind", self.kind in _ACTOR_ID)
        require_match("actor.id", _ACTOR_ID[self.kind], self.id)
        require_match("actor.on_behalf_of", _ID_OR_PSEUDONYM_OR_NONE, self.on_behalf_of)


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the log. `at` is aware, UTC, in microseconds; `id` is a UUIDv7 made after `at` was read.

    `subject_pseudonym` is 32-64 hex digits or "" when no person is concerned; `consent_refs` are UUIDs or
    pseudonyms.
    """

    id: UUID
    tenant_id: UUID
    at: datetime
    actor: Actor
    action: str
    resource_kind: str
    resource_ids: tuple[UUID, ...]
    subject_pseudonym: str
    purposes: tuple[str, ...]
    consent_refs: tuple[str, ...]
    decision: Decision
    reason: str
    request_id: str
    counts: Mapping[str, int]
    result: Result

    def __post_init__(self) -> None:
        _require_uuids("id", (self.id,))
        _require_uuids("tenant_id", (self.tenant_id,))
        require("id", self.id.version == UUID_VERSION)
        require("at", isinstance(self.at, datetime) and self.at.utcoffset() == timedelta(0))
        require("actor", isinstance(self.actor, Actor))
        self._check_what()
        self._check_why()

    def _check_what(self) -> None:
        require_match("action", ACTION_PATTERN, self.action)
        require_match("resource_kind", NAME_PATTERN, self.resource_kind)
        require(
            "resource_ids",
            isinstance(self.resource_ids, tuple) and len(self.resource_ids) <= MAX_RESOURCE_IDS,
        )
        _require_uuids("resource_ids", self.resource_ids)
        require_match("subject_pseudonym", _PSEUDONYM_OR_NONE, self.subject_pseudonym)
        for name, count in self.counts.items():
            require_match("counts", NAME_PATTERN, name)
            require(f"counts.{name}", type(count) is int and 0 <= count <= MAX_COUNT)

    def _check_why(self) -> None:
        _require_references("purposes", _PURPOSE, self.purposes)
        _require_references("consent_refs", _ID_OR_PSEUDONYM, self.consent_refs)
        require("decision", self.decision in get_args(Decision))
        require_match("reason", REASON_PATTERN, self.reason)
        require_match("request_id", REQUEST_ID_PATTERN, self.request_id)
        require("result", self.result in get_args(Result))
