"""What a real server process answers while something it needs is away, and that it recovers by itself."""

import http.client
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import connections

from accounts.usage import lossy_store
from memory.tasks import ingest_document
from tests.served import Server, Worker, eventually

FACT = "Mia keeps the spare key under the blue flowerpot."
QUESTION = {"query": "where is the spare key?"}
NO_ANSWER = (OSError, http.client.HTTPException)


@pytest.fixture
def server(stack):
    """It waits a second for a database, not three, so that these tests end sooner."""
    with Server(stack, DATABASE_POOL_SECONDS="1") as server:
        yield server


@pytest.fixture
def patient_server(stack):
    """With the waiting time it has by default."""
    with Server(stack) as server:
        yield server


@pytest.fixture
def known(mia):
    mia.consents()
    mia.memory_id = mia.remembers(FACT)
    return mia


@pytest.fixture
def superuser(connect_as):
    with connect_as("postgres", "postgres", autocommit=True) as connection:
        yield connection


@pytest.fixture
def data(connect_as):
    """The superuser in the data database."""
    with connect_as("postgres", autocommit=True) as connection:
        yield connection


class Doors:
    """What an agent asks of one person through a server."""

    def __init__(self, server, person):
        self.agent = server.as_key(person.world.keys["agent"])
        self.relay = server.as_key(person.world.keys["relay"])
        self.path = person.path

    def recall(self, **headers):
        return self.agent.post(f"{self.path}/recall", QUESTION, **headers)

    def list(self):
        return self.agent.get(f"{self.path}/memories")

    def consents(self, **headers):
        return self.relay.get(f"{self.path}/consents", **headers)

    def write(self, text="Mia has a sister in Lyon."):
        return self.agent.post(f"{self.path}/memories", {"text": text})

    def texts(self, query):
        answer = self.agent.post(f"{self.path}/recall", {"query": query})
        return [memory["text"] for memory in answer.json()["memories"]]


def assert_nothing_said(*answers):
    assert not any(b"flowerpot" in answer.content for answer in answers)


# --- killed between the audit event and the answer --------------------------------------------------------------------


def kill_between(server, data, ask, *, hold):
    """The events of a request whose server dies after the entry is committed and before anything is opened or sent.

    `hold` takes a lock on what the handler reads only after the commit of its entry, so it stops exactly there.
    """
    before = [event_id for (event_id,) in data.execute("SELECT id FROM audit_event").fetchall()]
    answers = []

    def attempt():
        try:
            answers.append(ask())
        except NO_ANSWER:
            answers.append(None)

    def entered():
        return data.execute("SELECT action, resource_ids FROM audit_event WHERE id <> ALL(%s)", [before]).fetchall()

    with data.transaction():
        data.execute(hold)
        asking = threading.Thread(target=attempt)
        asking.start()
        eventually(entered)
        assert answers == []
        server.kill()
        asking.join()
    assert answers == [None]
    return entered()


def test_a_recall_killed_before_its_answer_stands_in_the_log(known, server, data):
    """A long passage lies in the TOAST table, which ranking does not touch and opening does: its index is held."""
    chunk_id = long_passage(known.world, data)
    doors = Doors(server, known)
    assert [passage["id"] for passage in doors.recall().json()["knowledge"]] == [str(chunk_id)]
    toast = "SELECT reltoastrelid::regclass::text FROM pg_class WHERE oid = 'memory_chunk'::regclass"
    table = data.execute(toast).fetchone()[0]

    events = kill_between(server, data, doors.recall, hold=f"REINDEX TABLE {table}")

    assert [action for action, _ in events] == ["memory.recall.answered"]
    assert {str(each) for each in events[0][1]} == {known.memory_id, str(chunk_id)}


def long_passage(world, data):
    text = "The spare key of the office is kept at the front desk."
    stored = world.admin.post("/v1/knowledge/documents", {"name": "keys", "text": text}).json()
    ingest_document(tenant_id=str(world.id), document_id=stored["id"], job_id=stored["job"]["id"])
    longer = "text || (SELECT string_agg(md5(n::text), ' ') FROM generate_series(1, 500) n)"
    changed = f"UPDATE memory_chunk SET text = {longer} WHERE document_id = %s RETURNING id"
    return data.execute(changed, [stored["id"]]).fetchone()[0]


