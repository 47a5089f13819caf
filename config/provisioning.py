"""Opening an organisation from the command line: its tenant and the keys its people and agents need."""

from typing import Any

from accounts.scopes import AGENT_SCOPES, Scope
from accounts.services.credentials import create_api_key
from accounts.services.tenants import create_organisation
from accounts.tenancy import scope
from accounts.types import Mode
from audit.types import Actor
from consent.services.purposes import open_furnished_tenant

OPERATOR = Actor("system", "operator.command")

# Least privilege by job: what an agent holds cannot give consent, and what relays consent cannot read a memory.
KEYS = {
    "agent": AGENT_SCOPES,
    "consent": frozenset({Scope.CONSENT_READ, Scope.CONSENT_RELAY, Scope.SUBJECTS_READ}),
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


def open_organisation(name: str, mode: Mode) -> dict[str, Any]:
    """Organisation, mode, tenant id, the agent's key as `key`, all keys by name; none can be shown again."""
    tenant = open_furnished_tenant(create_organisation(name), mode, actor=OPERATOR)
    with scope(tenant.id):
        keys = {label: create_api_key(label, scopes, mode=mode, actor=OPERATOR)[1] for label, scopes in KEYS.items()}
    return {"organisation": name, "mode": mode.value, "tenant": str(tenant.id), "key": keys["agent"], "keys": keys}
