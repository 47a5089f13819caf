"""Refusals at the door, entered in the log: who was refused, and by which code."""

from accounts.types import Principal
from audit import services as audit


def record_refused_request(principal: Principal, code: str) -> None:
    """It stands even when the log is down."""
    audit.record_refusal(
        tenant_id=principal.tenant_id,
        actor=principal.actor,
        action="accounts.request.refused",
        reason=code,
        resource_ids=[principal.key_id],
    )
