"""The search line: what it understands, and that it never ignores what it does not."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.selectors import EventFilter
from consent.qualifiers import parse


def test_an_empty_line_asks_for_everything():
    asked = parse("  ")
    assert (asked.filter, asked.subject, asked.parts, asked.errors) == (EventFilter(), None, (), ())


def test_every_qualifier():
    asked = parse(
        "actor:person subject:user-123 action:memory.recall purpose:memory.store outcome:refused "
        "since:2026-11-01 before:2026-11-30T14:20Z"
    )
    assert asked.errors == ()
    assert asked.subject == "user-123"
    assert asked.filter == EventFilter(
        actor_kind="person",
        action="memory.recall",
        purpose="memory.store",
        result="refused",
        since=datetime(2026, 11, 1, tzinfo=UTC),
        before=datetime(2026, 11, 30, 14, 20, tzinfo=UTC),
    )


def test_an_actor_is_a_kind_or_an_id():
    assert parse("actor:api_key").filter.actor_kind == "api_key"
    assert parse("actor:0198c0de-0000-7000-8000-0000000000ad").filter.actor_id == "0198c0de-0000-7000-8000-0000000000ad"


def test_a_subject_may_hold_a_colon():
    assert parse("subject:crm:42").subject == "crm:42"


@pytest.mark.parametrize(
    "line", ["peanuts", "colour:blue", "outcome:maybe", "before:yesterday", "actor:", "actor:a actor:b", "x" * 501]
)
def test_what_is_not_understood_is_said(line):
    assert len(parse(line).errors) == 1


def test_one_part_is_taken_out():
    asked = parse("actor:person outcome:refused actor:person")
    assert asked.parts == ("actor:person", "outcome:refused")
    assert asked.without("actor:person") == "outcome:refused"


@given(st.text(max_size=600))
def test_it_never_raises(line):
    asked = parse(line)
    assert asked.errors or len(asked.parts) <= 7