# --- the audit log away -----------------------------------------------------------------------------------------------


@contextmanager
def audit_away(superuser):
    superuser.execute("ALTER ROLE fmn_audit NOLOGIN")
    superuser.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'fmn_audit'")
    connections["audit"].close()
    try:
        yield
    finally:
        superuser.execute("ALTER ROLE fmn_audit LOGIN")


def test_nothing_is_read_while_the_audit_log_cannot_be_written(known, server, superuser):
    doors = Doors(server, known)
    assert (doors.recall().outcome, doors.list().outcome) == ((200, None), (200, None))

    with audit_away(superuser):
        answers = [doors.recall(), doors.list(), doors.consents()]
        health = server.health()

    assert [answer.outcome for answer in answers] == [(503, "audit_unavailable")] * 3
    assert_nothing_said(*answers)
    assert max(answer.seconds for answer in answers) < 3
    assert health == (503, "unavailable")
    eventually(lambda: doors.recall().status_code == 200, seconds=3)
    assert doors.list().status_code == 200
    assert server.health() == (200, "ok")


def test_writes_and_refusals_stand_while_the_audit_log_cannot_be_written(known, server, superuser, data):
    """A change is entered in its own transaction; a no needs no entry to stay a no."""
    doors = Doors(server, known)
    stranger = Doors(server, known.world.person("leo"))

    with audit_away(superuser):
        written, refused = doors.write(), stranger.write()
        scopeless = doors.agent.get("/v1/audit/events")

    assert written.status_code == 201
    assert refused.outcome == (403, "consent_required")
    assert scopeless.outcome == (403, "scope_missing")
    stored = "SELECT resource_ids FROM audit_event WHERE tenant_id = %s AND action = 'memory.memory.stored'"
    entries = {str(each) for (ids,) in data.execute(stored, [known.world.id]).fetchall() for each in ids}
    assert written.json()["memories"][0]["id"] in entries


# --- the keys away ----------------------------------------------------------------------------------------------------


@contextmanager
def keys_away(superuser):
    superuser.execute("ALTER DATABASE forgetmenot_keys ALLOW_CONNECTIONS false")
    superuser.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'forgetmenot_keys'")
    connections["keys"].close()
    try:
        yield
    finally:
        superuser.execute("ALTER DATABASE forgetmenot_keys ALLOW_CONNECTIONS true")


def test_a_cached_key_serves_while_the_keys_are_away_and_a_fresh_process_has_none(known, server, stack, superuser):
    warm = Doors(server, known)
    assert warm.recall().status_code == 200

    with keys_away(superuser):
        answers = [warm.recall(), warm.list(), warm.write()]
        health = server.health()
    assert [answer.status_code for answer in answers] == [200, 200, 201]
    assert health == (200, "degraded")

    with Server(stack, DATABASE_POOL_SECONDS="1") as fresh:
        cold = Doors(fresh, known)
        with keys_away(superuser):
            refused = [cold.recall(), cold.list(), cold.write()]
        assert [answer.outcome for answer in refused] == [(503, "key_unavailable")] * 3
        assert_nothing_said(*refused)
        assert max(answer.seconds for answer in refused) < 3
        eventually(lambda: cold.recall().status_code == 200, seconds=10)


def test_nobody_is_made_known_without_a_place_for_their_key(known, server, superuser, data):
    """Keys first: no person's row is ever written whose key is not."""
    admin = server.as_key(known.world.keys["admin"])
    assert admin.get("/v1/subjects/leo").status_code == 404

    with keys_away(superuser):
        refused = admin.put("/v1/subjects/leo", {"name": "Leo"})

    assert refused.outcome == (503, "key_unavailable")
    count = "SELECT count(*) FROM accounts_subject WHERE tenant_id = %s"
    assert data.execute(count, [known.world.id]).fetchone() == (1,)
    eventually(lambda: admin.put("/v1/subjects/leo", {"name": "Leo"}).status_code == 201, seconds=10)


# --- Valkey away ------------------------------------------------------------------------------------------------------


@pytest.fixture
def valkey_restored(stack):
    yield stack.services.valkey
    stack.services.start()
    lossy_store.cache_clear()


