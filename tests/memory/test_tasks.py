"""Background work of memory: what it opens, when it stops, and that doing it twice does no harm."""

import base64
import json

import numpy as np
import pytest
import redis
from django.test import override_settings

from accounts.tenancy import scope
from memory.embedding import EmbedderUnavailable
from memory.models import IndexSegment, Memory
from memory.tasks import EmbedderStillAway, embed_left_over, embed_pending, ingest_document
from tests.world import PURPOSES

AWAY = override_settings(EMBEDDER="tests.memory.test_tasks.AwayEmbedder")
RECORDING = override_settings(EMBEDDER="tests.memory.test_tasks.RecordingEmbedder")


class AwayEmbedder:
    """Stands for a model that cannot be had."""

    model_id, model_number, dimension, floor = "away", 1, 384, 0.2

    def encode(self, texts):
        raise EmbedderUnavailable("away")


class RecordingEmbedder:
    """Keeps what it is asked for, and lets a test do something while it is asked."""

    model_id, model_number, dimension, floor = "recording", 1, 384, 0.2
    asked: list[list[str]] = []
    meanwhile = staticmethod(lambda: None)

    def encode(self, texts):
        self.asked.append(list(texts))
        type(self).meanwhile()
        return np.eye(len(texts), self.dimension, dtype=np.float32)


@pytest.fixture
def asked():
    """What the recording embedder was asked for, batch by batch."""
    RecordingEmbedder.asked, RecordingEmbedder.meanwhile = [], staticmethod(lambda: None)
    with RECORDING:
        yield RecordingEmbedder.asked


@pytest.fixture
def mia(mia):
    return mia.consents(*PURPOSES, "memory.sensitive")


def waits(person, *texts, **facts):
    """Memories stored without a vector; their ids."""
    with AWAY:
        return [person.remembers(text, **facts) for text in texts]


def task_of(person):
    return {"tenant_id": str(person.world.id), "subject_id": str(person.id)}


def opened_batches(person):
    """The ids that the embedding opened, as the log names them, oldest batch first."""
    events = person.world.admin.get("/v1/audit/events?action=memory.memory.embedded").json()["items"]
    return [event["resource_ids"] for event in reversed(events)]


def pending(person):
    with scope(person.world.id, person.id):
        return sum(IndexSegment.objects.values_list("pending", flat=True))


# --- missing vectors --------------------------------------------------------------------------------------------------


def test_memories_are_opened_sixteen_at_a_time(mia, asked):
    ids = waits(mia, *[f"Mia has seen lighthouse number {number}." for number in range(40)])

    assert embed_pending(**task_of(mia)) == 40

    assert [len(batch) for batch in asked] == [16, 16, 8]
    batches = opened_batches(mia)
    assert [len(batch) for batch in batches] == [16, 16, 8]
    assert sorted(each for batch in batches for each in batch) == sorted(ids)
    assert pending(mia) == 0


def test_nothing_sensitive_is_opened_after_that_consent_was_withdrawn(mia, asked):
    (plain,) = waits(mia, "Mia collects stamps.")
    waits(mia, "Mia takes insulin.", categories=["health"])
    mia.says("withdrawn", "memory.sensitive")

    assert embed_pending(**task_of(mia)) == 1

    assert (opened_batches(mia), asked) == ([[plain]], [["Mia collects stamps."]])
    assert pending(mia) == 1


def test_sensitive_memory_gets_its_vector_with_the_consent(mia, asked):
    (sensitive,) = waits(mia, "Mia takes insulin.", categories=["health"])

    assert embed_pending(**task_of(mia)) == 1

    assert (opened_batches(mia), pending(mia)) == ([[sensitive]], 0)


def test_quarantined_memory_is_not_opened(mia, asked):
    waits(mia, "A web page says that Mia is a spy.", source="tool")

    assert embed_pending(**task_of(mia)) == 0

    assert (opened_batches(mia), asked, pending(mia)) == ([], [], 1)


