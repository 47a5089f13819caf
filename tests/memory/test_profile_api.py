"""The profile over REST: declared keys, values that satisfy them, and names nobody can read off the table."""

import pytest

from accounts.tenancy import narrow, scope
from memory.models import ProfileEntry
from tests.memory.profiles import code, declare, get, profile, put

SECRET = "peanuts-and-penicillin"


@pytest.fixture
def mia(mia):
    declare(mia.world, "preferences.tone")
    return mia.consents()


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["short 🌼\x00", 0, -1.5, True, False, [], {}, [1, {"a": [None]}], "", 2**53 + 1])
def test_value_is_kept_exactly(mia, value):
    declare(mia.world, "anything", {"description": "whatever"})

    assert put(mia, "anything", value).status_code == 200

    kept = get(mia, "anything").json()["value"]
    assert (kept, type(kept)) == (value, type(value))


def test_write_answers_version_and_no_content(mia):
    answer = put(mia, "preferences.tone", "short")

    assert answer.status_code == 200
    assert answer.json() == {"id": answer.json()["id"], "version": 1}
    assert answer["ETag"] == '"1"'


def test_value_is_replaced_under_the_same_id(mia):
    first = put(mia, "preferences.tone", "short").json()

    second = put(mia, "preferences.tone", "long")

    assert second.json() == {"id": first["id"], "version": 2}
    assert second["ETag"] == get(mia, "preferences.tone")["ETag"] == '"2"'
    assert profile(mia) == {"preferences.tone": "long"}


def test_list_is_by_key(mia):
    for key in ("zeta", "alpha", "mid.dle"):
        declare(mia.world, key)
        put(mia, key, key)

    assert list(profile(mia)) == ["alpha", "mid.dle", "zeta"]


@pytest.mark.parametrize("body", [{}, {"value": None}, {"value": "x", "sensitive": False}, [], "x"])
def test_body_holds_a_value_and_nothing_else(mia, body):
    answer = mia.world.agent.put(f"{mia.path}/profile/preferences.tone", body)

    assert code(answer) == (400, "validation_failed")


def test_unset_key_is_not_found(mia):
    assert code(get(mia, "preferences.tone")) == (404, "not_found")
    assert code(get(mia, "never.declared")) == (404, "not_found")


# --- consent ----------------------------------------------------------------------------------------------------------


def test_nothing_is_set_without_consent(acme):
    declare(acme, "preferences.tone")
    nobody = acme.person("nobody")

    assert code(put(nobody, "preferences.tone", "short")) == (403, "consent_required")
    assert code(get(nobody, "preferences.tone")) == (403, "consent_required")
    assert code(acme.agent.get(f"{nobody.path}/profile")) == (403, "consent_required")


def test_sensitive_key_waits_for_its_own_consent(mia):
    declare(mia.world, "health.allergies", {"type": "array"}, sensitive=True)
    assert code(put(mia, "health.allergies", ["peanuts"])) == (403, "consent_required")

    mia.consents("memory.sensitive")
    assert put(mia, "health.allergies", ["peanuts"]).status_code == 200
    assert profile(mia) == {"health.allergies": ["peanuts"]}

    mia.says("withdrawn", "memory.sensitive")
    assert profile(mia) == {}
    assert get(mia, "health.allergies").status_code == 404
    assert mia.recall("peanuts")["profile"] == []


def test_removing_needs_no_consent(mia):
    put(mia, "preferences.tone", "short")
    mia.says("withdrawn")

    answer = mia.world.agent.delete(f"{mia.path}/profile/preferences.tone")

    assert (answer.status_code, answer.json()["state"]) == (200, "forgotten")
    mia.says("given")
    assert profile(mia) == {}
    assert code(mia.world.agent.delete(f"{mia.path}/profile/preferences.tone")) == (404, "not_found")


def test_key_that_any_declaration_calls_sensitive_is_sensitive_everywhere(mia):
    alpha, beta = mia.world.project("alpha"), mia.world.project("beta")
    free = mia.world.project("free", undeclared_profile_keys=True)
    declare(mia.world, "health.allergies")
    declare(mia.world, "health.allergies", query=f"?project={beta}")
    assert put(mia, "health.allergies", "peanuts", f"?project={beta}").status_code == 200  # the control

    declare(mia.world, "health.allergies", query=f"?project={alpha}", sensitive=True)

    for query in ("", f"?project={alpha}", f"?project={beta}", f"?project={free}"):
        assert code(put(mia, "health.allergies", "peanuts", query)) == (403, "consent_required")
    mia.consents("memory.sensitive")
    for query in ("", f"?project={alpha}", f"?project={beta}", f"?project={free}"):
        assert put(mia, "health.allergies", "peanuts", query).status_code == 200


