"""Formats are frozen here: a literal may be added for a new format, and none may ever be changed."""

import hashlib
import hmac
from dataclasses import replace
from uuid import UUID

import pytest
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from accounts.crypto import (
    Binding,
    EnvelopeBroken,
    KeyUse,
    blind_index,
    derive,
    envelope_key_id,
    keyed_digest,
    new_key,
    open_envelope,
    pseudonym,
    seal_envelope,
    wrap_context,
)
from accounts.rootkey import LocalRootKey, RootKeyUnavailable

KEY = bytes(range(32))
TENANT = UUID("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b")
SUBJECT = UUID("0190a1b2-c3d5-7111-9222-333344445555")
ROW = UUID("0190a1b2-c3d6-7aaa-8bbb-ccccddddeeee")
KEY_ID = UUID("0190a1b2-c3d7-7000-8000-0000000000ff")
PLACE = Binding(TENANT, SUBJECT, table=4, row_id=ROW, field=1, version=7, use=KeyUse.CONTENT)

ASSOCIATED = bytes.fromhex(
    "0101"  # format 1
    "100190a1b2c3d47e5f8a9b0c1d2e3f4a5b"  # tenant
    "100190a1b2c3d571119222333344445555"  # person
    "020004"  # table
    "100190a1b2c3d67aaa8bbbccccddddeeee"  # row
    "020001"  # field
    "080000000000000007"  # content version
    "0101"  # key use
)
ASSOCIATED_OF_TENANT = bytes.fromhex(
    "0101100190a1b2c3d47e5f8a9b0c1d2e3f4a5b1000000000000000000000000000000000020201"
    "100190a1b2c3d67aaa8bbbccccddddeeee0201020800000100000000030103"
)
ENVELOPE = bytes.fromhex(
    "01010190a1b2c3d7700080000000000000ffa0a1a2a3a4a5a6a7a8a9aaabab711d0d2cb871cb420ee2ba691fe09b02c837d32ec43109b2"
    "c71d30b17d5760e1e84194ca92571fe7"
)
ROOT_WRAPPED = bytes.fromhex(
    "01014daab8ad781c56ca80b8192ccded6518a0a1a2a3a4a5a6a7a8a9aaabcd24b1b796cefb7cc21349a003246816d7771055df06b1a7e3"
    "d11dac0dd24ebda3f4d9787af4ee5df9c81b01ea74362f"
)
TENANT_WRAPPED = bytes.fromhex(
    "01010190a1b2c3d7700080000000000000ffa0a1a2a3a4a5a6a7a8a9aaab98794854a04123f638a1c7dbc0ad50ad78adc178e675e2c9e2"
    "6df9fdd45976e5cbef5632e44dce9c1b508f0535082ed4"
)
UNDER_SUBJECT_KEY = bytes.fromhex(
    "01010190a1b2c3d8700080000000000000aaa0a1a2a3a4a5a6a7a8a9aaabd1fb671509f5ae600298e74711544fb3355b45d1ed38b45b91"
    "a3fbd01e5490d61162e13ad63bbf14cff8967ecba6"
)
ROOT_KEY_TEXT = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="  # base64 of KEY


# --- frozen -------------------------------------------------------------------------------------------------------


def test_associated_data_is_frozen():
    assert PLACE.associated_data() == ASSOCIATED


def test_associated_data_without_a_person_is_frozen():
    place = Binding(TENANT, None, table=513, row_id=ROW, field=258, version=2**40 + 3, use=KeyUse.TENANT)

    assert place.associated_data() == ASSOCIATED_OF_TENANT


def test_envelope_sealed_once_opens_for_ever():
    assert open_envelope(ENVELOPE, key=KEY, associated_data=ASSOCIATED) == "Mia isst keine Erdnüsse.".encode()
    assert envelope_key_id(ENVELOPE) == KEY_ID


