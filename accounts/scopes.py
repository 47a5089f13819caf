"""What an API key may do, in alphabetical order. docs/scopes.md lists them; a test holds it to that."""

from enum import StrEnum


class Scope(StrEnum):
    AUDIT_READ = "audit:read"
    CONSENT_READ = "consent:read"
    CONSENT_RELAY = "consent:relay"
    JOBS_READ = "jobs:read"
    KNOWLEDGE_READ = "knowledge:read"
    KNOWLEDGE_WRITE = "knowledge:write"
    MEMORIES_DELETE = "memories:delete"
    MEMORIES_READ = "memories:read"
    MEMORIES_WRITE = "memories:write"
    PORTAL_WRITE = "portal:write"
    PROFILE_READ = "profile:read"
    PROFILE_WRITE = "profile:write"
    PROJECTS_READ = "projects:read"
    PROJECTS_WRITE = "projects:write"
    SUBJECTS_READ = "subjects:read"
    SUBJECTS_WRITE = "subjects:write"


# What an agent needs to remember and recall. The rest is asked for by name.
AGENT_SCOPES = frozenset(Scope) - {
    Scope.AUDIT_READ,
    Scope.CONSENT_RELAY,
    # Whoever can make the link to a person's page can act there as the person.
    Scope.PORTAL_WRITE,
    Scope.PROJECTS_WRITE,
    Scope.KNOWLEDGE_WRITE,
}
