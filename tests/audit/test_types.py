from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit.errors import UndeclaredField
from audit.types import Actor

CANARY = "Mia <mia@example.com> is allergic to peanuts"
STRING_FIELDS = ["action", "resource_kind", "subject_pseudonym", "decision", "reason", "request_id", "result"]


@pytest.mark.parametrize("field", STRING_FIELDS)
@pytest.mark.parametrize("text", [CANARY, "mia@example.com", "Müller", "a b", "abc\n", "\u0661", None, 7])
def test_no_text_that_is_not_a_code_gets_into_a_string_field(full_event, field, text):
    with pytest.raises(UndeclaredField) as raised:
        replace(full_event, **{field: text})

    assert str(raised.value) == f"{field}: not a value this field is declared to hold"


@given(text=st.text(min_size=1).filter(lambda text: not text.isascii() or " " in text or "@" in text))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("field", STRING_FIELDS)
def test_nothing_with_a_blank_an_at_sign_or_a_foreign_letter_gets_in(full_event, field, text):
    with pytest.raises(UndeclaredField):
        replace(full_event, **{field: text})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", uuid4()),  # not version 7
        ("id", "0198c0de-1111-7222-8333-444455556666"),
        ("tenant_id", None),
        ("at", datetime(2026, 1, 1)),  # noqa: DTZ001  naive on purpose
        ("at", datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
        ("actor", "system"),
        ("resource_ids", ("mia",)),
        ("resource_ids", [uuid4()]),
        ("resource_ids", (UUID(int=1),) * 10_001),
        ("purposes", ("memory store",)),
        ("purposes", "memory.store"),
        ("purposes", ("memory.store",) * 65),
        ("consent_refs", ("yes, she said so",)),
        ("consent_refs", ("0198C0DE-1111-7222-8333-444455556666",)),
        ("counts", {"items": "2"}),
        ("counts", {"items": True}),
        ("counts", {"items": 2.0}),
        ("counts", {"items": -1}),
        ("counts", {"items": 2**53}),
        ("counts", {"mia@example.com": 1}),
        ("subject_pseudonym", "AB" * 32),
        ("subject_pseudonym", "ab" * 15),
        ("reason", "x" * 41),
        ("request_id", "x" * 65),
        ("decision", "maybe"),
        ("result", ""),
    ],
)
def test_a_value_outside_its_declaration_is_refused(full_event, field, value):
    with pytest.raises(UndeclaredField):
        replace(full_event, **{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("at", datetime(1970, 1, 1, tzinfo=UTC)),
        ("subject_pseudonym", ""),
        ("subject_pseudonym", "0f" * 16),
        ("counts", {}),
        ("counts", {"items": 2**53 - 1}),
        ("reason", ""),
        ("reason", "x" * 40),
        ("request_id", ""),
        ("decision", ""),
        ("result", "failed"),
        ("purposes", ("improve",)),
        ("consent_refs", ("0f" * 32,)),
    ],
)
def test_the_edges_of_a_declaration_are_accepted(full_event, field, value):
    assert getattr(replace(full_event, **{field: value}), field) == value


@pytest.mark.parametrize(
    ("kind", "actor_id"),
    [
        ("user", "mia@example.com"),
        ("user", "ab" * 32),
        ("api_key", "fmn_sandbox_secret"),
        ("person", "0198c0de-1111-7222-8333-444455556666"),  # a person's row id would outlive erasure
        ("system", "Mia Müller"),
        ("system", ""),
        ("robot", "0198c0de-1111-7222-8333-444455556666"),
    ],
)
def test_an_actor_is_an_id_of_its_kind(kind, actor_id):
    with pytest.raises(UndeclaredField):
        Actor(kind, actor_id)


@pytest.mark.parametrize("behalf", ["mia", "mia@example.com", "x" * 64])
def test_nobody_acts_on_behalf_of_a_name(behalf):
    with pytest.raises(UndeclaredField):
        Actor("system", "memory.capture", on_behalf_of=behalf)


def test_actors_of_every_kind():
    assert Actor("user", "0198c0de-1111-7222-8333-444455556666").on_behalf_of == ""
    assert Actor("person", "0f" * 32).kind == "person"
    assert Actor("system", "memory.consolidation", on_behalf_of="0f" * 32).on_behalf_of == "0f" * 32
