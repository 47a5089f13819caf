"""The sealed index in the database: few segments whatever is written, and nothing lost by writers at once."""

import itertools

import pytest

from accounts.tenancy import narrow, scope
from consent.policy import decide
from consent.types import Act
from memory import index as sealed_index
from memory.models import IndexSegment, Memory
from memory.services.remembering import NewMemory, remember


@pytest.fixture
def mia(mia):
    return mia.consents()


def store(person, *texts):
    """Through the service without vectors: what is measured here is the index, not the model."""
    with scope(person.world.id), narrow(person.id):
        news = [NewMemory(text) for text in texts]
        stored = remember(person.ref_inside(), news, None, principal=person.world.principal, project_id=None)
    return [each.id for each in stored]


def sizes(person):
    with scope(person.world.id), narrow(person.id):
        return list(IndexSegment.objects.order_by("id").values_list("entries", flat=True))


def indexed(person):
    """The ids in the segments as they lie there, repeats included."""
    with scope(person.world.id), narrow(person.id):
        decision = decide(person.ref_inside(), Act.LIST, caller=person.world.principal)
        segments = sealed_index.open_segments(decision)
    return [segment.index.id_at(row) for segment in segments for row in range(len(segment.index))]


def kept(person):
    with scope(person.world.id), narrow(person.id):
        return set(Memory.objects.values_list("id", flat=True))


def assert_whole(person, expected):
    found = indexed(person)
    assert len(found) == len(set(found))
    assert set(found) == set(expected) == kept(person)


def test_fifteen_writes_are_fifteen_segments_and_the_sixteenth_merges_them(mia):
    ids = [store(mia, f"Fact {n}.")[0] for n in range(15)]
    assert sizes(mia) == [1] * 15

    ids += store(mia, "Fact 15.")

    assert sizes(mia) == [16]
    assert_whole(mia, ids)


def test_hundreds_of_writes_lie_in_few_segments(mia):
    ids, most = [], 0
    for number in range(300):
        ids += store(mia, f"Fact {number}.")
        most = max(most, len(sizes(mia))) if number % 8 == 7 else most

    # 300 = 1 merge of 16 x 16, then 2 x 16, then 12 single ones.
    assert sorted(sizes(mia), reverse=True) == [256, 16, 16] + [1] * 12
    assert most <= 31  # at most 15 of each of the two small classes, and the large one
    assert_whole(mia, ids)


def test_batch_of_a_hundred_is_one_segment(mia):
    ids = store(mia, *(f"Fact {number}." for number in range(100)))

    assert sizes(mia) == [100]
    assert_whole(mia, ids)


def test_batches_merge_into_large_segments(mia):
    ids = list(itertools.chain.from_iterable(store(mia, *(f"{b}-{n}" for n in range(100))) for b in range(17)))

    assert sizes(mia) == [1600, 100]
    assert_whole(mia, ids)


def test_segments_of_two_people_are_never_merged(mia):
    other = mia.world.person("max").consents()
    of_mia, of_max = [], []
    for number in range(10):
        of_mia += store(mia, f"Mia {number}.")
        of_max += store(other, f"Max {number}.")

    assert (sizes(mia), sizes(other)) == ([1] * 10, [1] * 10)
    assert_whole(mia, of_mia)
    assert_whole(other, of_max)


def test_writers_of_one_person_at_once_lose_nothing(mia):
    def write(writer):
        return [memory for n in range(12) for memory in store(mia, f"Writer {writer}, fact {n}.")]

    results = mia.world.at_once(*[lambda w=w: write(w) for w in range(8)])

    ids = list(itertools.chain.from_iterable(results))
    assert len(ids) == 96
    assert_whole(mia, ids)
    assert sizes(mia) == [16] * 6


def test_forgetting_while_others_write_loses_nothing_else(mia):
    doomed = store(mia, *(f"Doomed {n}." for n in range(20))) + [store(mia, f"Single {n}.")[0] for n in range(10)]

    def forget(some):
        return [mia.world.agent.delete(f"{mia.path}/memories/{each}").status_code for each in some]

    def write(writer):
        return [memory for n in range(10) for memory in store(mia, f"Writer {writer}, fact {n}.")]

    results = mia.world.at_once(
        lambda: forget(doomed[::2]), lambda: forget(doomed[1::2]), *[lambda w=w: write(w) for w in range(4)]
    )

    assert results[0] + results[1] == [200] * 30
    assert_whole(mia, itertools.chain.from_iterable(results[2:]))


def test_forgetting_the_same_memory_at_once_succeeds_once(mia):
    (memory,) = store(mia, "Fact.")
    delete = [lambda: mia.world.agent.delete(f"{mia.path}/memories/{memory}").status_code]

    assert sorted(mia.world.at_once(*delete * 6)) == [200, 404, 404, 404, 404, 404]


def test_replacing_the_same_memory_at_once_succeeds_once(mia):
    (old,) = store(mia, "Mia lives in Berlin.")
    replace = [lambda n=n: mia.tries(f"Mia lives in city {n}.", supersedes=[str(old)]).status_code for n in range(6)]

    statuses = sorted(mia.world.at_once(*replace))

    assert statuses == [201, 409, 409, 409, 409, 409]
    assert len(mia.listed()) == 1
    assert_whole(mia, kept(mia))


def test_recall_while_others_write_and_forget_is_always_whole(mia):
    keeper = mia.remembers("Mia keeps bees on the roof.")
    doomed = [str(each) for each in store(mia, *(f"Doomed bees {n}." for n in range(20)))]

    def forget():
        return [mia.world.agent.delete(f"{mia.path}/memories/{each}").status_code for each in doomed]

    def read():
        answers = [mia.world.agent.post(f"{mia.path}/recall", {"query": "bees", "limit": 50}) for _ in range(15)]
        return [(a.status_code, keeper in {m["id"] for m in a.json().get("memories", [])}) for a in answers]

    results = mia.world.at_once(forget, read, read, lambda: [store(mia, f"New bees {n}.") for n in range(15)])

    assert results[0] == [200] * 20
    assert results[1] + results[2] == [(200, True)] * 30


def test_every_change_of_the_index_raises_its_version(mia):
    before = mia.ref().index_version
    (memory,) = store(mia, "Fact.")
    written = mia.ref().index_version

    mia.world.agent.delete(f"{mia.path}/memories/{memory}")

    assert before < written < mia.ref().index_version
