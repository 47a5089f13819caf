"""A task leaves with its transaction: never before the commit, never lost, at least once."""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from django.db import connections, transaction
from django.test import override_settings
from kombu.exceptions import OperationalError

from accounts.services.jobs import queue_job, send_later
from accounts.tasks import relay_outbox
from accounts.tenancy import narrow, scope
from accounts.usage import lossy_store
from config.celery import app
from tests.conftest import ROOT
from tests.served import Worker, eventually

TASK = "memory.tasks.embed_pending"


@pytest.fixture
def waiting(connect_as):
    """How many entries of a tenant wait in the outbox."""

    def count(world):
        with connect_as("postgres") as superuser:
            query = "SELECT count(*) FROM accounts_outboxentry WHERE tenant_id = %s"
            return superuser.execute(query, [world.id]).fetchone()[0]

    return count


@pytest.fixture
def sent(stack):
    """The messages about a tenant that lie with the broker: (task, keywords)."""

    def messages(world):
        with redis.Redis.from_url(stack.environment["REDIS_URL"]) as broker:
            found = [json.loads(raw) for raw in broker.lrange("work", 0, -1)]
        calls = [(each["headers"]["task"], json.loads(base64.b64decode(each["body"]))[1]) for each in found]
        return [(task, keywords) for task, keywords in calls if keywords.get("tenant_id") == str(world.id)]

    return messages


@pytest.fixture
def nothing_queued(connect_as, stack):
    """No work of other tests is left, in the outbox or with the broker: a worker's first task is this test's."""
    with (
        connect_as("postgres", autocommit=True) as superuser,
        redis.Redis.from_url(stack.environment["REDIS_URL"]) as broker,
    ):
        superuser.execute("DELETE FROM accounts_outboxentry")
        broker.flushdb()


@pytest.fixture
def no_valkey(stack):
    """Valkey as after a crash; started again at the end."""
    stack.services.valkey.kill()
    yield
    stack.services.start()
    lossy_store.cache_clear()


def leave(world, number=1):
    with scope(world.id):
        for _ in range(number):
            send_later(TASK)


# --- the transaction --------------------------------------------------------------------------------------------------


def test_an_entry_is_sent_once_with_its_ids_and_removed(mia, sent, waiting):
    with scope(mia.world.id), narrow(mia.id):
        send_later(TASK, memory_id=mia.id)
    assert (waiting(mia.world), sent(mia.world)) == (1, [])

    relay_outbox()
    relay_outbox()

    keywords = {"tenant_id": str(mia.world.id), "subject_id": str(mia.id), "memory_id": str(mia.id)}
    assert sent(mia.world) == [(TASK, keywords)]
    assert waiting(mia.world) == 0


def test_a_rolled_back_transaction_leaves_neither_job_nor_entry(acme, sent, waiting, connect_as):
    with scope(acme.id):
        queue_job("document", TASK, project_id=None)
        transaction.set_rollback(True)

    relay_outbox()

    assert (waiting(acme), sent(acme)) == (0, [])
    with connect_as("postgres") as superuser:
        assert superuser.execute("SELECT count(*) FROM accounts_job WHERE tenant_id = %s", [acme.id]).fetchone() == (0,)


def test_nothing_is_sent_before_the_commit(acme, sent, waiting):
    def relay():
        try:
            relay_outbox()
        finally:
            connections.close_all()

    with scope(acme.id):
        send_later(TASK)
        other = threading.Thread(target=relay)
        other.start()
        other.join()
        assert sent(acme) == []

    assert waiting(acme) == 1
    relay_outbox()
    assert len(sent(acme)) == 1


def test_the_relay_sees_the_outbox_of_every_tenant_and_nothing_else(acme, zenith, sent, waiting, connect_as):
    leave(acme)
    leave(zenith)

    relay_outbox()

    assert (len(sent(acme)), len(sent(zenith)), waiting(acme), waiting(zenith)) == (1, 1, 0, 0)
    with connect_as("fmn_relay") as relay:
        readable = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND "
        tables = relay.execute(readable + "has_table_privilege(oid, 'SELECT')").fetchall()
    assert tables == [("accounts_outboxentry",)]


# --- at least once ----------------------------------------------------------------------------------------------------

