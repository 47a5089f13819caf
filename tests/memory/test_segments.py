"""The sealed index's bytes: what goes in comes out, and broken bytes are refused, never half read."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.segments import Entry, Index, SegmentCorrupt
from memory.types import Audience, Kind, SourceClass, State, StoredVector, TermVector

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def made(number: int, **changes) -> Entry:
    plain = Entry(
        id=UUID(int=number),
        kind=Kind.SEMANTIC,
        state=State.ACTIVE,
        source_class=SourceClass.PERSON,
        purpose=1,
        audience=Audience.PRIVATE,
        importance=0.5,
        confidence=1.0,
        created_at=NOON,
        content_version=1,
        token_count=7,
        terms=TermVector(np.array([3, 9], np.uint64), np.array([1, 2], np.uint16), 3),
        vectors={1: StoredVector(np.array([1, -127, 0, 5], np.int8), 0.5)},
    )
    return replace(plain, **changes)


FULL = made(
    2,
    kind=Kind.PROCEDURAL,
    state=State.SUPERSEDED,
    source_class=SourceClass.IMPORT,
    purpose=4,
    audience=Audience.SHARED_SETTING,
    importance=0.75,
    confidence=0.25,
    project_id=UUID(int=77),
    agent="scheduler ☂",
    session_id=UUID(int=78),
    confirmed=True,
    pinned=True,
    valid_from=NOON - timedelta(microseconds=1),
    valid_to=NOON + timedelta(days=400),
    superseded_at=NOON,
    expires_at=datetime(1969, 7, 20, tzinfo=UTC),
    confirmed_at=NOON,
    categories=("health", "family"),
    content_version=3,
    analyser_version=9,
    vectors={},
)

FROZEN = (
    "464d4e580101200000000000000000000000000000000000000100000000000000000000000000000002100200000001"
    "031102000000010312020000000107130200000001041402000000010215020000000003200200000001091608000000"
    "0000003f0000403f17080000000000803f0000803e18100000000010af35f54b06000010af35f54b0600191000000000"
    "00000000000080ff0faf35f54b06001a100000000000000000000080001035d6636b06001b1000000000000000000000"
    "800010af35f54b06001c10000000000000000000008000202fc408f3ffff1d1000000000000000000000800010af35f5"
    "4b06001e0800000001000000030000001f0800000007000000070000000208000000ffffffff00000000031000000000"
    "00000000000000000000000000004d0408000000ffffffff000000000515000000010000000d0000007363686564756c"
    "657220e298820608000000ffffffff0000000007100000000000000000000000000000000000004e3008000000020000"
    "000200000031200000000300000000000000090000000000000003000000000000000900000000000000320800000001"
    "000200010002003308000000030000000300000034080000000000000002000000350800000000000000010000003618"
    "0000000200000006000000060000006865616c746866616d696c7940140000000100040001000000000000000000003f"
    "018100057f0400000020000000"
)

times = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
unit = st.floats(0, 1, width=32)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@st.composite
def term_vectors(draw) -> TermVector:
    hashes = sorted(draw(st.sets(st.integers(0, 2**64 - 1), max_size=6)))
    counts = draw(st.lists(st.integers(1, 65535), min_size=len(hashes), max_size=len(hashes)))
    return TermVector(np.array(hashes, np.uint64), np.array(counts, np.uint16), draw(st.integers(0, 2**32 - 1)))


@st.composite
def vectors(draw) -> dict[int, StoredVector]:
    numbers = draw(st.sets(st.sampled_from([1, 2, 65535])))
    values = st.lists(st.integers(-127, 127), min_size=4, max_size=4)
    scales = st.floats(0, 1, width=32)
    return {each: StoredVector(np.array(draw(values), np.int8), draw(scales)) for each in numbers}


entries = st.builds(
    Entry,
    id=st.uuids(),
    kind=st.sampled_from(Kind),
    state=st.sampled_from(State),
    source_class=st.sampled_from(SourceClass),
    purpose=st.integers(0, 255),
    audience=st.sampled_from(Audience),
    importance=unit,
    confidence=unit,
    created_at=times,
    content_version=st.integers(0, 2**32 - 1),
    token_count=st.integers(0, 2**32 - 1),
    terms=term_vectors(),
    vectors=vectors(),
    project_id=st.none() | st.sampled_from([UUID(int=1), UUID(int=2)]),
    agent=st.none() | names,
    session_id=st.none() | st.uuids(),
    confirmed=st.booleans(),
    pinned=st.booleans(),
    valid_from=st.none() | times,
    valid_to=st.none() | times,
    superseded_at=st.none() | times,
    expires_at=st.none() | times,
    confirmed_at=st.none() | times,
    categories=st.lists(names, max_size=3).map(tuple),
    analyser_version=st.integers(0, 255),
)
many = st.lists(entries, max_size=3, unique_by=lambda entry: entry.id)


few_examples = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def entries_of(index: Index) -> list[Entry]:
    return [index.entry(position) for position in range(len(index))]


def test_every_field_survives():
    index = Index.decode([Index.of([made(1), FULL]).encode()])

    assert index.entry(0) == made(1)
    assert index.entry(1) == FULL


def test_the_bytes_are_those_of_format_one():
    """Sealed indexes written today are opened by every later version: this text may never change."""
    assert Index.of([made(1), FULL]).encode().hex() == FROZEN
    assert entries_of(Index.decode([bytes.fromhex(FROZEN)])) == [made(1), FULL]


@few_examples
@given(many)
def test_decoding_gives_what_was_encoded(given_entries):
    index = Index.of(given_entries)

    assert entries_of(index) == given_entries
    assert entries_of(Index.decode([index.encode()])) == given_entries


@few_examples
@given(many, st.data())
def test_any_split_into_segments_gives_the_same_index(given_entries, data):
    cut = data.draw(st.integers(0, len(given_entries)))
    blobs = [Index.of(given_entries[:cut]).encode(), Index.of(given_entries[cut:]).encode()]

    assert entries_of(Index.decode(blobs)) == given_entries
    assert Index.decode(blobs).encode() == Index.decode([Index.of(given_entries).encode()]).encode()


@few_examples
@given(many, st.data())
def test_without_leaves_the_others_as_they_were(given_entries, data):
    gone = data.draw(st.sets(st.sampled_from([each.id for each in given_entries]))) if given_entries else set()
    left = [each for each in given_entries if each.id not in gone]

    index = Index.of(given_entries).without(gone)

    assert entries_of(index) == left
    assert entries_of(Index.decode([index.encode()])) == left


@few_examples
@given(many.filter(bool), st.data())
def test_updated_changes_one_field_of_one_entry(given_entries, data):
    place = data.draw(st.integers(0, len(given_entries) - 1))
    changed = replace(given_entries[place], state=State.RESTRICTED, agent="other", vectors={})

    index = Index.of(given_entries).updated(given_entries[place].id, state=State.RESTRICTED, agent="other", vectors={})

    assert entries_of(index) == [*given_entries[:place], changed, *given_entries[place + 1 :]]


@few_examples
@given(many, st.data())
def test_take_gives_the_rows_in_the_order_asked_for(given_entries, data):
    rows = data.draw(st.permutations(range(len(given_entries))))[: data.draw(st.integers(0, 3))]

    assert entries_of(Index.of(given_entries).take(rows)) == [given_entries[row] for row in rows]


def test_a_cut_segment_is_refused_wherever_it_is_cut():
    blob = Index.of([made(1), FULL]).encode()

    for end in range(len(blob)):
        with pytest.raises(SegmentCorrupt):
            Index.decode([blob[:end]])


def test_a_flipped_bit_is_refused_or_changes_no_more_than_values():
    """Only values are left to the seal around the segment; shape, sets and tables are checked here."""
    blob = Index.of([made(1), FULL]).encode()
    opened = 0

    for bit in range(8 * len(blob)):
        flipped = bytearray(blob)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            index = Index.decode([bytes(flipped)])
        except SegmentCorrupt:
            continue
        opened += 1
        assert len(entries_of(index)) == 2
    assert 0 < opened < 0.7 * 8 * len(blob)


@given(st.binary(max_size=200))
def test_foreign_bytes_are_refused(blob):
    with pytest.raises(SegmentCorrupt):
        Index.decode([blob])


def block_starts(blob: bytes) -> list[int]:
    starts, at = [], 5
    while at < len(blob):
        starts.append(at)
        at += 5 + int.from_bytes(blob[at + 1 : at + 5], "little")
    return starts


def test_any_required_block_missing_is_refused():
    blob = Index.of([made(1), FULL]).encode()
    starts = [*block_starts(blob), len(blob)]

    for start, end in pairwise(starts):
        with pytest.raises(SegmentCorrupt):
            Index.decode([blob[:start] + blob[end:]])


def test_any_required_block_given_twice_is_refused():
    blob = Index.of([made(1), FULL]).encode()
    starts = [*block_starts(blob), len(blob)]

    for start, end in pairwise(starts):
        with pytest.raises(SegmentCorrupt):
            Index.decode([blob[:end] + blob[start:]])


def test_an_unknown_optional_block_is_skipped_and_a_required_one_refused():
    blob = Index.of([made(1)]).encode()

    assert entries_of(Index.decode([blob[:5] + b"\x80\x03\x00\x00\x00abc" + blob[5:]])) == [made(1)]
    with pytest.raises(SegmentCorrupt):
        Index.decode([blob[:5] + b"\x7e\x03\x00\x00\x00abc" + blob[5:]])


def test_a_later_format_is_refused():
    blob = bytearray(Index.of([made(1)]).encode())
    blob[4] = 2

    with pytest.raises(SegmentCorrupt):
        Index.decode([bytes(blob)])


def test_an_id_in_two_segments_is_refused():
    with pytest.raises(SegmentCorrupt):
        Index.decode([Index.of([made(1)]).encode(), Index.of([made(1, state=State.FORGOTTEN)]).encode()])


def test_ids_that_differ_only_in_their_first_half_are_different():
    index = Index.decode([Index.of([made(1), made(1 + 2**100)]).encode()])

    assert index.position(UUID(int=1 + 2**100)) == 1


def test_models_whose_vectors_differ_in_length_are_refused():
    short = made(2, vectors={1: StoredVector(np.array([1], np.int8), 1.0)})

    with pytest.raises(SegmentCorrupt):
        Index.decode([Index.of([made(1)]).encode(), Index.of([short]).encode()])


def test_nothing_decodes_to_an_empty_index():
    assert len(Index.decode([])) == 0
    assert len(Index.decode([Index.empty().encode()])) == 0


def test_position_of_a_stranger_is_none_and_updating_it_an_error():
    index = Index.of([made(1)])

    assert index.position(UUID(int=1)) == 0
    assert index.position(UUID(int=9)) is None
    with pytest.raises(KeyError):
        index.updated(UUID(int=9), pinned=True)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ([made(1), made(1)], ValueError),
        ([made(1, created_at=datetime(2026, 1, 1))], TypeError),  # noqa: DTZ001 - the point of the test
        ([made(1, token_count=2**32)], OverflowError),
        ([made(1, purpose=256)], OverflowError),
    ],
)
def test_entries_that_cannot_be_kept_are_refused(wrong, error):
    with pytest.raises(error):
        Index.of(wrong)


def test_forgetting_leaves_no_name_behind_in_the_bytes():
    index = Index.of([made(1), FULL]).without([FULL.id])

    assert b"scheduler" not in index.encode()
    assert b"health" not in index.encode()
    assert UUID(int=77).bytes not in index.encode()


def test_rows_can_be_asked_by_reference_and_category():
    index = Index.of([made(1), FULL, made(3, categories=("food",))])

    assert index.project.are(UUID(int=77)).tolist() == [False, True, False]
    assert index.project.are(None).tolist() == [True, False, True]
    assert index.agent.are("nobody").tolist() == [False, False, False]
    assert index.categories.have_any(frozenset({"food", "family"})).tolist() == [False, True, True]
