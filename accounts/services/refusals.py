"""Refusals at the door, entered in the log: who was refused, and by which code."""

from accounts.types import Caller, Principal
from audit import services as audit


def record_refused_request(caller: Caller, code: str) -> None:
    """It stands even when the log is down."""
    audit.record_refusal(
        tenant_id=caller.tenant_id,
        actor=caller.actor,
        action="accounts.request.refused",
        reason=code,
        resource_ids=[caller.key_id] if isinstance(caller, Principal) else [],
    )