_KILLED_BEFORE_COMMIT = """
import os, signal, django
django.setup()
from django.db import transaction
from accounts.tasks import relay_outbox
with transaction.atomic(using="relay"):
    relay_outbox()
    print("sent", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_an_entry_sent_by_a_relay_that_died_before_its_commit_is_sent_again(acme, stack, sent, waiting):
    leave(acme)
    environment = stack.environment | {"DJANGO_SETTINGS_MODULE": "config.settings.base", "PYTHONPATH": str(ROOT)}

    died = subprocess.run(
        [sys.executable, "-c", _KILLED_BEFORE_COMMIT],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (died.returncode, died.stdout) == (-signal.SIGKILL, "sent\n")
    assert (waiting(acme), len(sent(acme))) == (1, 1)
    relay_outbox()
    assert (waiting(acme), len(sent(acme))) == (0, 2)


def test_what_another_relay_has_in_hand_is_passed_over(acme, sent, waiting, connect_as):
    leave(acme, 2)
    take = "SELECT id FROM accounts_outboxentry WHERE tenant_id = %s ORDER BY id LIMIT 1 FOR UPDATE"

    with connect_as("fmn_relay") as other:
        other.execute(take, [acme.id])
        relay_outbox()
        assert (waiting(acme), len(sent(acme))) == (1, 1)

    relay_outbox()
    assert (waiting(acme), len(sent(acme))) == (0, 2)


def test_two_relays_at_once_send_every_entry_once(acme, sent, waiting):
    leave(acme, 250)

    def relay(_):
        try:
            return relay_outbox()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(relay, range(2)))

    assert sum(counts) >= 250
    assert (waiting(acme), len(sent(acme))) == (0, 250)


def test_entries_stay_while_the_broker_is_down(acme, no_valkey, stack, sent, waiting):
    leave(acme)

    with pytest.raises(OperationalError):
        relay_outbox()
    assert waiting(acme) == 1

    stack.services.start()
    relay_outbox()
    assert (waiting(acme), len(sent(acme))) == (0, 1)


def test_a_write_does_not_fail_for_want_of_a_broker(mia, no_valkey, waiting):
    answer = mia.world.admin.post("/v1/knowledge/documents", {"name": "handbook", "text": "Doors open at nine."})

    assert (answer.status_code, answer.json()["job"]["state"]) == (202, "queued")
    assert waiting(mia.world) == 1


# --- a real worker ----------------------------------------------------------------------------------------------------


def job_of(world, job_id):
    answer = world.admin.get(f"/v1/jobs/{job_id}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def ingest(world, text, **facts):
    answer = world.admin.post("/v1/knowledge/documents", {"name": "handbook", "text": text} | facts)
    assert answer.status_code == 202, answer.content
    return answer.json()["job"]["id"]


def finished(world, job_id):
    job = job_of(world, job_id)
    return job if job["state"] in ("succeeded", "failed") else None


def found(world, query):
    answer = world.agent.post("/v1/knowledge/search", {"query": query})
    return [passage["text"] for passage in answer.json()["knowledge"]]


def test_a_worker_ingests_a_document_and_adds_missing_vectors(mia, stack, waiting):
    mia.consents()
    with override_settings(EMBEDDER="tests.served.HangingEmbedder", EMBEDDER_TIMEOUT_SECONDS=0.05):
        stored = mia.tries("Peanuts make Mia seriously ill.").json()
    assert (stored["memories"][0]["vector"], stored["degraded"]) == ("pending", ["embedder"])
    assert mia.texts("food allergy") == []

    with Worker(stack):
        job_id = ingest(mia.world, "The office doors open at nine. Visitors sign in at the front desk.")
        job = eventually(lambda: finished(mia.world, job_id))
        eventually(lambda: mia.texts("food allergy"))

    assert (job["state"], job["done"], job["total"], job["result"]["chunks"]) == ("succeeded", 1, 1, 1)
    assert found(mia.world, "when does the building open?") != []
    assert mia.texts("food allergy") == ["Peanuts make Mia seriously ill."]
    assert waiting(mia.world) == 0


def test_a_job_whose_worker_was_killed_is_finished_by_the_next(nothing_queued, acme, stack):
    """Its message comes back once the broker takes the worker for dead: after the visibility timeout."""
    with Worker(stack) as killed:
        job_id = ingest(acme, many_short_sections(), format="markdown")
        eventually(lambda: job_of(acme, job_id)["done"] > 0)
        killed.kill()
    assert job_of(acme, job_id)["state"] == "running"

    let_the_visibility_timeout_pass(stack)
    with Worker(stack):
        job = eventually(lambda: finished(acme, job_id), seconds=60)

    assert (job["state"], job["done"]) == ("succeeded", job["total"])
    assert found(acme, "Which rule speaks of room 7?") != []


def test_long_work_does_not_keep_the_relay_waiting(nothing_queued, acme, zenith, stack, waiting):
    with Worker(stack, EMBEDDER="tests.served.HangingEmbedder") as worker:
        job_id = ingest(acme, "The office doors open at nine.")
        eventually(lambda: job_of(acme, job_id)["state"] == "running")

        leave(zenith)

        eventually(lambda: waiting(zenith) == 0)
        assert job_of(acme, job_id)["state"] == "running"
        worker.kill()


def test_long_tasks_alone_are_in_the_queue_of_long_tasks():
    app.loader.import_default_modules()
    queues = {
        name: app.amqp.router.route({}, name)["queue"].name for name in app.tasks if not name.startswith("celery.")
    }

    assert {name for name, queue in queues.items() if queue == "work"} == {
        "memory.tasks.embed_pending",
        "memory.tasks.ingest_document",
    }
    assert {name for name, queue in queues.items() if queue == "system"} == {
        "accounts.tasks.record_refused_keys",
        "accounts.tasks.relay_outbox",
        "accounts.tasks.store_key_use",
        "accounts.tasks.sweep_nightly",
        "memory.tasks.embed_left_over",
        "memory.tasks.store_memory_use",
    }


def many_short_sections():
    """A document whose ingest takes seconds, in steps that are short each."""
    return "\n\n".join(f"# Rule {number}\n\nRoom {number} is cleaned in the morning." for number in range(1200))


def let_the_visibility_timeout_pass(stack):
    """Make what was handed to the killed worker an hour older."""
    with redis.Redis.from_url(stack.environment["REDIS_URL"]) as broker:
        for tag, _ in broker.zrange("unacked_index", 0, -1, withscores=True):
            broker.zincrby("unacked_index", -3601, tag)
