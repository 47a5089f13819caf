"""Tables of accounts, by noun. Which of them are global is a closed list in accounts.checks."""

from accounts.models.credentials import ApiKey, PortalPass
from accounts.models.keys import WrappedKey
from accounts.models.people import Subject
from accounts.models.tenants import Directory, Membership, Organisation, Project, Tenant, User
from accounts.models.work import IdempotencyRecord, Job, OutboxEntry

__all__ = [
    "ApiKey",
    "Directory",
    "IdempotencyRecord",
    "Job",
    "Membership",
    "Organisation",
    "OutboxEntry",
    "PortalPass",
    "Project",
    "Subject",
    "Tenant",
    "User",
    "WrappedKey",
]
