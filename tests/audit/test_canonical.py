import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.canonical import canonical_bytes, event_from_canonical, leaf_hash
from audit.errors import NotCanonical
from audit.types import Actor, Event

# Frozen: a verifier of any later version must find these bytes and hashes. A new format gets its own vectors.
FULL = (
    b'{"action":"audit.sample.read","actor":{"id":"0198c0de-0000-7000-8000-00000000a9e7","kind":"api_key",'
    b'"on_behalf_of":"abababababababababababababababababababababababababababababababab"},"at":1772600767890123,'
    b'"consent_refs":["0198c0de-0000-7000-8000-0000000000c1"],"counts":{"items":2,"tokens":0},"decision":"allowed",'
    b'"format":"fmn-audit-event/1","id":"0198c0de-1111-7222-8333-444455556666",'
    b'"purposes":["memory.store","memory.personalise"],"reason":"purpose_granted","request_id":"req_7-A",'
    b'"resource":{"ids":["0198c0de-0000-7000-8000-000000000003","0198c0de-0000-7000-8000-000000000002"],'
    b'"kind":"sample"},"result":"ok",'
    b'"subject_pseudonym":"abababababababababababababababababababababababababababababababab",'
    b'"tenant_id":"0198c0de-0000-7000-8000-000000000001"}'
)
FULL_LEAF = "198022d03d9ff8150d2aa65e061a4e83eb58a54b466c5643b5af2e6bda705bd2"
BARE = (
    b'{"action":"audit.sample.read","actor":{"id":"setup","kind":"system","on_behalf_of":""},"at":-1,'
    b'"consent_refs":[],"counts":{},"decision":"","format":"fmn-audit-event/1",'
    b'"id":"0198c0de-1111-7222-8333-444455556666","purposes":[],"reason":"","request_id":"",'
    b'"resource":{"ids":[],"kind":"sample"},"result":"ok","subject_pseudonym":"",'
    b'"tenant_id":"0198c0de-0000-7000-8000-000000000001"}'
)
BARE_LEAF = "3aef6965a9cfefca24fd6af0b8607c2dab153c309f066954c41a6c39b5c5685e"


@pytest.fixture
def bare_event(full_event):
    return replace(
        full_event,
        at=datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        actor=Actor("system", "setup"),
        resource_ids=(),
        subject_pseudonym="",
        purposes=(),
        consent_refs=(),
        decision="",
        reason="",
        request_id="",
        counts={},
    )


def test_the_full_vector(full_event):
    assert canonical_bytes(full_event) == FULL
    assert leaf_hash(FULL).hex() == FULL_LEAF
    assert event_from_canonical(FULL) == full_event


def test_the_bare_vector_with_a_time_before_1970(bare_event):
    assert canonical_bytes(bare_event) == BARE
    assert leaf_hash(BARE).hex() == BARE_LEAF
    assert event_from_canonical(BARE) == bare_event


def test_a_leaf_is_told_from_an_inner_node_and_from_a_plain_digest():
    assert leaf_hash(b"").hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"  # RFC 9162 2.1.1
    assert leaf_hash(FULL) != hashlib.sha256(FULL).digest()
    assert leaf_hash(FULL) != hashlib.sha256(b"\x01" + FULL).digest()


def test_the_order_counts_were_given_in_does_not_matter(full_event):
    assert canonical_bytes(replace(full_event, counts={"items": 2, "tokens": 0})) == FULL


def test_the_order_of_ids_does_matter(full_event):
    turned = replace(full_event, resource_ids=full_event.resource_ids[::-1])

    assert canonical_bytes(turned) != FULL


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff",
        FULL[:-1],
        FULL + b" ",
        FULL.replace(b'":"', b'": "', 1),
        FULL.replace(b"fmn-audit-event/1", b"fmn-audit-event/2"),
        FULL.replace(b'"result":"ok"', b'"result":"ok","extra":1'),
        FULL.replace(b'"reason":"purpose_granted",', b""),
        FULL.replace(b"purpose_granted", b"Mia said yes"),
        FULL.replace(b'"items":2', b'"items":2.0'),
        FULL.replace(b'"items":2', b'"items":NaN'),
        FULL.replace(b"1772600767890123", b"1e400"),
        FULL.replace(b"1772600767890123", b"9" * 30),
        FULL.replace(b"0198c0de-1111-7222-8333-444455556666", b"0198C0DE-1111-7222-8333-444455556666"),
    ],
)
def test_bytes_that_are_not_exactly_an_event_are_refused(data):
    with pytest.raises(NotCanonical):
        event_from_canonical(data)


ids = st.uuids()
ids_v7 = st.integers(0, 2**128 - 1).map(lambda n: UUID(int=n & ~(0xF << 76) & ~(0x3 << 62) | (0x7 << 76) | (0x2 << 62)))
codes = st.from_regex(r"[a-z_]{0,40}", fullmatch=True)
names = st.from_regex(r"[a-z][a-z_]{0,39}", fullmatch=True)
pseudonyms = st.from_regex(r"([0-9a-f]{32,64})?", fullmatch=True)
events = st.builds(
    Event,
    id=ids_v7,
    tenant_id=ids,
    at=st.datetimes(timezones=st.just(UTC)),
    actor=st.builds(Actor, kind=st.sampled_from(["user", "api_key"]), id=ids.map(str), on_behalf_of=pseudonyms),
    action=st.tuples(names, names, names).map(".".join),
    resource_kind=names,
    resource_ids=st.lists(ids, max_size=5).map(tuple),
    subject_pseudonym=pseudonyms,
    purposes=st.lists(names, max_size=3).map(tuple),
    consent_refs=st.lists(ids.map(str), max_size=3).map(tuple),
    decision=st.sampled_from(["", "allowed", "refused"]),
    reason=codes,
    request_id=st.from_regex(r"[A-Za-z0-9_-]{0,64}", fullmatch=True),
    counts=st.dictionaries(names, st.integers(0, 2**53 - 1), max_size=3),
    result=st.sampled_from(["ok", "refused", "failed"]),
)


@given(event=events)
def test_what_was_written_is_what_is_read(event):
    assert event_from_canonical(canonical_bytes(event)) == event


@given(event=events)
def test_the_form_is_sorted_compact_and_ascii(event):
    data = canonical_bytes(event)

    assert data.isascii()
    assert json.dumps(json.loads(data), sort_keys=True, separators=(",", ":")).encode() == data


@given(event=events, microseconds=st.integers(1, 10**6))
def test_a_microsecond_is_not_lost(event, microseconds):
    try:
        later = event.at + timedelta(microseconds=microseconds)
    except OverflowError:
        later = event.at - timedelta(microseconds=microseconds)

    assert canonical_bytes(replace(event, at=later)) != canonical_bytes(event)