def test_every_level_of_the_hierarchy_opens_what_it_sealed_once():
    root = derive(KEY, "root-wrap")
    of_tenant = wrap_context(tenant_id=TENANT, subject_id=None, kind="tenant", version=1)
    of_subject = wrap_context(tenant_id=TENANT, subject_id=SUBJECT, kind="subject", version=3)

    tenant_key = open_envelope(ROOT_WRAPPED, key=root, associated_data=of_tenant)
    subject_key = open_envelope(TENANT_WRAPPED, key=derive(tenant_key, "wrap"), associated_data=of_subject)
    content = open_envelope(UNDER_SUBJECT_KEY, key=derive(subject_key, "content"), associated_data=ASSOCIATED)

    assert tenant_key == bytes(range(100, 132))
    assert subject_key == bytes(range(150, 182))
    assert content == '{"text": "Mia mag Grünkohl."}'.encode()


def test_the_local_root_key_unwraps_what_it_wrapped_once():
    of_tenant = wrap_context(tenant_id=TENANT, subject_id=None, kind="tenant", version=1)

    with override_settings(READ_ROOT_KEY=lambda: ROOT_KEY_TEXT):
        assert LocalRootKey().unwrap(ROOT_WRAPPED, of_tenant) == bytes(range(100, 132))


def test_wrap_context_is_frozen():
    of_person = wrap_context(tenant_id=TENANT, subject_id=SUBJECT, kind="subject_audit", version=12)
    of_tenant = wrap_context(tenant_id=TENANT, subject_id=None, kind="tenant", version=1)

    assert of_person.hex() == (
        "666d6e2d777261702f317c0190a1b2c3d47e5f8a9b0c1d2e3f4a5b7c0190a1b2c3d571119222333344445555"
        "7c7375626a6563745f61756469747c3132"
    )
    assert of_tenant.hex() == (
        "666d6e2d777261702f317c0190a1b2c3d47e5f8a9b0c1d2e3f4a5b7c000000000000000000000000000000007c74656e616e747c31"
    )


@pytest.mark.parametrize(
    ("label", "derived"),
    [
        ("content", "c25c9095a32936e38cc34ff8165d5278ceceea78ade06e4ef709c3078f2dd817"),
        ("index", "50d58662f29d88cd02da99bdbbd61ba82cd4f1759d752f8fe4bce4a273ff5f84"),
        ("tenant-content", "42d0782415ba6b4b2264ee7413eef7f4dd275ea638f580b0c0fdddd43139caf2"),
        ("terms", "1c7b06b99eed6f776cb37e48dc3c221cae90f3b6c8e36ee25ebc8c948f53feb4"),
        ("wrap", "56d17124508cac52f5f3276f91a5320428068efc92448afbef5f3502a496cfcd"),
        ("proof", "6053fd39002e91a9194498f6586c6e65f4269b24ec1fd0394a46a193e1d33d4a"),
        ("list", "f957816e5517fa9d24da137f90f1074eb13e0c4abfc4e1717db2c3a28bc39b36"),
        ("root-wrap", "e421bab1dc0b5280c1d3a9908e1934b6b8c619dbda7f979bc32ac0ae68822203"),
        ("root-id", "4daab8ad781c56ca80b8192ccded6518afa1354d6188d27e2e425227d96b3134"),
    ],
)
def test_derived_keys_are_frozen(label, derived):
    assert derive(KEY, label).hex() == derived


def test_keyed_digest_is_frozen():
    digest = keyed_digest(KEY, b"ab", b"", b"c")

    assert digest.hex() == "64d220681a669f90b6b937a0999e2b3382de24ebca288381e0894770fdec25bb"


def test_blind_index_is_frozen():
    index = blind_index(KEY, "subject.external_id", "müller/é".encode())

    assert index.hex() == "36919e432af6e9d76977b2868e79091c"


def test_pseudonym_is_frozen():
    assert pseudonym(KEY, SUBJECT) == "b933e08f7ddde0e98b18f5229ba2c3af"


def test_key_uses_keep_their_numbers():
    assert {use.name: use.value for use in KeyUse} == {"CONTENT": 1, "INDEX": 2, "TENANT": 3, "PROOF": 4}


# --- rules --------------------------------------------------------------------------------------------------------


@given(key=st.binary(min_size=32, max_size=32), label=st.sampled_from(["content", "index", "wrap", "terms"]))
def test_derivation_is_rfc_5869_with_sha256(key, label):
    extracted = hmac.digest(bytes(32), key, hashlib.sha256)
    expanded = hmac.digest(extracted, f"fmn/1/{label}".encode() + b"\x01", hashlib.sha256)

    assert derive(key, label) == expanded


