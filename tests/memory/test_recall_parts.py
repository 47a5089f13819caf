"""The parts of a recall: what the key may read, what the budget cuts, and that the log names all that is told."""

import pytest

from accounts.scopes import Scope
from accounts.tenancy import narrow, scope
from memory.services.profile import set_value


@pytest.fixture
def mia(mia):
    return mia.consents("memory.store", "memory.personalise", "memory.sensitive")


def fill_profile(person, count):
    """Values of about 40 tokens each, set past REST for speed."""
    project = person.world.project("free", undeclared_profile_keys=True)
    with scope(person.world.id), narrow(person.id):
        for number in range(count):
            value = f"{number} " + "word " * 30
            set_value(
                person.ref_inside(), f"key.n{number:03}", value, principal=person.world.principal, project_id=project
            )
    return str(project)


def test_profile_is_cut_by_the_budget_alone_and_says_so(mia):
    project = fill_profile(mia, 25)

    answer = mia.recall("key", project=project, budget_tokens=400)
    whole = mia.recall("key", project=project, budget_tokens=32000)

    ids = {line["id"] for line in answer["profile"]}
    assert len(ids) == 25
    left_out = {each["id"]: each["reason"] for each in answer["context"]["left_out"]}
    assert set(left_out) == ids - set(answer["context"]["included"])
    assert 0 < len(left_out) < 25
    assert set(left_out.values()) == {"budget"}
    assert set(whole["context"]["included"]) == ids


# --- what the key may read --------------------------------------------------------------------------------------------


@pytest.fixture
def asked(mia):
    """Something of each part, and how to ask for it with a key of some scopes."""
    mia.world.knows("handbook", "Bees are kept on the roof of the office.")
    mia.remembers("Mia keeps bees at home.")
    mia.world.admin.put("/v1/profile-keys/preferences.tone", {"schema": {"type": "string"}})
    mia.world.agent.put(f"{mia.path}/profile/preferences.tone", {"value": "short and dry"})

    def ask(*scopes):
        key = mia.world.key("some", {Scope.MEMORIES_READ, *scopes})
        answer = key.post(f"{mia.path}/recall", {"query": "Where are bees kept?"})
        assert answer.status_code == 200
        return answer.json()

    return ask


MISSING_PROFILE = {"part": "profile", "code": "scope_missing"}
MISSING_KNOWLEDGE = {"part": "knowledge", "code": "scope_missing"}


@pytest.mark.parametrize(
    ("scopes", "counts", "missing"),
    [
        ((), (1, 0, 0), [MISSING_PROFILE, MISSING_KNOWLEDGE]),
        ((Scope.PROFILE_READ,), (1, 1, 0), [MISSING_KNOWLEDGE]),
        ((Scope.KNOWLEDGE_READ,), (1, 0, 1), [MISSING_PROFILE]),
        ((Scope.KNOWLEDGE_READ, Scope.PROFILE_READ), (1, 1, 1), []),
    ],
)
def test_part_the_key_may_not_read_is_left_out_and_said(mia, asked, scopes, counts, missing):
    answer = asked(*scopes)

    assert tuple(len(answer[part]) for part in ("memories", "profile", "knowledge")) == counts
    assert answer["left_out_parts"] == missing
    assert ("short and dry" in answer["context"]["text"]) == bool(counts[1])
    assert ("on the roof" in answer["context"]["text"]) == bool(counts[2])
    (event, *_) = mia.world.admin.get("/v1/audit/events?action=memory.recall.answered").json()["items"]
    assert event["counts"] == dict(zip(("memories", "profile", "knowledge"), counts, strict=True))
    assert len(event["resource_ids"]) == sum(counts)


def test_refused_person_says_what_the_key_lacks_too(mia, asked):
    mia.says("withdrawn")

    answer = asked()

    assert answer["personal"]["status"] == "refused"
    assert answer["left_out_parts"] == [MISSING_PROFILE, MISSING_KNOWLEDGE]
    assert answer["knowledge"] == []


def test_explained_recall_names_what_was_dropped_in_the_log(mia):
    bees = mia.remembers("Mia keeps bees.")
    ida = mia.remembers("Mia's sister Ida lives in Tromsø.")

    explained = mia.recall("bees", explain=True)
    plain = mia.recall("bees")

    events = {event["id"]: event for event in mia.world.admin.get("/v1/audit/events").json()["items"]}
    assert [each["id"] for each in explained["dropped"]] == [ida]
    assert events[explained["recall_id"]]["resource_ids"] == [bees, ida]
    assert events[explained["recall_id"]]["counts"] == {"memories": 1, "profile": 0, "knowledge": 0}
    assert events[plain["recall_id"]]["resource_ids"] == [bees]