def test_without_valkey_everything_works_and_says_what_is_missing(known, server, valkey_restored, stack):
    doors = Doors(server, known)
    assert doors.recall().json()["degraded"] == []

    valkey_restored.kill()
    answers = [doors.recall(), doors.list(), doors.write(), doors.consents(), doors.recall()]

    assert [answer.status_code for answer in answers] == [200, 200, 201, 200, 200]
    assert (answers[0].json()["degraded"], answers[-1].json()["degraded"]) == (["usage"], ["usage"])
    assert max(answer.seconds for answer in answers) < 1
    assert server.health() == (200, "degraded")

    stack.services.start()
    eventually(lambda: doors.recall().json()["degraded"] == [], seconds=10)
    assert server.health() == (200, "ok")


# --- PostgreSQL away --------------------------------------------------------------------------------------------------


@pytest.fixture
def postgres_restored(stack):
    yield stack.services.postgres
    stack.services.start()
    for connection in connections.all():
        connection.close()
        connection.close_pool()


def test_without_its_database_the_server_says_so_in_time_and_comes_back(
    known, patient_server, postgres_restored, stack
):
    doors = Doors(patient_server, known)
    assert doors.recall().status_code == 200

    postgres_restored.kill()
    answers = [doors.recall(), doors.write(), doors.list()]

    assert [answer.outcome for answer in answers] == [(503, "database_unavailable")] * 3
    assert_nothing_said(*answers)
    assert max(answer.seconds for answer in answers) < 4

    stack.services.start()
    eventually(lambda: doors.recall().status_code == 200, seconds=3)
    assert [doors.list().status_code, doors.write().status_code] == [200, 201]
    assert patient_server.health() == (200, "ok")


def test_health_answers_in_time_without_its_database(patient_server, postgres_restored):
    postgres_restored.kill()

    started = time.monotonic()
    health = patient_server.health()

    assert health == (503, "unavailable")
    assert time.monotonic() - started < 4


def test_a_restart_of_the_database_costs_no_request(known, patient_server, postgres_restored, stack):
    """Its idle connections are dead afterwards; they are found out when taken from the pool, before they are used."""
    doors = Doors(patient_server, known)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: doors.recall().status_code, range(6))) == [200] * 6
        postgres_restored.kill()
        stack.services.start()

        assert list(pool.map(lambda _: doors.recall().status_code, range(6))) == [200] * 6


def test_what_was_answered_201_is_there_after_a_crash_of_the_database(known, server, postgres_restored, stack):
    doors = Doors(server, known)
    written = doors.write("Mia has a sister in Lyon.").json()["memories"][0]["id"]

    postgres_restored.kill()
    stack.services.start()

    listed = eventually(lambda: items(doors.list()), seconds=15)
    assert {item["id"] for item in listed} == {written, known.memory_id}


def items(answer):
    return answer.json().get("items")


# --- the embedder away ------------------------------------------------------------------------------------------------

HANGING = {"EMBEDDER": "tests.served.HangingEmbedder", "EMBEDDER_TIMEOUT_SECONDS": "1"}


def test_a_hung_embedder_costs_the_meaning_and_not_the_answer(known, stack):
    with Server(stack, **HANGING) as server:
        doors = Doors(server, known)

        first, second = doors.recall(), doors.recall()

    for answer in (first, second):
        assert (answer.status_code, answer.json()["degraded"]) == (200, ["embedder"])
        assert [memory["text"] for memory in answer.json()["memories"]] == [FACT]
    assert 1 <= first.seconds < 2
    assert second.seconds < 1  # the call that hangs is not waited for twice


def test_what_is_written_meanwhile_is_found_by_words_and_gets_its_vector_later(known, stack):
    with Server(stack, **HANGING) as server:
        doors = Doors(server, known)
        stored = doors.write("Peanuts make Mia seriously ill.")
        assert (stored.status_code, stored.json()["degraded"]) == (201, ["embedder"])
        assert stored.json()["memories"][0]["vector"] == "pending"
        assert doors.texts("peanuts") == ["Peanuts make Mia seriously ill."]
        assert doors.texts("food allergy") == []
    assert known.texts("food allergy") == []

    with Worker(stack):
        eventually(lambda: known.texts("food allergy"), seconds=30)

    assert known.texts("food allergy") == ["Peanuts make Mia seriously ill."]
    assert known.recall("food allergy")["degraded"] == []