@given(plaintext=st.binary(max_size=500), associated=st.binary(max_size=200))
def test_what_was_sealed_opens(plaintext, associated):
    envelope = seal_envelope(plaintext, key=KEY, key_id=KEY_ID, associated_data=associated)

    assert len(envelope) == 30 + len(plaintext) + 16
    assert open_envelope(envelope, key=KEY, associated_data=associated) == plaintext


@given(bit=st.integers(min_value=0, max_value=len(ENVELOPE) * 8 - 1))
def test_no_bit_of_an_envelope_can_be_flipped(bit):
    altered = bytearray(ENVELOPE)
    altered[bit // 8] ^= 1 << (bit % 8)

    with pytest.raises(EnvelopeBroken):
        open_envelope(bytes(altered), key=KEY, associated_data=ASSOCIATED)


@given(length=st.integers(min_value=0, max_value=len(ENVELOPE) - 1))
def test_an_envelope_cut_anywhere_does_not_open(length):
    with pytest.raises(EnvelopeBroken):
        open_envelope(ENVELOPE[:length], key=KEY, associated_data=ASSOCIATED)


@given(tail=st.binary(min_size=1, max_size=40))
def test_an_envelope_with_something_appended_does_not_open(tail):
    with pytest.raises(EnvelopeBroken):
        open_envelope(ENVELOPE + tail, key=KEY, associated_data=ASSOCIATED)


@pytest.mark.parametrize(
    "change",
    [
        {"tenant_id": SUBJECT},
        {"subject_id": TENANT},
        {"subject_id": None},
        {"table": 5},
        {"row_id": KEY_ID},
        {"field": 2},
        {"version": 8},
        {"version": 6},
        {"use": KeyUse.INDEX},
    ],
)
def test_an_envelope_opens_in_its_own_place_only(change):
    elsewhere = replace(PLACE, **change)

    with pytest.raises(EnvelopeBroken):
        open_envelope(ENVELOPE, key=KEY, associated_data=elsewhere.associated_data())


def test_an_envelope_does_not_open_with_another_key():
    with pytest.raises(EnvelopeBroken):
        open_envelope(ENVELOPE, key=bytes(32), associated_data=ASSOCIATED)


_BINDINGS = st.builds(
    Binding,
    tenant_id=st.uuids(),
    subject_id=st.none() | st.uuids(),
    table=st.integers(0, 65535),
    row_id=st.uuids(),
    field=st.integers(0, 65535),
    version=st.integers(0, 2**64 - 1),
    use=st.sampled_from(KeyUse),
)


@given(one=_BINDINGS, other=_BINDINGS)
def test_two_places_never_share_associated_data(one, other):
    assert (one.associated_data() == other.associated_data()) == (one == other)


@given(one=st.lists(st.binary(max_size=6), max_size=4), other=st.lists(st.binary(max_size=6), max_size=4))
def test_parts_of_a_digest_cannot_be_shifted_into_each_other(one, other):
    assert (keyed_digest(KEY, *one) == keyed_digest(KEY, *other)) == (one == other)


def test_the_same_plaintext_is_never_sealed_alike():
    sealed = {seal_envelope(b"yes", key=KEY, key_id=KEY_ID, associated_data=b"") for _ in range(200)}

    assert len({envelope[18:30] for envelope in sealed}) == 200


def test_new_keys_are_256_bits_and_differ():
    keys = {new_key() for _ in range(200)}

    assert len(keys) == 200
    assert {len(key) for key in keys} == {32}


def test_another_root_key_unwraps_nothing():
    of_tenant = wrap_context(tenant_id=TENANT, subject_id=None, kind="tenant", version=1)

    with override_settings(READ_ROOT_KEY=lambda: "A" * 43 + "="), pytest.raises(RootKeyUnavailable):
        LocalRootKey().unwrap(ROOT_WRAPPED, of_tenant)


def test_a_wrapped_key_does_not_unwrap_in_another_context():
    elsewhere = wrap_context(tenant_id=SUBJECT, subject_id=None, kind="tenant", version=1)

    with override_settings(READ_ROOT_KEY=lambda: ROOT_KEY_TEXT), pytest.raises(RootKeyUnavailable):
        LocalRootKey().unwrap(ROOT_WRAPPED, elsewhere)
