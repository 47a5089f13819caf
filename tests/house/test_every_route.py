"""Every address by method by actor gets what the matrix in `permissions.py` says: that it is whole, and REST's part."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import uuid4

import pytest

from accounts.credentials import make_key
from accounts.scopes import Scope
from accounts.services.credentials import revoke_api_key
from accounts.tenancy import scope
from tests.house.filled import expect
from tests.house.permissions import OPEN_ROWS, PAGE_ROWS, REQUESTS, REST_ROWS, without_rows
from tests.house.routes import routes
from tests.world import TEST_ACTOR, Rest, World, open_world

EVERY_ROW = REST_ROWS + OPEN_ROWS + PAGE_ROWS
WITH_BODY = ("POST", "PUT", "PATCH")
REFUSED = dict.fromkeys(REST_ROWS[0].expected, 405) | {"keyless": 401}


# --- the matrix is whole ----------------------------------------------------------------------------------------------


def test_every_route_has_a_row_and_every_row_a_route():
    assert {row.path for row in EVERY_ROW} == {route.path for route in routes()}


def test_every_method_a_rest_view_declares_has_a_row():
    declared = {(method, route.path) for route in routes() for method in route.declared_methods}

    assert declared == {(row.method, row.path) for row in REST_ROWS if row.method != "HEAD"}


def test_every_request_belongs_to_a_row():
    assert set(REQUESTS) == {str(row) for row in REST_ROWS if row.method in WITH_BODY}


# --- who asks, and for what -------------------------------------------------------------------------------------------


class Things:
    """What the names in braces stand for: Acme's own, whoever asks."""

    def __init__(self, acme: World, project: str):
        self.acme, self.project, self.numbers = acme, project, count()
        self.mia = acme.person("mia").consents()
        for key in ("language", "diet"):
            expect(200, acme.admin.put(f"/v1/profile-keys/preferences.{key}", {}))
        expect(200, acme.admin.put(f"{self.mia.path}/profile/preferences.language", {"value": "de"}))
        stored = self._document()
        self.lasting = {
            "external_id": "mia",
            "key": "preferences.language",
            "project_id": project,
            "document_id": stored["id"],
            "job_id": stored["job"]["id"],
            "memory_id": self.mia.remembers("Mia sits at the window."),
        }

    def fill(self, text, *, succeeds):
        """What is refused needs nothing made for it."""
        return re.sub(r"\{(\w+)(?::(\w+))?\}", lambda found: self._named(*found.groups(), succeeds), text)

    def _named(self, name, which, succeeds):
        if which == "new":
            return f"new-{next(self.numbers)}"
        return getattr(self, f"_fresh_{name}")() if which and succeeds else self.lasting[name]

    def _document(self):
        document = {"name": f"menu-{next(self.numbers)}", "text": "Soup.", "project": self.project}
        return expect(202, self.acme.admin.post("/v1/knowledge/documents", document))

    def _fresh_document_id(self):
        return self._document()["id"]

    def _fresh_memory_id(self):
        return self.mia.remembers("Mia asked for the menu.", project=self.project)

    def _fresh_key(self):
        """Set twice: for the project whose key may remove no other, and for those that name none."""
        for where in ("", f"?project={self.project}"):
            expect(200, self.acme.admin.put(f"{self.mia.path}/profile/preferences.diet{where}", {"value": "soup"}))
        return "preferences.diet"


@dataclass(frozen=True)
class Cast:
    things: Things
    actors: dict[str, list[Rest]]

    def answers(self, row):
        """The status each actor got; several, where those of one column differ."""
        return {actor: self._status(row, actor, succeeds=status < 300) for actor, status in row.shown.items()}

    def _status(self, row, actor, *, succeeds):
        got = sorted({self._ask(row, client, succeeds).status_code for client in self.actors[actor]})
        return got[0] if len(got) == 1 else got

    def _ask(self, row, client, succeeds):
        request = REQUESTS.get(str(row), {}) if row.method in WITH_BODY else None
        body = None if request is None else json.loads(self.things.fill(json.dumps(request), succeeds=True))
        return client.call(row.method, self.things.fill(row.address, succeeds=succeeds), body)


@pytest.fixture(scope="module")
def cast():
    acme, zenith = open_world("Acme"), open_world("Zenith")
    project = acme.project("alpha")
    things = Things(acme, str(project))
    actors = {
        "keyless": _keyless(acme),
        "agent": [acme.agent],
        "relay": [acme.relay],
        "admin": [acme.admin],
        "scopeless": [acme.key("scopeless", set())],
        "bound": [acme.key("bound", set(Scope), project_id=project)],
        "stranger": [zenith.admin],
    }
    anyone = [clients[-1] for clients in actors.values()]
    return Cast(things, actors | {"anyone": anyone})


def _keyless(acme):
    """Nobody, and every way not to be somebody."""
    expired = acme.key("expired", set(Scope), expires_at=datetime.now(UTC) - timedelta(seconds=1))
    revoked = acme.key("revoked", set(Scope))
    with scope(acme.id):
        revoke_api_key(acme.key_ids["revoked"], actor=TEST_ACTOR)
    never_made = [Rest(make_key(acme.tenant.mode, tenant_id)) for tenant_id in (acme.id, uuid4())]
    return [Rest(""), Rest("nonsense"), Rest(acme.keys["admin"][:-1]), *never_made, expired, revoked]


# --- and true ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", REST_ROWS, ids=str)
def test_every_actor_gets_what_the_matrix_says(cast, row):
    assert cast.answers(row) == row.shown


@pytest.mark.parametrize("row", without_rows(REST_ROWS, lambda _: REFUSED), ids=str)
def test_method_without_a_row_is_refused_to_everybody(cast, row):
    assert cast.answers(row) == row.expected


@pytest.mark.parametrize("row", OPEN_ROWS, ids=str)
def test_open_address_is_answered_alike_with_any_key_or_none(cast, row):
    assert cast.answers(row) == row.expected


@pytest.mark.parametrize("row", without_rows(OPEN_ROWS, lambda _: {"anyone": 405}), ids=str)
def test_open_address_is_only_to_be_read(cast, row):
    assert cast.answers(row) == row.expected
