"""Keys that are none: one answer for all of them, word for word, so that nobody learns how near they were."""

from datetime import UTC, datetime, timedelta

import pytest

from accounts.credentials import PassKind, make_key, make_pass
from accounts.scopes import Scope
from accounts.services.credentials import revoke_api_key
from accounts.tenancy import scope
from accounts.types import Mode
from tests.world import TEST_ACTOR, Rest, open_world


@pytest.fixture(scope="module")
def acme():
    acme = open_world("Acme")
    acme.person("mia")
    return acme


@pytest.fixture(scope="module")
def refused(acme):
    """Every kind of key that is not in force."""
    acme.key("expired", set(Scope), expires_at=datetime.now(UTC) - timedelta(seconds=1))
    acme.key("revoked", set(Scope))
    with scope(acme.id):
        revoke_api_key(acme.key_ids["revoked"], actor=TEST_ACTOR)
    good = acme.keys["admin"]
    return {
        "none": "",
        "blank": "   ",
        "word": "nonsense",
        "long": "fmn_sandbox_" + "x" * 60_000,
        "cut off": good[:-1],
        "one more": f"{good}0",
        "checksum broken": good[:-6] + "000000",
        "upper case": good.upper(),
        "of another mode": good.replace("sandbox", "live"),
        "two in one": f"{good} {good}",
        "quoted": f'"{good}"',
        "with a line end": f"{good}%0a",
        "never made": make_key(Mode.SANDBOX, acme.id),
        "of no tenant": make_key(Mode.SANDBOX, acme.key_ids["admin"]),
        "a person's link": make_pass(PassKind.LINK, acme.id, acme.id),
        "a person's visit": make_pass(PassKind.VISIT, acme.id, acme.id),
        "a tenant beyond all ids": f"fmn_sandbox_{'z' * 22}_{'0' * 32}_000000",
        "its own digest": "0" * 64,
        "SQL": "' OR 1=1 --",
        "not ASCII": "fmn_sändbox",
        "expired": acme.keys["expired"],
        "revoked": acme.keys["revoked"],
    }


def told(answer):
    body = {name: value for name, value in answer.json().items() if name != "request_id"}
    headers = {name: value for name, value in answer.headers.items() if name != "X-Request-Id"}
    return answer.status_code, headers, body


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/subjects/mia", None),
        ("GET", "/v1/subjects/nobody", None),
        ("POST", "/v1/subjects/mia/memories", {"text": "x"}),
        ("POST", "/v1/subjects/mia/memories", {"wrong": "x"}),
        ("POST", "/v1/subjects/mia/recall", "not JSON"),
        ("PATCH", "/v1/subjects/mia", {}),
        ("GET", "/v1/subjects?limit=wrong", None),
    ],
    ids=str,
)
def test_every_key_that_is_none_gets_the_same_answer(refused, method, path, body):
    answers = {name: told(Rest(key).call(method, path, body)) for name, key in refused.items()}

    first = answers["none"]
    assert (first[0], first[2]["code"]) == (401, "unauthenticated")
    assert answers == dict.fromkeys(answers, first)


def test_answer_repeats_nothing_of_the_key(refused):
    for key in filter(str.strip, refused.values()):
        answer = Rest(key).get("/v1/subjects")

        assert key.strip()[:20].encode() not in answer.content
        assert key.strip()[:20] not in str(answer.headers)
