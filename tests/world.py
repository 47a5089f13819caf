"""A tenant as tests use it: its keys, its people, and a REST client for each key. All through real doors."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit
from uuid import UUID, uuid4

from django.db import connections
from django.test import Client

from accounts.models import User
from accounts.scopes import AGENT_SCOPES, Scope
from accounts.services.credentials import create_api_key
from accounts.services.tenants import create_organisation, create_project, grant_membership
from accounts.tenancy import scope
from accounts.types import Mode, Principal, Role, TenantRef
from audit.types import Actor
from consent.services.purposes import open_furnished_tenant

TEST_ACTOR = Actor("system", "tests")
PURPOSES = ("memory.store", "memory.personalise")


class Rest:
    """JSON over the real URL conf, middleware and views."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.client = Client(raise_request_exception=False)

    def call(self, method, path, body=None, **headers):
        data = {"data": body, "content_type": "application/json"} if body is not None else {}
        return self.client.generic(
            method,
            path,
            *((_json(body), "application/json") if data else ()),
            headers={"Authorization": f"Bearer {self.key}"} | {k.replace("_", "-"): v for k, v in headers.items()},
        )

    def get(self, path, **headers):
        return self.call("GET", path, **headers)

    def post(self, path, body, **headers):
        return self.call("POST", path, body, **headers)

    def put(self, path, body, **headers):
        return self.call("PUT", path, body, **headers)

    def delete(self, path, **headers):
        return self.call("DELETE", path, **headers)


def _json(body):
    import json

    return body if isinstance(body, bytes | str) else json.dumps(body)


@dataclass
class Person:
    world: "World"
    external_id: str
    id: UUID

    @property
    def path(self):
        return f"/v1/subjects/{self.external_id}"

    def says(self, event, *purposes, **extra):
        body = {"event": event, "purposes": purposes or PURPOSES, "evidence": "msg-1"} | extra
        answer = self.world.relay.post(f"{self.path}/consents", body)
        assert answer.status_code == 201, answer.json()
        return answer.json()

    def consents(self, *purposes):
        self.says("given", *purposes)
        return self

    def remembers(self, text, **facts):
        answer = self.world.agent.post(f"{self.path}/memories", {"text": text} | facts)
        assert answer.status_code == 201, answer.json()
        return answer.json()["memories"][0]["id"]

    def recall(self, query, **options):
        answer = self.world.agent.post(f"{self.path}/recall", {"query": query} | options)
        assert answer.status_code == 200, answer.json()
        return answer.json()

    def texts(self, query, **options):
        return [item["text"] for item in self.recall(query, **options)["memories"]]

    def link(self):
        """A fresh link to the person's own page, as a path."""
        answer = self.world.admin.post(f"{self.path}/portal-links", {})
        assert answer.status_code == 201, answer.json()
        return urlsplit(answer.json()["url"]).path

    def browser(self):
        """The person's browser, in which they opened a link."""
        client = Client(raise_request_exception=False)
        assert client.post(self.link()).status_code == 302
        return client

    def ref(self):
        from accounts.selectors import subject_by_id

        with scope(self.world.id):
            return subject_by_id(self.id)

    def tries(self, text, **facts):
        """The answer to storing, whatever it is."""
        return self.world.agent.post(f"{self.path}/memories", {"text": text} | facts)

    def listed(self, **query):
        """Ids of the first page of memories."""
        answer = self.world.agent.get(f"{self.path}/memories?{urlencode(query)}")
        assert answer.status_code == 200, answer.json()
        return [item["id"] for item in answer.json()["items"]]

    def decides(self, act, **facts):
        """What the policy says at this moment, in a transaction of its own."""
        from accounts.tenancy import narrow
        from consent.policy import decide

        with scope(self.world.id), narrow(self.id):
            return decide(self.ref_inside(), act, caller=self.world.principal, **facts)

    def ref_inside(self):
        """Like ref, inside a scope that is open already."""
        from accounts.selectors import subject_by_id

        return subject_by_id(self.id)