def test_key_declared_sensitive_later_hides_what_was_stored_before(mia):
    declare(mia.world, "health.allergies")
    put(mia, "health.allergies", "peanuts")
    put(mia, "preferences.tone", "short")
    assert profile(mia) == {"health.allergies": "peanuts", "preferences.tone": "short"}

    declare(mia.world, "health.allergies", sensitive=True)

    assert profile(mia) == {"preferences.tone": "short"}
    assert get(mia, "health.allergies").status_code == 404
    assert [line["value"] for line in mia.recall("peanuts")["profile"]] == ["short"]
    mia.consents("memory.sensitive")
    assert profile(mia) == {"health.allergies": "peanuts", "preferences.tone": "short"}
    assert get(mia, "health.allergies").status_code == 200


def test_value_stored_as_sensitive_stays_so_when_its_key_no_longer_is(mia):
    declare(mia.world, "health.allergies", sensitive=True)
    mia.consents("memory.sensitive")
    put(mia, "health.allergies", "peanuts")
    mia.says("withdrawn", "memory.sensitive")

    declare(mia.world, "health.allergies", sensitive=False)

    assert profile(mia) == {}


# --- scope ------------------------------------------------------------------------------------------------------------


def test_projects_value_hides_the_unscoped_one(mia):
    alpha, beta = mia.world.project("alpha"), mia.world.project("beta")
    put(mia, "preferences.tone", "short")
    put(mia, "preferences.tone", "long", f"?project={alpha}")

    assert profile(mia) == {"preferences.tone": "short"}
    assert profile(mia, f"?project={beta}") == {"preferences.tone": "short"}
    assert profile(mia, f"?project={alpha}") == {"preferences.tone": "long"}
    assert get(mia, "preferences.tone", f"?project={alpha}").json()["project"] == str(alpha)
    assert [line["value"] for line in mia.recall("tone", project=str(alpha))["profile"]] == ["long"]

    mia.world.agent.delete(f"{mia.path}/profile/preferences.tone?project={alpha}")
    assert profile(mia, f"?project={alpha}") == {"preferences.tone": "short"}


def test_value_of_one_project_is_not_anothers(mia):
    alpha, beta = mia.world.project("alpha"), mia.world.project("beta")
    put(mia, "preferences.tone", "long", f"?project={alpha}")

    assert profile(mia, f"?project={beta}") == {}
    assert get(mia, "preferences.tone", f"?project={beta}").status_code == 404
    assert mia.world.agent.delete(f"{mia.path}/profile/preferences.tone?project={beta}").status_code == 404


# --- versions ---------------------------------------------------------------------------------------------------------


def test_if_match_of_the_current_version_is_taken(mia):
    put(mia, "preferences.tone", "short")

    assert put(mia, "preferences.tone", "long", If_Match='"1"').status_code == 200


@pytest.mark.parametrize("tag", ['"2"', '"0"'])
def test_if_match_of_another_version_changes_nothing(mia, tag):
    put(mia, "preferences.tone", "short")

    assert code(put(mia, "preferences.tone", "long", If_Match=tag)) == (412, "precondition_failed")
    assert profile(mia) == {"preferences.tone": "short"}


def test_if_match_on_what_is_not_there_creates_nothing(mia):
    assert code(put(mia, "preferences.tone", "long", If_Match='"1"')) == (412, "precondition_failed")
    assert profile(mia) == {}


def test_same_new_key_set_by_many_at_once_is_one_value(mia):
    answers = mia.world.at_once(*[lambda n=n: put(mia, "preferences.tone", f"v{n}") for n in range(6)])

    assert {answer.status_code for answer in answers} <= {200, 409}
    assert 200 in {answer.status_code for answer in answers}
    with scope(mia.world.id), narrow(mia.id):
        assert ProfileEntry.objects.count() == 1


# --- what the table tells ---------------------------------------------------------------------------------------------


def test_neither_key_nor_value_can_be_read_off_the_table(mia, connect_as):
    declare(mia.world, "health.allergies", {"type": "string"}, sensitive=True)
    mia.consents("memory.sensitive")
    other = mia.world.person("max").consents("memory.store", "memory.sensitive")
    put(mia, "health.allergies", SECRET)
    put(other, "health.allergies", SECRET)

    with connect_as("fmn_backup") as connection:
        rows = connection.execute(
            "SELECT p::text, key_digest FROM memory_profileentry p WHERE tenant_id = %s", [mia.world.id]
        ).fetchall()

    assert len(rows) == 2
    for row, _ in rows:
        for told in ("health.allergies", SECRET):
            assert told not in row
            assert told.encode().hex() not in row
    assert rows[0][1] != rows[1][1]  # nor that two people have the same key


def test_reading_and_changing_the_profile_is_recorded(mia):
    entry = put(mia, "preferences.tone", "short").json()["id"]
    profile(mia)

    events = mia.world.admin.get("/v1/audit/events?limit=2").json()["items"]

    assert [event["action"] for event in events] == ["memory.profile.read", "memory.profile.changed"]
    assert [event["resource_ids"] for event in events] == [[entry], [entry]]
