"""The profile over REST: declared keys, values that satisfy them, and names nobody can read off the table."""

import http.server
import threading

import pytest

from accounts.tenancy import narrow, scope
from memory.models import ProfileEntry

SECRET = "peanuts-and-penicillin"


def code(answer):
    return answer.status_code, answer.json()["code"]


def declare(world, key, schema=None, *, query="", **facts):
    body = {"schema": schema or {"type": "string"}} | facts
    answer = world.admin.put(f"/v1/profile-keys/{key}{query}", body)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def put(person, key, value, query="", **headers):
    return person.world.agent.put(f"{person.path}/profile/{key}{query}", {"value": value}, **headers)


def get(person, key, query=""):
    return person.world.agent.get(f"{person.path}/profile/{key}{query}")


def profile(person, query=""):
    items = person.world.agent.get(f"{person.path}/profile{query}").json()["items"]
    return {item["key"]: item["value"] for item in items}


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


# --- declarations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "maxLength": 5}, "short", SECRET),
        ({"enum": ["de", "en"]}, "de", SECRET),
        ({"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": 1}, {"n": SECRET}),
        ({"type": "array", "items": {"pattern": "^a"}}, ["ab"], ["ab", SECRET]),
        ({"const": 1}, 1, SECRET),
        ({"type": "integer"}, 3, True),
    ],
)
def test_value_that_breaks_its_schema_is_refused_and_not_repeated(mia, schema, good, bad):
    declare(mia.world, "checked", schema)

    answer = put(mia, "checked", bad)

    assert code(answer) == (400, "profile_value_invalid")
    assert answer.json()["errors"][0]["pointer"].startswith("/value")
    assert SECRET not in answer.content.decode()
    assert get(mia, "checked").status_code == 404
    assert put(mia, "checked", good).status_code == 200


def test_undeclared_key_is_refused(mia):
    assert code(put(mia, "never.declared", "x")) == (400, "profile_key_undeclared")


def test_project_may_allow_undeclared_keys(mia):
    free = mia.world.project("free", undeclared_profile_keys=True)

    assert put(mia, "never.declared", "x", f"?project={free}").status_code == 200
    assert code(put(mia, "never.declared", "x")) == (400, "profile_key_undeclared")
    assert profile(mia, f"?project={free}") == {"never.declared": "x"}
    assert profile(mia) == {}


def test_declared_schema_holds_in_a_project_that_allows_undeclared_keys_too(mia):
    free = mia.world.project("free", undeclared_profile_keys=True)

    assert code(put(mia, "preferences.tone", 5, f"?project={free}")) == (400, "profile_value_invalid")


def test_projects_declaration_goes_before_the_tenants(mia):
    alpha = mia.world.project("alpha")
    declare(mia.world, "preferences.tone", {"type": "integer"}, query=f"?project={alpha}")

    assert put(mia, "preferences.tone", 5, f"?project={alpha}").status_code == 200
    assert code(put(mia, "preferences.tone", "short", f"?project={alpha}")) == (400, "profile_value_invalid")
    assert put(mia, "preferences.tone", "short").status_code == 200


def test_declaring_again_changes_the_schema_and_keeps_values(mia):
    first = declare(mia.world, "preferences.tone")
    put(mia, "preferences.tone", "short")

    second = declare(mia.world, "preferences.tone", {"type": "integer"})

    assert second["id"] == first["id"]
    assert profile(mia) == {"preferences.tone": "short"}
    assert code(put(mia, "preferences.tone", "long")) == (400, "profile_value_invalid")


BAD_KEYS = ["Upper", "with%20space", "1st", "a..b", ".a", "a.", "%C3%BCber", "a-b", "nul%00", "a" * 101, "a%0A"]


@pytest.mark.parametrize("key", BAD_KEYS)
def test_key_that_is_no_name_is_refused(mia, key):
    assert code(put(mia, key, "x")) == (400, "validation_failed")


@pytest.mark.parametrize("key", BAD_KEYS)
def test_key_that_is_no_name_cannot_be_declared(mia, key):
    answer = mia.world.admin.put(f"/v1/profile-keys/{key}", {"schema": {}})

    assert code(answer) == (400, "validation_failed")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"maxLength": -1},
        {"pattern": "("},
        {"$ref": "#/$defs/missing"},
        {"description": "nul \x00"},
        {"enum": "de"},
    ],
    ids=str,
)
def test_schema_that_is_none_is_refused_when_declared(mia, schema):
    answer = mia.world.admin.put("/v1/profile-keys/broken", {"schema": schema})

    assert code(answer) == (400, "validation_failed")
    assert answer.json()["errors"][0]["pointer"].startswith("/schema")


def test_schema_that_refers_to_itself_for_ever_is_no_server_error(mia):
    answer = mia.world.admin.put("/v1/profile-keys/loop", {"schema": {"$ref": "#"}})

    tried = put(mia, "loop", "x")

    assert {answer.status_code, tried.status_code} <= {200, 400}


def test_pattern_that_would_take_for_ever_does_not(mia):
    """A backtracking engine needs about 2**40 steps for this one; the suite's time limit would end it."""
    mia.world.admin.put("/v1/profile-keys/slow", {"schema": {"pattern": "^(a+)+$"}})

    answer = put(mia, "slow", "a" * 40 + "!")

    assert code(answer) == (400, "profile_value_invalid")


def test_schema_never_makes_the_server_fetch_an_address(mia):
    """A schema that names an address would turn the server into a client of whatever the tenant likes."""
    asked = []

    class Ear(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            """Nothing to say."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Ear)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/internal"
    try:
        declared = mia.world.admin.put("/v1/profile-keys/fetching", {"schema": {"$ref": address}})
        tried = put(mia, "fetching", "x")
    finally:
        server.shutdown()
        server.server_close()

    assert asked == []
    assert 400 in (declared.status_code, tried.status_code)
    assert tried.status_code < 500


def test_declaring_needs_its_own_scope(mia):
    assert code(mia.world.agent.put("/v1/profile-keys/x", {"schema": {}})) == (403, "scope_missing")


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
