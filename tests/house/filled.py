"""Two tenants with something in every table, put there through real doors, so that every wall has what could leak.

Acme remembers Mia and Noa, Zenith remembers a person under Mia's very id; Ada is a member of both.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID, uuid4

import psycopg
from uuid_utils.compat import uuid7

from accounts.keys import subject_pseudonym
from accounts.models import User
from accounts.services.jobs import queue_job
from accounts.services.tenants import grant_membership
from accounts.tenancy import narrow, scope
from accounts.types import Role
from memory.tasks import ingest_document
from tests.world import TEST_ACTOR, Person, World, open_world

_EVENT = """
    INSERT INTO audit_event (id, tenant_id, at, actor_kind, actor_id, actor_on_behalf_of, action, resource_kind,
        resource_ids, subject_pseudonym, purposes, consent_refs, decision, reason, request_id, counts, result,
        canonical)
    VALUES (%s, %s, now(), 'system', 'tests', '', 'accounts.tenant.opened', 'tenant',
        '{}', '', '{}', '{}', '', '', '', '{}', 'ok', '{}')
"""
EVENT_OUTSIDE_ALL_MONTHS = datetime(2001, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Filled:
    acme: World
    zenith: World
    mia: Person
    noa: Person
    stranger: Person
    ada: UUID
    pseudonyms: dict[str, str]

    @property
    def tenants(self):
        return (self.acme.id, self.zenith.id)


def fill(audit: psycopg.Connection) -> Filled:
    """`audit` is a connection as fmn_audit: it puts an event of each tenant into every month of the log."""
    ada = User.objects.create_user(f"ada-{uuid4()}@acme.example")
    acme, zenith = open_world("Acme"), open_world("Zenith")
    mia, noa, stranger = acme.person("mia"), acme.person("noa"), zenith.person("mia")
    for world in (acme, zenith):
        fill_tenant(world, ada)
    for person in (mia, noa, stranger):
        fill_person(person)
    for world in (acme, zenith):
        fill_months(audit, world.id)
    people = {"mia": mia, "noa": noa, "stranger": stranger}
    pseudonyms = {name: subject_pseudonym(each.world.tenant.key_epoch, each.ref()) for name, each in people.items()}
    return Filled(acme, zenith, **people, ada=ada.id, pseudonyms=pseudonyms)


def fill_tenant(world, user):
    project = str(world.project("handbook"))
    document = {"name": "menu", "text": "Pierogi are served on Fridays.", "project": project}
    stored = expect(202, world.admin.post("/v1/knowledge/documents", document, Idempotency_Key="document"))
    ingest_document(tenant_id=str(world.id), document_id=stored["id"], job_id=stored["job"]["id"])
    expect(200, world.admin.put("/v1/profile-keys/preferences.language", {}))
    with scope(world.id):
        grant_membership(user, Role.OWNER, actor=TEST_ACTOR)


def fill_person(person):
    admin = person.world.admin
    person.consents()
    first = person.remembers("Prefers tea in the morning.", session="monday")
    again = {"text": "Prefers green tea.", "session": "monday", "derived_from": [first]}
    expect(201, admin.post(f"{person.path}/memories", again, Idempotency_Key=f"again-{person.id}"))
    expect(200, admin.put(f"{person.path}/profile/preferences.language", {"value": "de"}))
    person.link()
    with scope(person.world.id), narrow(person.id):
        queue_job("embedding", "memory.tasks.embed_pending", project_id=None)


def fill_months(audit, tenant_id):
    """One event in every partition: the log's rows are placed by the time in their ids."""
    bounds = audit.execute(
        "SELECT substring(pg_get_expr(relpartbound, oid) FROM $$FROM \\('([0-9a-f-]{36})'$$)"
        " FROM pg_class JOIN pg_inherits ON inhrelid = oid WHERE inhparent = 'audit_event'::regclass AND relkind = 'r'"
    ).fetchall()
    months = [UUID(lowest).int >> 80 for (lowest,) in bounds if lowest]
    for milliseconds in (*months, int(EVENT_OUTSIDE_ALL_MONTHS.timestamp() * 1000)):
        identity = UUID(int=(milliseconds << 80) | (uuid7().int & ((1 << 80) - 1)))
        audit.execute(_EVENT, [identity, tenant_id])


def expect(status, answer):
    assert answer.status_code == status, answer.json()
    return answer.json()
