"""What accounts writes into the audit log."""

from audit.registry import AuditAction, register

ACTIONS = (
    AuditAction("accounts.tenant.opened", "A tenant was opened, with its keys", "tenant"),
    AuditAction("accounts.project.created", "A project was created", "project"),
    AuditAction("accounts.project.changed", "A project's recall policy or profile rule was changed", "project"),
    AuditAction("accounts.membership.granted", "A member was given a role in a tenant", "membership"),
    AuditAction("accounts.portal_link.created", "A link to a person's own page was made", "portal_pass"),
    AuditAction("accounts.portal_link.opened", "A person opened the link to their page", "portal_pass"),
    AuditAction("accounts.key.created", "An API key was created", "api_key"),
    AuditAction("accounts.key.revoked", "An API key was revoked", "api_key"),
    AuditAction(
        "accounts.key.swept",
        "Keys written for persons who never came to be were destroyed",
        "subject_key",
        counts=("items",),
    ),
    AuditAction(
        "accounts.authentication.refused", "Keys that name the tenant were refused", "api_key", counts=("attempts",)
    ),
    AuditAction(
        "accounts.request.refused",
        "A request was refused at the door; the reason is the answer's code",
        "api_key",
    ),
    AuditAction("accounts.request.replayed", "A write was answered from its idempotency record", "request"),
    AuditAction("accounts.seal.mismatched", "A sealed value was not what was sealed in its place", "row"),
    AuditAction("accounts.subject.created", "A person was made known to the tenant", "subject"),
    AuditAction("accounts.subject.changed", "A person's account data was changed", "subject"),
    AuditAction("accounts.subject.read", "A person's account data was read", "subject"),
    AuditAction(
        "accounts.subject.listed",
        "A list of people known to the tenant was read",
        "subject",
        counts=("items",),
    ),
    AuditAction("accounts.job.finished", "Background work ended", "job"),
)


def register_all() -> None:
    register(*ACTIONS)
