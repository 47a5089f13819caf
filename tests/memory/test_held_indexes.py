"""Indexes held in memory: bounded, and never more than what the database says at that moment."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts import keystore
from accounts.keys import NotGranted
from accounts.tenancy import narrow, scope
from consent.policy import decide
from consent.types import Act
from memory import index as sealed_index
from memory.segments import HeldIndexes, Index
from tests.memory.test_segments import made

FACT = "Mia keeps bees on the roof."


@pytest.fixture
def known(mia):
    """Somebody whose index is held, as it is after any recall."""
    mia.consents()
    mia.fact_id = mia.remembers(FACT)
    assert mia.texts("bees") == [FACT]
    assert is_held(mia)
    return mia


@pytest.fixture
def superuser(connect_as):
    with connect_as("postgres", autocommit=True) as connection:
        yield connection


def is_held(person):
    return (person.world.id, person.id) in sealed_index.held


def asked(person):
    answer = person.world.agent.post(f"{person.path}/recall", {"query": "bees"})
    return answer.status_code, answer.json()


# --- what the database says -------------------------------------------------------------------------------------------


def test_a_second_recall_fetches_no_body(known):
    with CaptureQueriesContext(connection) as captured:
        assert known.texts("bees") == [FACT]

    assert not any("body_sealed" in query["sql"] for query in captured)


def test_a_write_is_seen_at_once(known):
    known.remembers("Mia keeps bees in the garden.")

    assert len(known.texts("bees")) == 2


def test_what_is_forgotten_is_gone_at_once(known):
    assert known.world.agent.delete(f"{known.path}/memories/{known.fact_id}").status_code == 200

    assert known.texts("bees") == []
    assert not is_held(known)


def test_a_withdrawal_takes_effect_at_once(known):
    known.says("withdrawn")

    status, body = asked(known)

    assert (status, body["personal"]["code"], body["memories"]) == (200, "consent_withdrawn", [])
    with scope(known.world.id), narrow(known.id):
        refused = decide(known.ref_inside(), Act.RECALL, caller=known.world.principal)
        with pytest.raises(NotGranted):
            sealed_index.open_whole(refused)


def test_a_raised_epoch_ends_the_hold_at_once(known, superuser):
    """As erasure does it: the epoch in the row, the keys in the other database."""
    keystore.destroy_subject_keys(known.world.id, [known.id])
    superuser.execute("UPDATE accounts_subject SET key_epoch = key_epoch + 1 WHERE id = %s", [known.id])

    status, body = asked(known)

    assert (status, body["code"]) == (410, "key_destroyed")


def test_a_raised_epoch_alone_has_the_index_opened_anew(known, superuser):
    """As rotation does it: the keys are there, under another epoch."""
    superuser.execute("UPDATE accounts_subject SET key_epoch = key_epoch + 1 WHERE id = %s", [known.id])

    with CaptureQueriesContext(connection) as captured:
        assert known.texts("bees") == [FACT]

    assert any("body_sealed" in query["sql"] for query in captured)


def test_a_body_changed_in_place_is_noticed_though_the_index_is_held(known, superuser):
    changed = "UPDATE memory_indexsegment SET body_sealed = set_byte(body_sealed, 40, 255 - get_byte(body_sealed, 40))"
    superuser.execute(f"{changed} WHERE subject_id = %s", [known.id])

    status, body = asked(known)

    assert (status, body["code"]) == (500, "tag_mismatch")


def test_a_segment_taken_away_is_noticed_though_the_index_is_held(known, superuser):
    superuser.execute("DELETE FROM memory_indexsegment WHERE subject_id = %s", [known.id])

    status, body = asked(known)

    assert (status, body["code"]) == (500, "tag_mismatch")


# --- bounds -----------------------------------------------------------------------------------------------------------


def index_of(*numbers):
    return Index.of([made(number) for number in numbers])


def test_an_index_is_given_out_under_its_stamp_alone():
    held, index = HeldIndexes(), index_of(1)
    held.put("mia", "first", index)

    assert held.get("mia", "first") is index
    assert held.get("max", "first") is None
    assert held.get("mia", "second") is None
    assert "mia" not in held


def test_the_oldest_go_when_there_are_too_many_bytes():
    size = index_of(1).size_bytes
    held = HeldIndexes(most_bytes=3 * size)

    for number in range(1, 6):
        held.put(number, "", index_of(number))

    assert [number in held for number in range(1, 6)] == [False, False, True, True, True]


def test_an_index_larger_than_all_room_is_not_held_and_drives_nobody_out():
    held = HeldIndexes(most_bytes=index_of(1, 2).size_bytes)
    held.put("small", "", index_of(1))

    held.put("large", "", index_of(1, 2, 3))

    assert ("small" in held, "large" in held) == (True, False)


def test_an_index_put_again_counts_once():
    held = HeldIndexes(most_bytes=2 * index_of(1).size_bytes)
    held.put("other", "", index_of(1))

    for stamp in range(10):
        held.put("mia", stamp, index_of(1))

    assert ("other" in held, "mia" in held) == (True, True)


def test_an_index_is_held_for_no_longer_than_it_says():
    held = HeldIndexes(seconds=0.0)
    held.put("mia", "", index_of(1))

    assert held.get("mia", "") is None


def test_the_longest_an_index_is_held_is_a_minute():
    held, started = HeldIndexes(), time.monotonic()
    held.put("mia", "", index_of(1))

    assert held._by_owner["mia"].until <= started + 61


def test_many_threads_leave_the_count_right():
    held = HeldIndexes(most_bytes=5 * index_of(1).size_bytes)

    def work(number):
        for turn in range(200):
            held.put((number + turn) % 9, turn % 3, index_of(1))
            held.get(turn % 9, turn % 3)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))

    assert held._bytes == sum(each.bytes for each in held._by_owner.values()) <= 5 * index_of(1).size_bytes