@dataclass
class World:
    name: str
    tenant: TenantRef
    keys: dict[str, str] = field(default_factory=dict)
    key_ids: dict[str, UUID] = field(default_factory=dict)
    members: dict[str, User] = field(default_factory=dict)

    @property
    def id(self):
        return self.tenant.id

    @property
    def agent(self):
        """Kit: what an agent may."""
        return Rest(self.keys["agent"])

    @property
    def relay(self):
        return Rest(self.keys["relay"])

    @property
    def admin(self):
        """Every scope there is."""
        return Rest(self.keys["admin"])

    @property
    def principal(self):
        return Principal(
            tenant_id=self.id,
            tenant_epoch=self.tenant.key_epoch,
            mode=self.tenant.mode,
            key_id=self.key_ids["admin"],
            scopes=frozenset(scope.value for scope in Scope),
            project_id=None,
        )

    def key(self, name, scopes, **options):
        with scope(self.id):
            self.key_ids[name], self.keys[name] = create_api_key(
                name, scopes, mode=self.tenant.mode, actor=TEST_ACTOR, **options
            )
        return Rest(self.keys[name])

    def member(self, name, role):
        """Somebody of the tenant's team, e-mail unique in the whole run since users are global."""
        user = User.objects.create_user(f"{name}@{uuid4().hex}.example")
        with scope(self.id):
            grant_membership(user, role, actor=TEST_ACTOR)
        self.members[name] = user
        return user

    def project(self, name, **options):
        with scope(self.id):
            return create_project(name, actor=TEST_ACTOR, **options).id

    def browser(self, name):
        """A signed-in member's browser, without JavaScript."""
        client = Client(raise_request_exception=False)
        client.force_login(self.members[name])
        return client

    def person(self, external_id, **account):
        answer = self.admin.put(f"/v1/subjects/{external_id}", account)
        assert answer.status_code == 201, answer.json()
        return Person(self, external_id, UUID(answer.json()["id"]))

    def remember_somebody(self):
        person = self.person("mia").consents()
        person.remembers("Mia of Zenith hides the spare key under the blue flowerpot.")
        return person

    def knows(self, name, text, **facts):
        """A document, stored and taken in by the worker's own function. Gives its id."""
        stored = self.stores(name, text, **facts)
        self.takes_in(stored)
        return stored["id"]

    def stores(self, name, text, **facts):
        answer = self.admin.post("/v1/knowledge/documents", {"name": name, "text": text} | facts)
        assert answer.status_code == 202, answer.json()
        return answer.json()

    def takes_in(self, stored):
        """As a worker does: tried again when the embedder missed its deadline on a busy machine."""
        from memory.tasks import EmbedderStillAway, ingest_document

        for _ in range(10):
            with suppress(EmbedderStillAway):
                ingest_document(tenant_id=str(self.id), document_id=stored["id"], job_id=stored["job"]["id"])
                return
            time.sleep(0.5)
        raise AssertionError("the embedder stayed away for five seconds")

    def at_once(self, *calls):
        """Run the calls in a thread each; every thread gives its connections back. Results in order."""

        def closing(call):
            try:
                return call()
            finally:
                connections.close_all()

        with ThreadPoolExecutor(len(calls)) as pool:
            return list(pool.map(closing, calls))


def open_world(name: str) -> World:
    organisation = create_organisation(name)
    tenant = open_furnished_tenant(organisation, Mode.SANDBOX, actor=TEST_ACTOR)
    world = World(name, tenant)
    world.key("agent", AGENT_SCOPES)
    world.key("relay", {Scope.CONSENT_RELAY, Scope.CONSENT_READ})
    world.key("admin", set(Scope))
    world.member("ada", Role.OWNER)
    world.member("ben", Role.AUDITOR)
    world.member("dan", Role.DEVELOPER)
    world.member("olga", Role.PRIVACY_OFFICER)
    return world
