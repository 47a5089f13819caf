"""Every refusal in one shape, with its documented code; who is let in; what every answer carries."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.test import Client

from accounts.credentials import make_key
from accounts.models import Subject
from accounts.scopes import Scope
from accounts.services.credentials import create_api_key, revoke_api_key
from accounts.services.tenants import open_tenant
from accounts.tenancy import scope
from accounts.types import Mode
from tests.house.routes import routes
from tests.world import TEST_ACTOR, Rest

FIELDS = {"type", "title", "status", "detail", "instance", "code", "errors", "request_id"}
UNKNOWN = str(uuid4())
REFUSALS = {
    "unknown address": ("GET", "/v1/nowhere", None, 404, "not_found"),
    "outside the API": ("GET", "/nowhere", None, 404, "not_found"),
    "trailing slash": ("GET", "/v1/subjects/", None, 404, "not_found"),
    "no uuid": ("GET", "/v1/jobs/five", None, 404, "not_found"),
    "unknown person": ("GET", "/v1/subjects/nobody", None, 404, "not_found"),
    "unknown job": ("GET", f"/v1/jobs/{UNKNOWN}", None, 404, "not_found"),
    "unknown document": ("GET", f"/v1/knowledge/documents/{UNKNOWN}", None, 404, "not_found"),
    "wrong method": ("PATCH", "/v1/subjects/mia", {}, 405, "method_not_allowed"),
    "odd method": ("BREW", "/v1/subjects/mia", {}, 405, "method_not_allowed"),
    "no consent": ("POST", "/v1/subjects/mia/memories", {"text": "x"}, 403, "consent_required"),
    "not valid": ("POST", "/v1/subjects/mia/recall", {"query": 5}, 400, "validation_failed"),
    "not JSON": ("POST", "/v1/subjects/mia/recall", "{", 400, "validation_failed"),
    "undeclared key": ("PUT", "/v1/subjects/mia/profile/a.b", {"value": 1}, 400, "profile_key_undeclared"),
    "no evidence": (
        "POST",
        "/v1/subjects/mia/consents",
        {"event": "given", "purposes": ["memory.store"]},
        400,
        "evidence_missing",
    ),
    "messages": (
        "POST",
        "/v1/subjects/mia/memories",
        {"text": "x", "messages": []},
        400,
        "messages_not_taken",
    ),
    "too large": ("POST", "/v1/subjects/mia/recall", "x" * (1024 * 1024 + 1), 413, "payload_too_large"),
}


def assert_problem(answer, status, code):
    body = answer.json()
    assert (answer.status_code, body["code"]) == (status, code)
    assert answer["Content-Type"] == "application/problem+json"
    assert set(body) == FIELDS
    assert body["status"] == status
    assert body["type"] == f"/docs/errors#{code}"
    assert body["instance"] == answer.request["PATH_INFO"]
    assert body["request_id"] == answer["X-Request-Id"]
    assert body["title"]
    assert body["detail"]
    assert all(set(error) == {"pointer", "detail"} for error in body["errors"])
    assert answer["Cache-Control"] == "no-store"


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_refusal_is_a_problem_of_one_shape(mia, refusal):
    method, path, body, status, code = refusal

    assert_problem(mia.world.admin.call(method, path, body), status, code)


def test_erased_person_is_a_problem_too(mia):
    with scope(mia.world.id):
        Subject.objects.filter(id=mia.id).update(state="erased")

    assert_problem(mia.world.admin.get(mia.path), 410, "subject_erased")


def test_other_content_types_are_refused(mia):
    for content_type in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/xml",
        "",
    ):
        answer = mia.world.agent.client.generic(
            "POST",
            f"{mia.path}/recall",
            b'{"query": "x"}',
            content_type,
            headers={"Authorization": f"Bearer {mia.world.keys['agent']}"},
        )
        assert_problem(answer, 415, "unsupported_media_type")


def test_accept_header_never_changes_the_shape(mia):
    for accept in ("text/html", "application/xml", "*/*", "application/json;version=2", "nonsense"):
        assert mia.world.admin.get(mia.path, Accept=accept)["Content-Type"] == "application/json"
        assert_problem(mia.world.admin.get("/v1/subjects/nobody", Accept=accept), 404, "not_found")


def test_more_parameters_than_anybody_needs_are_refused(acme):
    answer = acme.admin.get("/v1/subjects?" + "&".join(f"a{n}=" for n in range(1001)))

    assert_problem(answer, 400, "validation_failed")


@pytest.mark.parametrize("header", ['"1', "1", '"one"', '"' + "9" * 5000 + '"'])
def test_if_match_that_is_no_etag_is_refused(mia, header):
    answer = mia.world.admin.call("PUT", mia.path, {}, If_Match=header)

    assert_problem(answer, 400, "validation_failed")


def test_host_that_is_not_ours_is_refused(acme):
    answer = acme.admin.get("/v1/subjects", Host="evil.example")

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")


# --- keys -------------------------------------------------------------------------------------------------------------


def assert_unauthenticated(answer):
    assert_problem(answer, 401, "unauthenticated")
    assert answer["WWW-Authenticate"] == 'Bearer realm="forget-me-not"'


def with_header(value):
    return Client(raise_request_exception=False).get("/v1/subjects", headers={"Authorization": value} if value else {})


def test_good_key_is_let_in(acme):
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert with_header(f"{scheme} {acme.keys['admin']}").status_code == 200


def test_anything_else_is_not(acme):
    good = acme.keys["admin"]
    changed = good[:-1] + ("0" if good[-1] != "0" else "1")
    headers = [
        "",
        "Bearer",
        "Bearer ",
        f"Basic {good}",
        good,
        f"Bearer{good}",
        f"Bearer {good[:-1]}",
        f"Bearer {good}x",
    ]
    headers += [f"Bearer {changed}", "Bearer fmn_live_x_y_z", "Bearer " + "x" * 5000, "Bearer \u00e9", f"Token {good}"]

    for header in headers:
        assert_unauthenticated(with_header(header))


def test_well_formed_key_that_was_never_made_opens_nothing(acme):
    for tenant_id in (acme.id, uuid4()):
        assert_unauthenticated(Rest(make_key(Mode.SANDBOX, tenant_id)).get("/v1/subjects"))


def test_key_of_another_mode_opens_nothing(acme):
    """The mode is part of the key: `live` written over `sandbox` is another key, with a checksum that does not fit."""
    assert_unauthenticated(Rest(acme.keys["admin"].replace("sandbox", "live")).get("/v1/subjects"))
    assert_unauthenticated(Rest(make_key(Mode.LIVE, acme.id)).get("/v1/subjects"))


def test_key_made_for_another_mode_than_its_tenants_opens_nothing(acme):
    live = open_tenant(acme.tenant.organisation_id, Mode.LIVE, actor=TEST_ACTOR)
    with scope(live.id):
        _, right = create_api_key("right", {Scope.SUBJECTS_READ}, mode=Mode.LIVE, actor=TEST_ACTOR)
        _, wrong = create_api_key("wrong", {Scope.SUBJECTS_READ}, mode=Mode.SANDBOX, actor=TEST_ACTOR)

    assert Rest(right).get("/v1/subjects").json()["items"] == []
    assert_unauthenticated(Rest(wrong).get("/v1/subjects"))


def test_revoked_key_opens_nothing(acme):
    agent = acme.agent
    assert agent.get("/v1/subjects").status_code == 200
    with scope(acme.id):
        revoke_api_key(acme.key_ids["agent"], actor=TEST_ACTOR)

    assert_unauthenticated(agent.get("/v1/subjects"))


def test_expired_key_opens_nothing(acme):
    now = datetime.now(UTC)
    over = acme.key("over", {Scope.SUBJECTS_READ}, expires_at=now - timedelta(seconds=1))
    running = acme.key("running", {Scope.SUBJECTS_READ}, expires_at=now + timedelta(hours=1))

    assert_unauthenticated(over.get("/v1/subjects"))
    assert running.get("/v1/subjects").status_code == 200


def test_stranger_learns_nothing_about_what_exists(mia):
    """Without a key every address of the API answers the same, whether the thing exists or not."""
    nobody = Rest("nonsense")

    for path in (mia.path, "/v1/subjects/nobody", f"/v1/jobs/{UNKNOWN}", "/v1/audit/events"):
        assert_unauthenticated(nobody.get(path))
        assert_unauthenticated(nobody.call("PATCH", path, {}))


def test_health_and_schema_need_no_key():
    client = Client()
    assert client.get("/healthz").json()["status"] == "ok"
    assert client.get("/v1/schema").json()["openapi"].startswith("3.1")


# --- scopes -----------------------------------------------------------------------------------------------------------

DOCUMENT = f"/v1/knowledge/documents/{UNKNOWN}"
NEEDED = [
    ("GET", "/v1/subjects", "subjects:read"),
    ("GET", "/v1/subjects/mia", "subjects:read"),
    ("PUT", "/v1/subjects/mia", "subjects:write"),
    ("GET", "/v1/purposes", "consent:read"),
    ("GET", "/v1/subjects/mia/consents", "consent:read"),
    ("POST", "/v1/subjects/mia/consents", "consent:relay"),
    ("POST", "/v1/subjects/mia/portal-links", "portal:write"),
    ("GET", "/v1/subjects/mia/memories", "memories:read"),
    ("POST", "/v1/subjects/mia/memories", "memories:write"),
    ("GET", f"/v1/subjects/mia/memories/{UNKNOWN}", "memories:read"),
    ("DELETE", f"/v1/subjects/mia/memories/{UNKNOWN}", "memories:delete"),
    ("POST", "/v1/subjects/mia/recall", "memories:read"),
    ("GET", "/v1/subjects/mia/profile", "profile:read"),
    ("GET", "/v1/subjects/mia/profile/a.b", "profile:read"),
    ("PUT", "/v1/subjects/mia/profile/a.b", "profile:write"),
    ("DELETE", "/v1/subjects/mia/profile/a.b", "profile:write"),
    ("GET", "/v1/profile-keys", "profile:read"),
    ("PUT", "/v1/profile-keys/a.b", "projects:write"),
    ("GET", "/v1/knowledge/documents", "knowledge:read"),
    ("POST", "/v1/knowledge/documents", "knowledge:write"),
    ("GET", DOCUMENT, "knowledge:read"),
    ("DELETE", DOCUMENT, "knowledge:write"),
    ("POST", "/v1/knowledge/search", "knowledge:read"),
    ("GET", "/v1/projects", "projects:read"),
    ("POST", "/v1/projects", "projects:write"),
    ("GET", f"/v1/jobs/{UNKNOWN}", "jobs:read"),
    ("GET", "/v1/audit/events", "audit:read"),
]


def test_every_method_of_every_address_names_its_scope(mia):
    """A key with every other scope is refused, by name; one with that scope alone gets past the door."""
    for method, path, needed in NEEDED:
        lacking = mia.world.key("lacking", set(Scope) - {Scope(needed)})
        holding = mia.world.key("holding", {Scope(needed)})

        refused = lacking.call(method, path, {} if method in ("POST", "PUT") else None)
        assert_problem(refused, 403, "scope_missing")
        assert needed in refused.json()["detail"]
        allowed = holding.call(method, path, {} if method in ("POST", "PUT") else None)
        assert allowed.json().get("code") != "scope_missing", (method, path)


def test_table_above_has_every_method_of_every_address():
    views = [
        route.view.view_class for route in routes() if route.path.startswith("/v1/") and route.path != "/v1/schema"
    ]

    assert [view.__name__ for view in views if not view.required_scopes] == []
    found = {(method, wanted.value) for view in views for method, wanted in view.required_scopes.items()}
    assert found == {(method, needed) for method, _, needed in NEEDED}


def test_missing_scope_is_recorded(mia):
    mia.world.relay.get("/v1/subjects")

    (event,) = mia.world.admin.get("/v1/audit/events?decision=refused").json()["items"]

    assert (event["action"], event["reason"]) == ("accounts.request.refused", "scope_missing")
    assert event["actor"]["id"] == str(mia.world.key_ids["relay"])


# --- every answer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offered", ["trace-4711", "a" * 64, "ABC_def-123", "12345678"])
def test_harmless_request_id_of_the_caller_is_echoed_beside_our_own(acme, offered):
    answer = acme.admin.get("/v1/subjects/nobody", X_Request_Id=offered)

    assert answer["X-Client-Request-Id"] == offered
    assert answer["X-Request-Id"] == answer.json()["request_id"] != offered
    assert len(answer["X-Request-Id"]) == 32


@pytest.mark.parametrize(
    "offered", ["", "short", "a" * 65, "with space", "a\u00e9bcdefgh", "<script>x</script>", "trace:4711"]
)
def test_other_request_ids_are_not_echoed(acme, offered):
    answer = acme.admin.get("/v1/subjects", X_Request_Id=offered)

    assert "X-Client-Request-Id" not in answer
    assert len(answer["X-Request-Id"]) == 32


def test_every_request_gets_an_id_of_its_own(acme):
    assert len({acme.admin.get("/v1/subjects")["X-Request-Id"] for _ in range(5)}) == 5


def test_no_answer_may_be_kept_by_a_cache(mia):
    for answer in (
        mia.world.admin.get(mia.path),
        mia.world.admin.put(mia.path, {}),
        mia.world.admin.get("/v1/purposes"),
    ):
        assert answer["Cache-Control"] == "no-store"
        assert answer["X-Content-Type-Options"] == "nosniff"


def test_head_is_answered_like_get_without_a_body(mia):
    """RFC 9110, 9.3.2."""
    answer = mia.world.admin.call("HEAD", mia.path)

    assert answer.status_code == 200
    assert answer["ETag"] == '"1"'
    assert answer.content == b""
    assert mia.world.relay.call("HEAD", mia.path).status_code == 403


@pytest.mark.parametrize(
    "path", ["subjects", "projects", "profile-keys", "knowledge/documents", "subjects/mia/memories", "audit/events"]
)
def test_head_of_a_list_takes_what_get_takes(mia, path):
    mia.consents()

    assert mia.world.admin.call("HEAD", f"/v1/{path}").status_code == 200
    assert mia.world.admin.call("HEAD", f"/v1/{path}?limit=1").status_code == 200
    assert mia.world.admin.call("HEAD", f"/v1/{path}?limit=0").status_code == 400


def test_options_says_what_is_possible(mia):
    answer = mia.world.admin.call("OPTIONS", mia.path)

    assert answer.status_code in (200, 204, 405)
    assert {"GET", "PUT"} <= {method.strip() for method in answer["Allow"].split(",")}
    assert "PATCH" not in answer["Allow"]


def test_refused_method_says_what_is_possible(mia):
    """RFC 9110, 15.5.6: 405 carries Allow."""
    answer = mia.world.admin.call("PATCH", mia.path, {})

    assert answer.status_code == 405
    assert {"GET", "PUT"} <= {method.strip() for method in answer["Allow"].split(",")}
    assert "DELETE" not in answer["Allow"]