def test_no_encoding_starts_after_a_withdrawal(mia, asked):
    waits(mia, *[f"Mia has seen lighthouse number {number}." for number in range(40)])
    RecordingEmbedder.meanwhile = staticmethod(lambda: mia.world.at_once(lambda: mia.says("withdrawn", *PURPOSES)))

    assert embed_pending(**task_of(mia)) == 0

    assert [len(batch) for batch in asked] == [16]
    assert [len(batch) for batch in opened_batches(mia)] == [16]
    assert pending(mia) == 40


def test_vector_of_a_sensitive_memory_is_not_stored_after_its_consent_went(mia, asked):
    waits(mia, "Mia takes insulin.", categories=["health"])
    RecordingEmbedder.meanwhile = staticmethod(
        lambda: mia.world.at_once(lambda: mia.says("withdrawn", "memory.sensitive"))
    )

    assert embed_pending(**task_of(mia)) == 0

    assert pending(mia) == 1


def test_what_cannot_be_stored_is_tried_once(mia, asked):
    """It is changed while it is encoded: a run that opened it again would find its envelope broken."""
    (memory_id,) = waits(mia, "Mia collects stamps.")

    def change():
        with scope(mia.world.id, mia.id):
            Memory.objects.filter(id=memory_id).update(content_version=2)

    RecordingEmbedder.meanwhile = staticmethod(lambda: mia.world.at_once(change))

    assert embed_pending(**task_of(mia)) == 0

    assert (asked, pending(mia)) == ([["Mia collects stamps."]], 1)


def test_embedder_that_is_away_has_the_task_tried_again(mia):
    waits(mia, "Mia collects stamps.")

    with AWAY, pytest.raises(EmbedderStillAway):
        embed_pending(**task_of(mia))

    assert pending(mia) == 1


# --- what is left over ------------------------------------------------------------------------------------------------


@pytest.fixture
def sent(stack):
    """How often the task of a person lies with the broker."""

    def count(person):
        with redis.Redis.from_url(stack.environment["REDIS_URL"]) as broker:
            messages = [json.loads(raw) for raw in broker.lrange("work", 0, -1)]
        calls = [json.loads(base64.b64decode(each["body"]))[1] for each in messages]
        return calls.count(task_of(person))

    return count


def test_person_left_over_is_sent_once_and_rests(mia, sent):
    waits(mia, "A web page says that Mia is a spy.", source="tool")

    for _ in range(3):
        embed_left_over()
        embed_pending(**task_of(mia))

    assert sent(mia) == 1


def test_person_rests_for_six_hours_at_most(mia, stack):
    waits(mia, "A web page says that Mia is a spy.", source="tool")

    embed_left_over()

    with redis.Redis.from_url(stack.environment["REDIS_URL"]) as store:
        assert 0 < store.ttl(f"fmn:embedding-asked:{mia.world.id}:{mia.id}") <= 6 * 60 * 60


def test_person_whose_index_changed_is_sent_again(mia, sent):
    waits(mia, "A web page says that Mia is a spy.", source="tool")
    embed_left_over()

    waits(mia, "Mia collects stamps.")
    embed_left_over()

    assert sent(mia) == 2


def test_person_is_sent_again_when_the_embedder_was_away(mia, sent):
    waits(mia, "Mia collects stamps.")
    embed_left_over()

    with AWAY, pytest.raises(EmbedderStillAway):
        embed_pending(**task_of(mia))
    embed_left_over()

    assert sent(mia) == 2


def test_one_run_sends_a_bounded_number_and_the_next_goes_on(acme, sent, monkeypatch):
    embed_left_over()  # so that nobody else is due
    people = [acme.person(name).consents() for name in ("ida", "leo", "max")]
    for person in people:
        waits(person, "Likes tea.")
    monkeypatch.setattr("memory.tasks.PEOPLE_AT_ONCE", 2)

    rounds = [(embed_left_over(), sum(map(sent, people))) for _ in range(3)]

    assert rounds == [(2, 2), (1, 3), (0, 3)]


# --- documents --------------------------------------------------------------------------------------------------------


def job(world, stored):
    return world.agent.get(f"/v1/jobs/{stored['job']['id']}").json()


