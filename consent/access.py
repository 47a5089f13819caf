"""Who looked: the audit entry that is committed before anything is opened, and the grant it yields."""

from collections.abc import Collection, Mapping
from uuid import UUID

from accounts.keys import Decision, Grant, subject_pseudonym
from accounts.types import SubjectRef
from audit import services as audit


def record_read(
    decision: Decision,
    ids: Collection[UUID],
    *,
    action: str,
    counts: Mapping[str, int] | None = None,
    about: SubjectRef | None = None,
) -> Grant:
    """Commit the entry of this reading over its own connection, then grant the contents of these ids.

    `about`: the person it concerns, where the decision is the tenant's and opens nothing of theirs.

    Raises AuditUnavailable when it cannot be written, NotGranted when the decision was a no; nothing is opened then.
    """
    decision.require()
    # Never the person's own row id beside the pseudonym: the two together would name the person for ever.
    subject = decision.subject or about
    named = tuple(each for each in ids if subject is None or each != subject.id)
    event = audit.record_committed(
        tenant_id=decision.tenant_id,
        actor=decision.actor,
        action=action,
        resource_ids=named,
        subject_pseudonym=subject_pseudonym(decision.tenant_epoch, subject) if subject else "",
        purposes=decision.purposes,
        consent_refs=decision.consent_refs,
        decision="allowed",
        counts=counts,
    )
    return Grant(decision=decision, ids=frozenset(ids), event_id=event.id)
