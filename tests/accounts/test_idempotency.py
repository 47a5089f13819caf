from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connections

from accounts.models import IdempotencyRecord
from accounts.services.idempotency import forget_old_records
from accounts.tenancy import ALL, scope

TEXT = {"text": "Mia plays the cello."}


@pytest.fixture
def known(mia):
    return mia.consents()


@pytest.fixture
def superuser(connect_as):
    with connect_as("postgres", autocommit=True) as connection:
        yield connection


def store(person, key, body=None):
    return person.world.agent.post(f"{person.path}/memories", body or TEXT, Idempotency_Key=key)


def records(world):
    with scope(world.id, ALL):
        return IdempotencyRecord.objects.count()


def replays(world):
    return world.admin.get("/v1/audit/events?action=accounts.request.replayed").json()["items"]


def assert_mismatch(answer):
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_mismatch")


# --- the same request ------------------------------------------------------------------------------------------------


def test_a_retry_is_answered_as_the_first_was_and_nothing_is_doubled(known):
    first = store(known, "key-1")
    again = store(known, "key-1")

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"
    assert known.listed() == [first.json()["memories"][0]["id"]]
    assert len(known.world.admin.get("/v1/audit/events?action=memory.memory.stored").json()["items"]) == 1


def test_a_replay_is_recorded(known):
    store(known, "key-1")
    assert replays(known.world) == []

    store(known, "key-1")

    assert [event["actor"]["id"] for event in replays(known.world)] == [str(known.world.key_ids["agent"])]


def test_a_replay_carries_the_headers_of_the_first_answer(acme):
    answers = [acme.admin.put("/v1/subjects/leo", {"name": "Leo"}, Idempotency_Key="key-1") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert [answer["ETag"] for answer in answers] == ['"1"', '"1"']
    assert answers[1]["Idempotency-Replayed"] == "true"
    assert acme.admin.get("/v1/subjects/leo").json()["version"] == 1


def test_without_a_key_every_request_is_a_new_one(known):
    for _ in range(2):
        assert known.world.agent.post(f"{known.path}/memories", TEXT).status_code == 201

    assert len(known.listed()) == 2
    assert records(known.world) == 0


def test_a_retry_after_the_memory_was_deleted_brings_nothing_back(known):
    first = store(known, "key-1").json()
    memory = f"{known.path}/memories/{first['memories'][0]['id']}"
    assert known.world.agent.delete(memory).status_code == 200

    again = store(known, "key-1")

    assert (again.status_code, again.json(), again["Idempotency-Replayed"]) == (201, first, "true")
    assert known.world.agent.get(memory).status_code == 404
    assert known.listed() == []


def test_deleting_twice_with_one_key_is_answered_alike(known):
    memory = f"{known.path}/memories/{known.remembers('Mia plays the cello.')}"

    answers = [known.world.agent.delete(memory, Idempotency_Key="key-1") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert known.world.agent.delete(memory, Idempotency_Key="key-2").status_code == 404


def test_eight_retries_at_once_store_one_memory(known):
    def attempt(_):
        try:
            return store(known, "key-1")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(attempt, range(8)))

    assert [answer.status_code for answer in answers] == [201] * 8
    assert len({answer.json()["memories"][0]["id"] for answer in answers}) == 1
    assert sum("Idempotency-Replayed" in answer for answer in answers) == 7
    assert len(known.listed()) == 1


def test_eight_requests_at_once_without_a_key_store_eight(known):
    """The control: it is the key that keeps them from being doubled."""

    def attempt(_):
        try:
            return known.world.agent.post(f"{known.path}/memories", TEXT).status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(attempt, range(8))) == [201] * 8

    assert len(known.listed()) == 8


# --- another request -------------------------------------------------------------------------------------------------


def test_another_body_under_the_same_key_is_refused(known):
    store(known, "key-1")

    assert_mismatch(store(known, "key-1", {"text": "Mia plays the flute."}))

    assert len(known.listed()) == 1


