"""The answers that are written out say what their serializers, which the schema is made from, would say."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest

from memory.api import serializers as shapes
from memory.api.answers import memory_answer, passage_answer, profile_answer, stored_answer
from memory.knowledge import Found, Passage
from memory.services.profile import ProfileLine
from memory.services.reading import MemoryView
from memory.services.remembering import Stored
from memory.types import Audience, Kind, SourceClass, State

NOW = datetime(2026, 5, 3, 14, 20, 7, 123456, tzinfo=UTC)
WHOLE = NOW.replace(microsecond=0)
FOUND = Found(uuid4(), 0.75, None, 1.5, 0.5)
FULL = MemoryView(
    id=uuid4(),
    text="Mia plays the cello.\x00 🎻",
    kind=Kind.PROCEDURAL,
    state=State.SUPERSEDED,
    source=SourceClass.PERSON,
    audience=Audience.PRIVATE,
    importance=0.5,
    confidence=1.0,
    categories=("health", "music"),
    metadata={"a": [1, None, {"b": "c"}]},
    project_id=uuid4(),
    agent="tutor",
    session_id=uuid4(),
    occurred_at=NOW,
    valid_to=WHOLE,
    expires_at=NOW + timedelta(days=1),
    created_at=NOW,
    superseded_by=uuid4(),
    version=3,
    access_count=7,
    last_accessed_at=NOW,
)
BARE = replace(
    FULL,
    categories=(),
    metadata={},
    project_id=None,
    agent="",
    session_id=None,
    valid_to=None,
    expires_at=None,
    superseded_by=None,
    last_accessed_at=None,
)
PASSAGE = Passage(uuid4(), uuid4(), "Keys", "Front desk", "The spare key.", "", 2, NOW, 0.75, FOUND)
LINE = ProfileLine(uuid4(), "music.instrument", {"is": ["cello"]}, uuid4(), 4, NOW)


def as_serialized(serializer, value, **instead):
    seen = {each.name: getattr(value, each.name) for each in fields(value)} | instead
    return dict(serializer(SimpleNamespace(**seen)).data)


@pytest.mark.parametrize("memory", [FULL, BARE])
def test_a_memory(memory):
    words = {name: getattr(memory, name).name.lower() for name in ("kind", "state", "source", "audience")}

    assert memory_answer(memory) == as_serialized(shapes.MemoryAnswer, memory, **words)


@pytest.mark.parametrize("line", [LINE, replace(LINE, value=None, project_id=None)])
def test_a_profile_line(line):
    assert profile_answer(line) == as_serialized(shapes.ProfileLineAnswer, line)


def test_a_passage():
    expected = as_serialized(shapes.PassageAnswer, PASSAGE)

    assert passage_answer(PASSAGE, explain=False) == expected
    explained = passage_answer(PASSAGE, explain=True)
    assert explained.pop("explain") == {"score": 0.75, "cosine": None, "bm25": 1.5, "coverage": 0.5}
    assert explained == expected


def test_what_was_stored():
    answer = stored_answer(Stored(UUID(int=7), State.ACTIVE, 1, vector_pending=True))

    assert set(answer) == set(shapes.StoredAnswer().fields)
    assert answer == dict(shapes.StoredAnswer(SimpleNamespace(**answer)).data)
