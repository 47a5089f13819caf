"""What the person sees is everything, and what it calls used is exactly what an agent can be given."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from accounts.errors import NotFound
from accounts.services import portal
from memory.services.disclosing import Use, disclose, disclose_memory, disclose_value
from memory.services.forgetting import forget_memory
from memory.services.profile import forget_value


def day(offset):
    return (datetime.now(UTC) + timedelta(days=offset)).isoformat()


@pytest.fixture
def visit(mia):
    return portal.open_link(mia.link().split("/")[-2]).text


@pytest.fixture
def sees(visit):
    """sees() is what the person is shown; sees(disclose_memory, id) what another function shows them."""

    def look(function=disclose, *arguments, **named):
        with portal.visiting(visit) as visitor:
            return function(visitor, *arguments, **named)

    return look


def uses(found):
    return {each.memory.text: each.use for each in found.memories}


def test_nothing_is_remembered(sees):
    found = sees()
    assert (found.memories, found.profile, found.is_empty, found.refusal) == ((), (), True, "consent_required")


def test_each_state_a_memory_can_be_in(acme, mia, sees):
    mia.consents("memory.store", "memory.personalise", "memory.sensitive")
    mia.remembers("Mia is allergic to peanuts.", categories=["health"])
    old = mia.remembers("Mia lives in Leeds.", source="person")
    mia.remembers("Mia lives in Bristol.", source="person", supersedes=[old])
    mia.remembers("Mia is on holiday.", expires_at=day(1))
    mia.remembers("The office agent knows a thing.", agent="office")
    mia.remembers("Mia likes the lab.", project=str(acme.project("lab")))
    assert set(uses(sees()).values()) == {Use.USED, Use.REPLACED}
    mia.says("withdrawn", "memory.sensitive")
    found = sees()
    assert uses(found) == {
        "Mia is allergic to peanuts.": Use.SENSITIVE,
        "Mia lives in Leeds.": Use.REPLACED,
        "Mia lives in Bristol.": Use.USED,
        "Mia is on holiday.": Use.USED,
        "The office agent knows a thing.": Use.USED,
        "Mia likes the lab.": Use.USED,
    }
    assert (found.used, found.unused, found.refusal) == (4, 2, "")


def test_used_is_what_recall_gives_over_all_projects_and_agents(acme, mia, sees):
    mia.consents("memory.store", "memory.personalise", "memory.share")
    lab = str(acme.project("lab"))
    mia.remembers("Mia keeps bees.")
    mia.remembers("Mia keeps hens.", agent="farm")
    mia.remembers("Mia keeps goats.", project=lab)
    mia.remembers("Mia kept ducks.", expires_at=day(1))
    replaced = mia.remembers("Mia keeps cats.", source="person")
    mia.remembers("Mia keeps dogs.", source="person", supersedes=[replaced])
    given = {
        item["id"]
        for options in ({}, {"agent": "farm"}, {"project": lab}, {"across_projects": True, "agent": "farm"})
        for item in mia.recall("Which animals does Mia keep?", limit=20, scoring={"name": "evidence"}, **options)[
            "memories"
        ]
    }
    shown = {str(each.memory.id) for each in sees().memories if each.use is Use.USED}
    assert given == shown


def test_without_consent_everything_is_shown_and_nothing_is_used(mia, sees):
    mia.consents()
    mia.remembers("Mia keeps bees.")
    mia.says("withdrawn", "memory.personalise")
    found = sees()
    assert (uses(found), found.refusal, found.readable) == (
        {"Mia keeps bees.": Use.NOT_ALLOWED},
        "consent_withdrawn",
        True,
    )
    mia.says("withdrawn", "memory.store")
    found = sees()
    assert (found.used, found.unused, found.readable) == (0, 1, False)


def test_the_profile_of_every_project_is_shown(acme, mia, sees):
    mia.consents()
    lab = str(acme.project("lab", undeclared_profile_keys=True))
    acme.admin.put(f"{mia.path}/profile/food.likes?project={lab}", {"value": ["rye", "figs"]})
    found = sees()
    assert [(each.line.key, each.line.in_words, each.use) for each in found.profile] == [
        ("food.likes", "rye, figs", Use.USED)
    ]


def test_pages_hold_everything_once(mia, sees):
    mia.consents()
    ids = {mia.remembers(f"Mia knows number {number}.") for number in range(5)}
    first = sees(limit=2)
    second = sees(limit=2, after=first.next_after)
    third = sees(limit=2, after=second.next_after)
    shown = [str(each.memory.id) for page in (first, second, third) for each in page.memories]
    assert (sorted(shown), third.next_after) == (sorted(ids), None)
    assert (first.used, third.used) == (5, 5)


def test_another_persons_things_are_not_found(acme, mia, sees):
    noa = acme.person("noa").consents()
    theirs = UUID(noa.remembers("Noa keeps bees."))
    with pytest.raises(NotFound):
        sees(disclose_memory, theirs)
    with pytest.raises(NotFound):
        sees(disclose_value, theirs)


def test_the_person_forgets_without_any_consent(acme, mia, visit, sees):
    mia.consents()
    memory_id = mia.remembers("Mia keeps bees.")
    mia.says("withdrawn")
    with portal.visiting(visit) as visitor:
        forget_memory(visitor.subject, UUID(memory_id), caller=visitor)
    assert sees().is_empty
    events = acme.admin.get("/v1/audit/events?action=memory.memory.forgotten").json()["items"]
    assert [event["actor"]["kind"] for event in events] == ["person"]


def test_a_profile_value_is_forgotten_once(acme, mia, visit, sees):
    mia.consents()
    lab = str(acme.project("lab", undeclared_profile_keys=True))
    acme.admin.put(f"{mia.path}/profile/food.likes?project={lab}", {"value": "rye"})
    entry = sees().profile[0].line.id
    with portal.visiting(visit) as visitor:
        forget_value(visitor.subject, entry, caller=visitor)
    with pytest.raises(NotFound), portal.visiting(visit) as visitor:
        forget_value(visitor.subject, entry, caller=visitor)
    assert sees().is_empty


def test_each_look_is_in_the_log_as_the_persons_own(acme, mia, sees):
    mia.consents()
    memory_id = mia.remembers("Mia keeps bees.")
    sees()
    event = acme.admin.get("/v1/audit/events?action=memory.disclosure.read").json()["items"][0]
    assert (event["actor"]["kind"], event["resource_ids"], event["counts"]) == (
        "person",
        [memory_id],
        {"memories": 1, "profile": 0},
    )
