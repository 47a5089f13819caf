"""People over REST: made known, replaced, read, listed, under whatever id the tenant gives them."""

from urllib.parse import quote

import pytest

from accounts.models import Subject
from accounts.tenancy import scope

ACCOUNT = {
    "email": "Mia@Example.com",
    "name": "Mia Ørsted\u0301 🌼",
    "locale": "da-DK",
    "time_zone": "Europe/Copenhagen",
    "age_band": "adult",
}
EMPTY = {"email": "", "name": "", "locale": "", "time_zone": "", "age_band": "unknown"}


def account(answer):
    body = answer.json()
    return {name: body[name] for name in EMPTY}


def code(answer):
    return answer.status_code, answer.json()["code"]


# --- one --------------------------------------------------------------------------------------------------------------


def test_put_makes_a_person_known(acme):
    created = acme.admin.put("/v1/subjects/mia", ACCOUNT)

    assert created.status_code == 201
    assert created["ETag"] == '"1"'
    assert set(created.json()) == {"id", "state", "version", "created_at", "updated_at"}
    read = acme.admin.get("/v1/subjects/mia")
    assert read.status_code == 200
    assert read["ETag"] == '"1"'
    assert account(read) == ACCOUNT
    assert (read.json()["external_id"], read.json()["state"]) == ("mia", "active")


def test_put_again_replaces_and_empties_what_is_left_out(acme):
    first = acme.admin.put("/v1/subjects/mia", ACCOUNT)

    second = acme.admin.put("/v1/subjects/mia", {"locale": "de"})

    assert second.status_code == 200
    assert second["ETag"] == '"2"'
    assert second.json()["id"] == first.json()["id"]
    assert account(acme.admin.get("/v1/subjects/mia")) == EMPTY | {"locale": "de"}


@pytest.mark.parametrize("tag", ['"1"', "*"])
def test_if_match_of_the_current_version_is_taken(mia, tag):
    assert mia.world.admin.put(mia.path, {}, If_Match=tag).status_code == 200


def test_if_match_of_an_old_version_changes_nothing(mia):
    mia.world.admin.put(mia.path, {"name": "Mia"})

    answer = mia.world.admin.put(mia.path, {"name": "Not Mia"}, If_Match='"1"')

    assert code(answer) == (412, "precondition_failed")
    assert mia.world.admin.get(mia.path).json()["name"] == "Mia"


def test_if_match_on_somebody_unknown_creates_nobody(acme):
    """RFC 9110, 13.1.1: If-Match is false when there is no current representation."""
    answer = acme.admin.put("/v1/subjects/nobody", {}, If_Match='"1"')

    assert code(answer) == (412, "precondition_failed")
    assert acme.admin.get("/v1/subjects/nobody").status_code == 404


@pytest.mark.parametrize("tag", ["1", 'W/"1"', '"one"', '"1', '"1", "2"', ""])
def test_if_match_that_is_no_etag_of_ours_is_refused(mia, tag):
    answer = mia.world.admin.put(mia.path, {}, If_Match=tag)

    assert code(answer) == (400, "validation_failed")
    assert answer.json()["errors"][0]["pointer"] == "If-Match"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"email": "not an address"}, "/email"),
        ({"name": "x" * 201}, "/name"),
        ({"name": None}, "/name"),
        ({"locale": "german!"}, "/locale"),
        ({"time_zone": "Mars/Olympus"}, "/time_zone"),
        ({"age_band": "teenager"}, "/age_band"),
        ({"id": "00000000-0000-0000-0000-000000000000"}, "/id"),
        ({"external_id": "other"}, "/external_id"),
        ({"state": "erased"}, "/state"),
    ],
)
def test_malformed_account_is_named(acme, body, pointer):
    answer = acme.admin.put("/v1/subjects/mia", body)

    assert code(answer) == (400, "validation_failed")
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert acme.admin.get("/v1/subjects/mia").status_code == 404


def test_unknown_person_is_not_found(acme):
    assert code(acme.admin.get("/v1/subjects/nobody")) == (404, "not_found")


def test_account_is_sealed_in_the_table(acme, connect_as):
    acme.admin.put("/v1/subjects/mia-of-acme", ACCOUNT)

    with connect_as("fmn_backup") as connection:
        (row,) = connection.execute("SELECT s::text FROM accounts_subject s WHERE tenant_id = %s", [acme.id]).fetchone()
    assert "mia-of-acme" not in row
    assert "Example.com".casefold() not in row.casefold()
    for told in (b"mia-of-acme", b"Mia@Example.com", "Mia Ørsted".encode()):
        assert told.hex() not in row


def test_erased_person_is_gone_and_put_makes_a_new_one(mia):
    with scope(mia.world.id):
        Subject.objects.filter(id=mia.id).update(state="erased")
    assert code(mia.world.admin.get(mia.path)) == (410, "subject_erased")

    again = mia.world.admin.put(mia.path, {})

    assert again.status_code == 201
    assert again.json()["id"] != str(mia.id)
    assert mia.world.admin.get(mia.path).json()["id"] == again.json()["id"]


# --- ids --------------------------------------------------------------------------------------------------------------

