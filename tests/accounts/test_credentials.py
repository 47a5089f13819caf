import string
import zlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.credentials import ClaimedKey, key_digest, make_key, parse_key
from accounts.models import ApiKey
from accounts.services.credentials import revoke_api_key
from accounts.tenancy import scope
from accounts.types import Mode
from tests.world import TEST_ACTOR, Rest

# Frozen: keys are in customers' configurations.
TENANT = UUID("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b")
FROZEN = "fmn_live_02x5WlL3bRI7WJsw0Y1MYl_0123456789ABCDEFGHIJabcdefghij01_1IdqbG"
FROZEN_DIGEST = "0dbf75a59418c8c5e21e23581369e5b0ab4c673f40f39ca21d0115338e63b278"


def test_a_key_made_once_is_understood_for_ever():
    assert parse_key(FROZEN) == ClaimedKey(Mode.LIVE, TENANT, bytes.fromhex(FROZEN_DIGEST))


def test_the_digest_kept_of_a_key_is_frozen():
    assert key_digest(FROZEN).hex() == FROZEN_DIGEST


@given(mode=st.sampled_from(Mode), number=st.integers(0, 2**128 - 1))
def test_a_made_key_names_its_mode_and_tenant(mode, number):
    claimed = parse_key(make_key(mode, UUID(int=number)))

    assert claimed is not None
    assert (claimed.mode, claimed.tenant_id.int) == (mode, number)


@given(place=st.integers(0, len(FROZEN) - 1), character=st.sampled_from("0AZaz_-é\n"))
def test_a_key_with_one_character_changed_is_no_key(place, character):
    typo = FROZEN[:place] + character + FROZEN[place + 1 :]

    assert (parse_key(typo) is not None) == (typo == FROZEN)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fmn_",
        FROZEN[:-1],
        FROZEN + "0",
        FROZEN + "\n",
        " " + FROZEN,
        FROZEN.upper(),
        FROZEN.replace("live", "test"),
        "fmn_live_zzzzzzzzzzzzzzzzzzzzzz_0123456789ABCDEFGHIJabcdefghij01_1IdqbG",
    ],
)
def test_what_we_could_not_have_made_is_no_key(text):
    assert parse_key(text) is None


def test_keys_never_repeat_their_secret():
    secrets = {make_key(Mode.SANDBOX, TENANT).split("_")[3] for _ in range(200)}

    assert len(secrets) == 200
    assert {len(secret) for secret in secrets} == {32}


def with_checksum(body):
    """The checksum is no secret: anybody can write one that fits."""
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = (string.digits + string.ascii_uppercase + string.ascii_lowercase)[digit] + digits
    return f"{body}_{digits}"


# --- over the API -------------------------------------------------------------------------------------------------


def test_only_the_digest_of_a_key_is_kept(acme, connect_as):
    with connect_as("postgres") as superuser:
        row = superuser.execute(
            "SELECT to_jsonb(k)::text, digest FROM accounts_apikey k WHERE id = %s", [acme.key_ids["agent"]]
        ).fetchone()

    assert row[1] == key_digest(acme.keys["agent"])
    assert acme.keys["agent"].split("_")[3] not in row[0]


def test_a_key_claiming_another_tenant_opens_nothing(acme, zenith):
    _, mode, _, secret, _ = acme.keys["agent"].split("_")
    tenant = zenith.keys["agent"].split("_")[2]
    forged = with_checksum(f"fmn_{mode}_{tenant}_{secret}")

    answer = Rest(forged).get("/v1/purposes")

    assert parse_key(forged) is not None
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_a_key_claiming_the_other_mode_opens_nothing(acme):
    forged = with_checksum(acme.keys["agent"].rpartition("_")[0].replace("sandbox", "live"))

    answer = Rest(forged).get("/v1/purposes")

    assert parse_key(forged) is not None
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_a_revoked_key_opens_nothing_from_the_commit_on(acme):
    assert acme.agent.get("/v1/purposes").status_code == 200

    with scope(acme.id):
        revoke_api_key(acme.key_ids["agent"], actor=TEST_ACTOR)

    answer = acme.agent.get("/v1/purposes")
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer["WWW-Authenticate"] == 'Bearer realm="forget-me-not"'


def test_revoking_twice_keeps_the_first_time(acme):
    with scope(acme.id):
        revoke_api_key(acme.key_ids["agent"], actor=TEST_ACTOR)
        first = ApiKey.objects.get(id=acme.key_ids["agent"]).revoked_at
    with scope(acme.id):
        revoke_api_key(acme.key_ids["agent"], actor=TEST_ACTOR)
        again = ApiKey.objects.get(id=acme.key_ids["agent"]).revoked_at

    assert first is not None
    assert again == first
