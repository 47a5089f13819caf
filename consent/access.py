"""Who looked: the audit entry that is committed before anything is opened, and the grant it yields."""

from collections.abc import Collection, Mapping
from uuid import UUID

from accounts.keys import Decision, Grant, subject_pseudonym
from audit import services as audit


def record_read(
    decision: Decision, ids: Collection[UUID], *, action: str, counts: Mapping[str, int] | None = None
) -> Grant:
    """Commit the entry of this reading over its own connection, then grant the contents of these ids.

    Raises AuditUnavailable when it cannot be written, NotGranted when the decision was a no; nothing is opened then.
    """
    decision.require()
    # Never the person's own row id beside the pseudonym: the two together would name the person for ever.
    named = tuple(each for each in ids if decision.subject is None or each != decision.subject.id)
    event = audit.record_committed(
        tenant_id=decision.tenant_id,
        actor=decision.actor,
        action=action,
        resource_ids=named,
        subject_pseudonym=subject_pseudonym(decision.tenant_epoch, decision.subject) if decision.subject else "",
        purposes=decision.purposes,
        consent_refs=decision.consent_refs,
        decision="allowed",
        counts=counts,
    )
    return Grant(decision=decision, ids=frozenset(ids), event_id=event.id)