def document(world, stored):
    return world.agent.get(f"/v1/knowledge/documents/{stored['id']}").json()


def found(world, query):
    answer = world.agent.post("/v1/knowledge/search", {"query": query})
    assert answer.status_code == 200, answer.json()
    return [(passage["id"], passage["text"]) for passage in answer.json()["knowledge"]]


def ingest_arguments(world, stored):
    return {"tenant_id": str(world.id), "document_id": stored["id"], "job_id": stored["job"]["id"]}


def fragments(count):
    return "\n\n".join(f"# Rule {number}\n\nRoom {number}." for number in range(count))


def test_task_handed_out_again_does_nothing_to_a_document_that_is_in(acme, asked):
    stored = acme.stores("handbook", "Bees live on the roof.")
    acme.takes_in(stored)
    ended, passages = job(acme, stored), found(acme, "bees")
    asked.clear()

    acme.takes_in(stored)

    assert asked == []
    assert (job(acme, stored), ended["state"]) == (ended, "succeeded")
    assert found(acme, "bees") == passages
    assert [text for _, text in passages] == ["Bees live on the roof."]


def test_task_handed_out_again_and_failing_does_not_undo_its_end(acme, asked):
    stored = acme.stores("handbook", "Bees live on the roof.")
    acme.takes_in(stored)
    ended = job(acme, stored)

    ingest_document.on_failure(EmbedderStillAway(), "again", (), ingest_arguments(acme, stored), None)

    assert job(acme, stored) == ended
    assert document(acme, stored)["state"] == "ready"


def test_failed_job_stays_failed_when_its_task_is_handed_out_again(acme, asked):
    stored = acme.stores("handbook", "Bees live on the roof.")
    ingest_document.on_failure(EmbedderStillAway(), "last", (), ingest_arguments(acme, stored), None)
    ended = job(acme, stored)

    acme.takes_in(stored)

    assert (ended["state"], ended["message"]) == ("failed", "embedder_unavailable")
    assert job(acme, stored) == ended
    assert document(acme, stored)["state"] == "ready"


def test_each_job_of_a_document_replaced_while_queued_ends(acme, asked):
    first = acme.stores("handbook", "Bees live on the roof.")
    second = acme.stores("handbook", "Bees live in the garden.")

    acme.takes_in(first)
    asked.clear()
    acme.takes_in(second)

    assert asked == []
    for stored in (first, second):
        ended = job(acme, stored)
        assert ended["state"] == "succeeded"
        assert ended["result"] == {"document_id": first["id"], "chunks": 1, "version": 2}


def test_document_in_too_many_pieces_fails_before_anything_is_embedded(acme, asked):
    acme.knows("handbook", "Bees live on the roof.")
    asked.clear()
    stored = acme.stores("handbook", fragments(2001), format="markdown")

    acme.takes_in(stored)

    assert asked == []
    assert (job(acme, stored)["state"], job(acme, stored)["message"]) == ("failed", "document_too_fragmented")
    assert document(acme, stored)["state"] == "failed"
    assert [text for _, text in found(acme, "bees roof")] == ["Bees live on the roof."]


def test_document_of_two_thousand_pieces_is_taken_in(acme, asked):
    stored = acme.stores("rules", fragments(2000), format="markdown")

    acme.takes_in(stored)

    assert job(acme, stored)["result"]["chunks"] == job(acme, stored)["done"] == 2000


def test_postings_count_the_words_of_their_own_chunk(acme, asked, connect_as):
    acme.knows("handbook", "# One\n\nBees, bees, bees.\n\n# Two\n\nHoney, honey.", format="markdown")

    with connect_as("fmn_backup") as backup:
        most = backup.execute(
            "SELECT c.position, max(p.frequency) FROM memory_posting p JOIN memory_chunk c ON c.id = p.chunk_id"
            " WHERE p.tenant_id = %s GROUP BY 1 ORDER BY 1",
            [acme.id],
        ).fetchall()

    assert most == [(0, 3), (1, 2)]
