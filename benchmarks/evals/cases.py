"""The lifecycle cases of `sets/lifecycle.jsonl`, with distractors. Start at `read_cases` and `distractors`."""

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from benchmarks.evals.scoring import Lifecycle

DISTRACTORS = 20
DAYS_A_YEAR = 364  # so that a Monday stays a Monday
SOURCES = {"user": "person", "assistant": "agent_inference", "tool": "tool"}
KINDS = {"preference": "semantic", "fact": "semantic", "episode": "episodic", "procedure": "procedural"}


@dataclass(frozen=True, slots=True)
class Statement:
    """What somebody said. All but the first line are the gold labels, unknown to an honest run."""

    id: str
    said_at: datetime
    user: str
    role: str
    text: str
    label: str = "store"
    kind: str = "semantic"
    replaces: tuple[str, ...] = ()
    partial: bool = False
    forgets: tuple[str, ...] = ()
    expires_at: datetime | None = None
    important: bool = False

    @property
    def as_sent(self) -> dict[str, Any]:
        """The memory as an agent sends it that knows nothing but who spoke, when, and what."""
        return {"text": self.text, "source": SOURCES[self.role], "occurred_at": self.said_at.isoformat()}


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    kind: str
    lang: str
    asked_at: datetime
    asked_by: str
    query: str
    statements: tuple[Statement, ...]
    must: frozenset[str]
    must_not: frozenset[str]

    @property
    def split(self) -> str:
        """`tune` or `test`, by a hash of the id: parameters may be chosen on the one half only."""
        return ("tune", "test")[hashlib.sha256(self.id.encode()).digest()[0] % 2]

    @property
    def users(self) -> list[str]:
        return sorted({self.asked_by, *(each.user for each in self.statements)})

    def outcome(self, shown: Sequence[str]) -> Lifecycle:
        return Lifecycle(shown, self.must, self.must_not)


def read_cases(file: Path, today: date) -> list[Case]:
    """All cases, moved by whole years of 364 days into the past: nothing may be said to happen in the future."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    latest = max(date.fromisoformat(line["now"]) for line in lines)
    years = max(0, -((today - timedelta(days=1) - latest).days // DAYS_A_YEAR))
    return [_case(line, timedelta(days=DAYS_A_YEAR * years)) for line in lines]


def _case(line: dict[str, Any], back: timedelta) -> Case:
    return Case(
        id=line["id"],
        kind=line["kind"],
        lang=line["lang"],
        asked_at=_moment(line["now"], back, hour=23),
        asked_by=line["query_user"],
        query=line["query"],
        statements=tuple(_statement(each, place, back) for place, each in enumerate(line["statements"])),
        must=frozenset(line["must"]),
        must_not=frozenset(line["must_not"]),
    )


def _statement(line: dict[str, Any], place: int, back: timedelta) -> Statement:
    expires = line.get("expires")
    return Statement(
        id=line["id"],
        said_at=_moment(line["at"], back, hour=9) + timedelta(minutes=place),
        user=line["user"],
        role=line["role"],
        text=line["text"],
        label=line["class"],
        kind=KINDS.get(line["memory"] or "", "semantic"),
        replaces=tuple(line.get("replaces", ())),
        partial=bool(line.get("partial")),
        forgets=tuple(line.get("forgets", ())),
        expires_at=_moment(expires, back, hour=0) + timedelta(days=1) if expires else None,
        important=line.get("importance") == "high",
    )


def _moment(day: str, back: timedelta, hour: int) -> datetime:
    return datetime.combine(date.fromisoformat(day), time(hour), UTC) - back


def distractors(case: Case, cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Statements of other cases, as sent, the same in every run: of the case's language first, else English ones.

    Each is dated on its own day, or the day before the question when that would be later: all of them can come up.
    """
    drawn = random.Random(case.id)  # noqa: S311  nothing secret
    others = [each for other in cases if other.id != case.id and other.lang == case.lang for each in other.statements]
    english = [each for other in cases if other.lang == "en" and case.lang != "en" for each in other.statements]
    chosen = drawn.sample(others, min(len(others), DISTRACTORS))
    chosen += drawn.sample(english, min(len(english), DISTRACTORS - len(chosen)))
    latest = case.asked_at - timedelta(days=1)
    return [each.as_sent | {"occurred_at": min(each.said_at, latest).isoformat()} for each in chosen]
