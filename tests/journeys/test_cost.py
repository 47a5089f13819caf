"""What a recall costs the databases: exactly counted, and the same for ten memories and for a thousand."""

from contextlib import ExitStack

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from accounts import keystore
from memory.tasks import ingest_document

QUESTION = {"query": "which instrument does she play?", "limit": 5}
ALIASES = ("default", "audit", "keys", "relay")
INSTRUMENTS = ("cello", "flute", "harp", "oboe", "viola", "lute", "organ", "horn", "tuba", "drum")


@pytest.fixture
def known(mia):
    return mia.consents()


def fill(person, number):
    """Load so many memories, a hundred a request as a caller would."""
    texts = [
        f"On day {each} Mia practised piece {each * 7} on the {INSTRUMENTS[each % 10]} in room {each % 40}."
        for each in range(number)
    ]
    for start in range(0, number, 100):
        items = [{"text": text} for text in texts[start : start + 100]]
        answer = person.world.agent.post(f"{person.path}/memories", {"items": items})
        assert answer.status_code == 201, answer.content


def recall(person):
    answer = person.world.agent.post(f"{person.path}/recall", QUESTION)
    assert (answer.status_code, answer.json()["degraded"]) == (200, [])
    return answer.json()


def statements(person):
    """Every statement of one recall, by alias; BEGIN and COMMIT count."""
    with ExitStack() as stack:
        captured = {alias: stack.enter_context(CaptureQueriesContext(connections[alias])) for alias in ALIASES}
        recall(person)
    return {alias: [query["sql"] for query in found.captured_queries] for alias, found in captured.items()}


def counted(found):
    return {alias: len(sql) for alias, sql in found.items()}


def listed(found):
    return "\n".join(f"{alias}: {' '.join(sql.split())[:150]}" for alias, each in found.items() for sql in each)


# --- statements -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [10, 1000])
def test_a_recall_does_the_same_statements_whatever_there_is(known, number):
    """With the keys in the cache, as they are but once a minute."""
    fill(known, number)
    assert len(recall(known)["memories"]) == 5

    found = statements(known)

    assert counted(found) == {"default": 11, "audit": 1, "keys": 0, "relay": 0}, listed(found)


def test_a_recall_writes_nothing_but_its_entry(known):
    fill(known, 10)

    found = statements(known)

    assert {sql.split()[0] for sql in found["default"]} == {"BEGIN", "SELECT", "WITH", "COMMIT"}
    assert not any(" FOR UPDATE" in sql or " FOR NO KEY" in sql for sql in found["default"])
    assert [sql.split("(")[0] for sql in found["audit"]] == ["INSERT INTO audit_event "]


def test_opening_passages_is_one_statement_more(known):
    fill(known, 10)
    text = "Every instrument she may play is listed in the music room."
    stored = known.world.admin.post("/v1/knowledge/documents", {"name": "music", "text": text}).json()
    ingest_document(tenant_id=str(known.world.id), document_id=stored["id"], job_id=stored["job"]["id"])
    assert len(recall(known)["knowledge"]) == 1

    found = statements(known)

    assert counted(found) == {"default": 12, "audit": 1, "keys": 0, "relay": 0}, listed(found)


def test_keys_that_are_not_in_the_cache_are_two_short_transactions_more(known):
    """The tenant's and the person's: BEGIN, scope, SELECT, COMMIT each."""
    fill(known, 10)
    keystore.cache.clear()

    found = statements(known)

    assert counted(found) == {"default": 11, "audit": 1, "keys": 8, "relay": 0}, listed(found)


# --- fsync ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def fsyncs(connect_as):
    """How often requests have waited for the disk since the last call: fsyncs of WAL by client backends."""
    query = "SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal' AND backend_type = 'client backend'"
    before = 0

    def since():
        nonlocal before
        for alias in ALIASES:
            with connections[alias].cursor() as cursor:
                cursor.execute("SELECT pg_stat_force_next_flush()")
        with connect_as("postgres") as superuser:
            total = superuser.execute(query).fetchone()[0]
        before, new = total, total - before
        return new

    since()
    return since


def test_a_recall_waits_for_the_disk_once(known, fsyncs):
    fill(known, 1000)
    recall(known)
    fsyncs()

    recall(known)
    assert fsyncs() == 1

    for _ in range(5):
        recall(known)
    assert fsyncs() == 5


def test_what_is_counted_is_what_is_written(known, fsyncs):
    """The control: nothing for a request that records nothing, two for a person whose key is written first."""
    fsyncs()

    assert known.world.agent.get("/v1/purposes").status_code == 200
    assert fsyncs() == 0

    known.world.person("leo")
    assert fsyncs() == 2