def test_the_same_body_for_another_person_is_refused(known):
    leo = known.world.person("leo").consents()
    store(known, "key-1")

    assert_mismatch(store(leo, "key-1"))

    assert leo.listed() == []


def test_another_method_under_the_same_key_is_refused(acme):
    acme.admin.put("/v1/profile-keys/food", {"schema": {}}, Idempotency_Key="key-1")

    assert_mismatch(acme.admin.post("/v1/projects", {"name": "food"}, Idempotency_Key="key-1"))


def test_another_query_string_is_another_request(known):
    known.world.admin.put("/v1/profile-keys/food", {"schema": {}})
    known.world.agent.put(f"{known.path}/profile/food", {"value": "rice"})
    project = known.world.project("kitchen")
    entry = f"{known.path}/profile/food"
    assert known.world.agent.delete(entry, Idempotency_Key="key-1").status_code == 200

    assert_mismatch(known.world.agent.delete(f"{entry}?project={project}", Idempotency_Key="key-1"))


def test_keys_belong_to_the_api_key_that_used_them(known):
    store(known, "key-1")

    other = known.world.admin.post(f"{known.path}/memories", TEXT, Idempotency_Key="key-1")

    assert other.status_code == 201
    assert "Idempotency-Replayed" not in other
    assert len(known.listed()) == 2


def test_another_tenant_may_use_the_same_key(known, zenith):
    store(known, "key-1")

    other = zenith.agent.post("/v1/subjects/mia/memories", TEXT, Idempotency_Key="key-1")

    assert other.status_code == 201
    assert "Idempotency-Replayed" not in other


# --- refusals --------------------------------------------------------------------------------------------------------


def test_a_refused_attempt_leaves_no_record_and_the_retry_is_done(mia):
    refused = store(mia, "key-1")
    assert (refused.status_code, refused.json()["code"]) == (403, "consent_required")
    assert records(mia.world) == 0

    mia.consents()
    retried = store(mia, "key-1")

    assert retried.status_code == 201
    assert "Idempotency-Replayed" not in retried


def test_an_attempt_that_was_not_valid_leaves_no_record(known):
    assert store(known, "key-1", {"text": ""}).status_code == 400
    assert records(known.world) == 0

    assert store(known, "key-1").status_code == 201


def test_a_withdrawal_stops_no_replay_and_no_replay_stores(known):
    """The first answer is a fact about the past; nothing is stored or shown by giving it again."""
    first = store(known, "key-1").json()
    known.says("withdrawn")

    assert store(known, "key-1").json() == first
    assert store(known, "key-2").json()["code"] == "consent_withdrawn"


@pytest.mark.parametrize(("key", "status"), [("k" * 255, 201), ("k" * 256, 400), ("tab\tkey", 400), ("ключ", 201)])
def test_a_key_is_up_to_255_printable_characters(known, key, status):
    answer = store(known, key)

    assert answer.status_code == status
    if status == 400:
        assert answer.json()["code"] == "validation_failed"
        assert [error["pointer"] for error in answer.json()["errors"]] == ["Idempotency-Key"]


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_neither_key_nor_content_is_kept(known, superuser):
    store(known, "order-of-mia-malone")

    row = superuser.execute(
        "SELECT to_jsonb(r)::text FROM accounts_idempotencyrecord r WHERE tenant_id = %s", [known.world.id]
    ).fetchone()[0]

    assert "malone" not in row
    assert b"malone".hex() not in row
    assert "cello" not in row


def test_a_record_is_kept_for_a_day(known, superuser):
    store(known, "key-1")

    def age(hours, minutes):
        moment = datetime.now(UTC) - timedelta(hours=hours, minutes=minutes)
        superuser.execute(
            "UPDATE accounts_idempotencyrecord SET created_at = %s WHERE tenant_id = %s", [moment, known.world.id]
        )
        with scope(known.world.id, ALL):
            return forget_old_records()

    assert age(23, 59) == 0
    assert "Idempotency-Replayed" in store(known, "key-1")
    assert age(24, 1) == 1
    assert "Idempotency-Replayed" not in store(known, "key-1")
    assert len(known.listed()) == 2