IDS = [
    "user-123",
    "mia@example.com",
    "Zoë",
    "Zoe\u0308",  # the same to the eye, another id
    "李小龙",
    "🌼👩‍🚀",
    "with space",
    " leading",
    "trailing ",
    "..",
    ".",
    "a..b",
    "%2F",
    "%00",
    "%EF%BF%BD",
    "100%",
    "a+b&c=d?e#f;g",
    "'; DROP TABLE accounts_subject; --",
    "\u202eevil",
    "tab\tand\nline",
    "memories",
    "x" * 255,
    "é" * 127,
]


@pytest.mark.parametrize("external_id", IDS, ids=ascii)
def test_id_is_kept_byte_for_byte(acme, external_id):
    path = f"/v1/subjects/{quote(external_id, safe='')}"

    assert acme.admin.put(path, {"name": "N"}).status_code == 201

    assert acme.admin.get(path).json()["external_id"] == external_id
    assert [item["external_id"] for item in acme.admin.get("/v1/subjects").json()["items"]] == [external_id]
    assert acme.admin.put(path, {"name": "M"}).status_code == 200


def test_ids_that_look_alike_are_different_people(acme):
    for external_id in IDS:
        assert acme.admin.put(f"/v1/subjects/{quote(external_id, safe='')}", {}).status_code == 201

    listed = [item["external_id"] for item in acme.admin.get("/v1/subjects").json()["items"]]

    assert listed == IDS


@pytest.mark.parametrize("external_id", ["a\x00b", "\x00", "x" * 256, "é" * 128, "🌼" * 64], ids=ascii)
def test_id_with_nul_or_over_255_bytes_is_refused(acme, external_id):
    path = f"/v1/subjects/{quote(external_id, safe='')}"

    for answer in (acme.admin.put(path, {}), acme.admin.get(path), acme.agent.post(f"{path}/recall", {"query": "tea"})):
        assert code(answer) == (400, "validation_failed")
        assert answer.json()["errors"][0]["pointer"] == "external_id"


def test_id_cannot_hold_a_slash(acme):
    assert code(acme.admin.put("/v1/subjects/a/b", {})) == (404, "not_found")
    assert code(acme.admin.put("/v1/subjects/a%2Fb", {})) == (404, "not_found")
    assert code(acme.admin.put("/v1/subjects/", {})) == (404, "not_found")


# --- many -------------------------------------------------------------------------------------------------------------


def test_list_pages_stay_put_while_people_arrive(acme):
    before = [f"p{number}" for number in range(7)]
    for external_id in before:
        acme.person(external_id)

    seen, cursor = [], ""
    while cursor is not None:
        page = acme.admin.get(f"/v1/subjects?limit=3&cursor={cursor}" if cursor else "/v1/subjects?limit=3").json()
        seen += [item["external_id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if len(seen) == 3:
            acme.person("latecomer")

    assert seen == [*before, "latecomer"]


def test_list_of_nobody_is_empty(acme):
    assert acme.admin.get("/v1/subjects").json() == {"items": [], "next_cursor": None}


def test_last_full_page_has_no_next(acme):
    acme.person("a")
    acme.person("b")

    page = acme.admin.get("/v1/subjects?limit=2").json()

    assert len(page["items"]) == 2
    assert page["next_cursor"] is None


def test_list_leaves_out_the_erased_and_other_tenants(acme, zenith):
    gone = acme.person("gone")
    acme.person("here")
    with scope(acme.id):
        Subject.objects.filter(id=gone.id).update(state="erased")

    items = acme.admin.get("/v1/subjects").json()["items"]

    assert [item["external_id"] for item in items] == ["here"]
    assert set(items[0]) == {"id", "state", "version", "created_at", "updated_at", "external_id"}
    assert [item["external_id"] for item in zenith.admin.get("/v1/subjects").json()["items"]] == ["mia"]


def test_list_is_recorded_as_one_read(acme):
    acme.person("a")
    acme.person("b")
    acme.admin.get("/v1/subjects")

    events = acme.admin.get("/v1/audit/events?action=accounts.subject.listed").json()["items"]

    assert [event["counts"] for event in events] == [{"items": 2}]


# --- at the same moment -----------------------------------------------------------------------------------------------


def test_same_person_put_by_many_at_once_is_one_person(acme):
    for attempt in range(5):
        path = f"/v1/subjects/twin-{attempt}"

        answers = acme.at_once(*[lambda path=path: acme.admin.put(path, {"name": "Twin"})] * 6)

        statuses = sorted(answer.status_code for answer in answers)
        assert statuses.count(201) == 1
        assert set(statuses) <= {200, 201, 409}
        assert {answer.json()["code"] for answer in answers if answer.status_code == 409} <= {"conflict"}
        ids = {answer.json()["id"] for answer in answers if answer.status_code != 409}
        assert ids == {acme.admin.get(path).json()["id"]}
    with scope(acme.id):
        assert Subject.objects.count() == 5


def test_changes_at_once_each_count(mia):
    answers = mia.world.at_once(*[lambda: mia.world.admin.put(mia.path, {"name": "M"})] * 6)

    assert {answer.status_code for answer in answers} == {200}
    assert sorted(answer.json()["version"] for answer in answers) == [2, 3, 4, 5, 6, 7]


def test_only_one_of_many_changes_of_the_same_version_wins(mia):
    answers = mia.world.at_once(*[lambda: mia.world.admin.put(mia.path, {"name": "M"}, If_Match='"1"')] * 6)

    assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412, 412, 412]
