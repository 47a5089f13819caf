"""Opening an organisation from the command line: its tenant and the keys its people and agents need."""

from secrets import token_urlsafe
from typing import Any
from uuid import UUID

from accounts.scopes import AGENT_SCOPES, Scope
from accounts.selectors import tenant_ref
from accounts.services.credentials import create_api_key
from accounts.services.members import add_member
from accounts.services.tenants import create_organisation
from accounts.tenancy import scope
from accounts.types import Mode, Role
from audit.types import Actor
from consent.services.purposes import open_furnished_tenant

OPERATOR = Actor("system", "operator.command")

# Least privilege by job: what an agent holds cannot give consent, and what relays consent cannot read a memory.
KEYS = {
    "agent": AGENT_SCOPES,
    # What speaks for the person: it relays what they said, and hands them the link to their page.
    "consent": frozenset({Scope.CONSENT_READ, Scope.CONSENT_RELAY, Scope.PORTAL_WRITE, Scope.SUBJECTS_READ}),
    "admin": frozenset(
        {
            Scope.JOBS_READ,
            Scope.KNOWLEDGE_READ,
            Scope.KNOWLEDGE_WRITE,
            Scope.PROFILE_READ,
            Scope.PROJECTS_READ,
            Scope.PROJECTS_WRITE,
        }
    ),
    "officer": frozenset({Scope.AUDIT_READ, Scope.CONSENT_READ, Scope.SUBJECTS_READ}),
}


# The demo's team: plainly not people.
DEMO_TEAM = {f"{role.value.replace('_', '-')}@acme-demo.example": role for role in Role}


def open_demo() -> dict[str, Any]:
    """The demo organisation: what open_organisation says of its sandbox, and its team with one password drawn for them.

    The team works in its live tenant too, which is empty, so that there is something to switch to.
    """
    opened = open_organisation("Acme (demo)", Mode.SANDBOX)
    with scope(UUID(opened["tenant"])):
        organisation_id = tenant_ref().organisation_id
    live = open_furnished_tenant(organisation_id, Mode.LIVE, actor=OPERATOR)
    password = token_urlsafe(12)
    for email, role in DEMO_TEAM.items():
        for tenant_id in (UUID(opened["tenant"]), live.id):
            user = add_member(email, role, tenant_id=tenant_id, actor=OPERATOR)
        user.set_password(password)
        user.save(update_fields=["password"])
    return opened | {"team": {email: role.value for email, role in DEMO_TEAM.items()}, "password": password}


def open_organisation(name: str, mode: Mode) -> dict[str, Any]:
    """Organisation, mode, tenant id, the agent's key as `key`, all keys by name; none can be shown again."""
    tenant = open_furnished_tenant(create_organisation(name), mode, actor=OPERATOR)
    with scope(tenant.id):
        keys = {label: create_api_key(label, scopes, mode=mode, actor=OPERATOR)[1] for label, scopes in KEYS.items()}
    return {"organisation": name, "mode": mode.value, "tenant": str(tenant.id), "key": keys["agent"], "keys": keys}
