"""What consent writes into the audit log."""

from audit.registry import AuditAction, register

ACTIONS = (
    AuditAction("consent.purpose.published", "A version of a purpose was published, with its notices", "purpose"),
    AuditAction("consent.statement.recorded", "What a person said about purposes was entered in the ledger", "consent"),
    AuditAction("consent.ledger.read", "A person's consents were read", "consent", counts=("items",)),
    AuditAction("consent.decision.refused", "Use of a person's data was refused", "subject"),
    AuditAction("consent.log.read", "The audit log was read", "event", counts=("items",)),
)


def register_all() -> None:
    register(*ACTIONS)
