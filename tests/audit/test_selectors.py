from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from accounts.tenancy import ALL, reveal_pseudonym, scope
from audit.selectors import DayCount, EventFilter, counts_by_day, event_of_tenant, events_for_tenant, first_id_at
from audit.services import record_committed, record_refusal
from audit.types import Actor

MIA, NOA = "a1" * 32, "b2" * 32
ADA = Actor("user", "0198c0de-0000-7000-8000-0000000000ad")


@pytest.fixture
def story(tenant, kit):
    """Oldest first: Kit read about Mia, was refused Noa, Ada read about nobody."""
    facts = {"tenant_id": tenant.id, "action": "audit.sample.read"}
    return [
        record_committed(**facts, actor=kit, subject_pseudonym=MIA, decision="allowed"),
        record_refusal(**facts, actor=kit, subject_pseudonym=NOA, reason="consent_required"),
        record_committed(**facts, actor=ADA),
    ]


@pytest.fixture
def listed(tenant):
    def events(limit=10, after=None, **filters):
        with scope(tenant.id, ALL):
            return events_for_tenant(EventFilter(**filters), tenant_id=tenant.id, after=after, limit=limit)

    return events


def test_newest_first_and_whole(story, listed):
    assert listed() == story[::-1]


def test_no_scope_of_this_tenant_finds_nothing(story, tenant):
    with scope(uuid7(), ALL):
        assert events_for_tenant(EventFilter(), tenant_id=tenant.id, limit=10) == []


def test_pages_follow_without_gap_or_repeat(story, listed):
    first = listed(limit=2)
    rest = listed(limit=2, after=first[-1].id)

    assert (first, rest) == ([story[2], story[1]], [story[0]])


def test_filters(story, listed, kit):
    assert listed(action="audit.sample.read") == story[::-1]
    assert listed(action="audit.sample.burnt") == []
    assert listed(subject_pseudonym=MIA) == [story[0]]
    assert listed(subject_pseudonym="") == [story[2]]
    assert listed(decision="refused") == [story[1]]
    assert listed(actor_id=ADA.id) == [story[2]]
    assert listed(actor_id=kit.id, decision="allowed") == [story[0]]
    assert listed(actor_kind="user") == [story[2]]
    assert listed(result="refused") == [story[1]]
    assert listed(action="audit.sample") == listed(action="audit") == story[::-1]
    assert listed(action="audit.sam") == listed(action="audit.sample.re") == []
    assert listed(purpose="memory.store") == []


def test_one_event_of_ones_own_tenant(story, tenant, zenith):
    with scope(tenant.id):
        assert event_of_tenant(story[0].id, tenant_id=tenant.id) == story[0]
        assert event_of_tenant(uuid7(), tenant_id=tenant.id) is None
    with scope(zenith.id):
        assert event_of_tenant(story[0].id, tenant_id=tenant.id) is None


def test_counts_of_a_day(story, tenant):
    today = story[0].at.date()
    wanted = EventFilter(action="audit.sample.read")
    with scope(tenant.id):
        assert sum(each.events for each in counts_by_day(wanted, tenant_id=tenant.id)) == 3
        refused = [each for each in counts_by_day(wanted, tenant_id=tenant.id, by=("reason",)) if each.facts["reason"]]
    assert refused == [DayCount(today, {"reason": "consent_required"}, 1)]


def test_since_is_inclusive_and_before_exclusive_to_the_microsecond(story, listed):
    assert listed(since=story[1].at) == [story[2], story[1]]
    assert listed(since=story[1].at + timedelta(microseconds=1)) == [story[2]]
    assert listed(before=story[1].at) == [story[0]]
    assert listed(before=story[1].at + timedelta(microseconds=1)) == [story[1], story[0]]


def test_a_person_sees_who_looked_at_them_and_nothing_else(story, tenant):
    with scope(tenant.id, uuid7()):
        assert events_for_tenant(EventFilter(), tenant_id=tenant.id, limit=10) == []
        reveal_pseudonym(NOA)
        assert events_for_tenant(EventFilter(), tenant_id=tenant.id, limit=10) == [story[1]]


def test_the_first_id_of_a_millisecond():
    moment = datetime(2026, 3, 4, 5, 6, 7, 890999, tzinfo=UTC)  # 1772600767890 ms = 0x19cb73d3592

    assert first_id_at(moment) == UUID("019cb73d-3592-0000-0000-000000000000")
