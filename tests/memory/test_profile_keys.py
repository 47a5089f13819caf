"""Declared profile keys over REST: schemas they take, values those let through, how much one person may have."""

import http.server
import threading

import pytest

from accounts.tenancy import narrow, scope
from memory.models import ProfileKey
from memory.services.profile import set_value
from tests.memory.profiles import code, declare, get, profile, put

SECRET = "peanuts-and-penicillin"


@pytest.fixture
def mia(mia):
    declare(mia.world, "preferences.tone")
    return mia.consents()


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


def test_value_is_bounded_in_bytes_and_depth(mia):
    declare(mia.world, "anything", {"description": "whatever"})
    free = mia.world.project("free", undeclared_profile_keys=True)
    nested = []
    for _ in range(15):
        nested = [nested]

    assert put(mia, "anything", "x" * 4094).status_code == 200  # and two quotation marks
    assert put(mia, "anything", "ä" * 2047).status_code == 200
    assert put(mia, "anything", nested).status_code == 200
    for query in ("", f"?project={free}"):
        for value in (SECRET * 200, "ä" * 2048, [nested]):
            answer = put(mia, "anything" if not query else "undeclared.key", value, query)
            assert code(answer) == (400, "validation_failed")
            assert answer.json()["errors"][0]["pointer"] == "/value"
            assert SECRET not in answer.content.decode()


def test_person_has_room_for_200_values(mia):
    free = mia.world.project("free", undeclared_profile_keys=True)
    with scope(mia.world.id), narrow(mia.id):
        for number in range(200):
            set_value(mia.ref_inside(), f"key.n{number}", 1, principal=mia.world.principal, project_id=free)

    assert code(put(mia, "preferences.tone", "short")) == (409, "quota_exceeded")
    assert put(mia, "key.n7", 2, f"?project={free}").status_code == 200
    assert len(profile(mia, f"?project={free}")) == 200

    assert mia.world.agent.delete(f"{mia.path}/profile/key.n7?project={free}").status_code == 200
    assert put(mia, "preferences.tone", "short").status_code == 200


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


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": SECRET}}},
        {"enum": SECRET},
        {"pattern": f"({SECRET}"},
        {"$ref": f"#/{SECRET}"},
        {"$ref": f"http://{SECRET}/"},
        {"$schema": SECRET},
        {"type": [SECRET]},
    ],
    ids=str,
)
def test_refused_schema_is_not_repeated(mia, schema):
    answer = mia.world.admin.put("/v1/profile-keys/broken", {"schema": schema})

    assert code(answer) == (400, "validation_failed")
    assert SECRET not in answer.content.decode()


def test_schema_that_refers_to_itself_for_ever_is_refused(mia):
    answer = mia.world.admin.put("/v1/profile-keys/loop", {"schema": {"$ref": "#"}})

    assert code(answer) == (400, "validation_failed")
    assert code(put(mia, "loop", "x")) == (400, "profile_key_undeclared")


def test_schema_declared_when_rules_were_wider_checks_nothing_any_more(mia):
    declare(mia.world, "old")
    with scope(mia.world.id):
        ProfileKey.objects.filter(key="old").update(schema={"$ref": "#"})

    assert code(put(mia, "old", "x")) == (400, "profile_value_invalid")


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
