"""The decision: may this be done with this person's data, at this moment? Nothing else says yes.

Ask inside the transaction that reads or writes: `decide` holds the person's shared lock until it ends, and a withdrawal
takes the exclusive one, so nothing starts after the withdrawal has committed.
"""

from datetime import UTC, datetime
from uuid import UUID

from accounts.errors import SubjectErased
from accounts.keys import Decision, subject_pseudonym
from accounts.selectors import subject_answered, subject_question
from accounts.tenancy import ask, person_lock
from accounts.types import AgeBand, Caller, SubjectRef, SubjectState
from audit import services as audit
from consent.errors import BY_REASON
from consent.selectors import consents_answered, consents_question
from consent.types import (
    NEEDED,
    STOPPED_BY_RESTRICTION,
    Act,
    ConsentActor,
    ConsentRef,
    LedgerEvent,
    PurposeKey,
)

_REASON_OF_STATE = {
    LedgerEvent.REFUSED: "consent_refused",
    LedgerEvent.WITHDRAWN: "consent_withdrawn",
    LedgerEvent.EXPIRED: "consent_expired",
}


def decide(
    subject: SubjectRef, act: Act, *, caller: Caller, project_id: UUID | None = None, sensitive: bool = False
) -> Decision:
    """Ask for one person, in that person's scope. `sensitive` adds memory.sensitive to what is needed.

    The subject is read again under the lock, so the epoch that opens keys is the one in force. Raises SubjectErased
    when the person is gone; every other no is a Decision with `allowed` false and a reason.
    """
    # One message of up to three statements: each of those behind the lock sees what was committed before it was had.
    consents_too = [consents_question()] if NEEDED[act] else []
    _, subjects, *standing = ask(person_lock(subject.id), subject_question(subject.id), *consents_too)
    consents = {consent.purpose: consent for rows in standing for consent in consents_answered(rows)}
    return _decision(subject_answered(subjects), act, caller, consents, project_id=project_id, sensitive=sensitive)


def decide_for_new(subject: SubjectRef, *, caller: Caller) -> Decision:
    """Account data of a person whose row is about to be written: rests on contract, needs nothing on record."""
    return _decision(subject, Act.ACCOUNT, caller, {}, project_id=None, sensitive=False)


def decide_for_tenant(act: Act, *, caller: Caller) -> Decision:
    """What concerns no single person's content: the list of a tenant's people by the tenant's own ids."""
    return Decision(
        tenant_id=caller.tenant_id,
        tenant_epoch=caller.tenant_epoch,
        subject=None,
        action=act.value,
        actor=caller.actor,
        project_id=None,
        allowed=act is Act.TENANT,
        reason="",
        purposes=(),
        granted=frozenset(),
        consent_refs=(),
    )


def require(decision: Decision) -> Decision:
    """The decision itself when it is a yes; else the refusal is recorded and raised."""
    if decision.allowed:
        return decision
    record_refusal(decision)
    refusal = BY_REASON[decision.reason]()
    refusal.recorded = True
    raise refusal


def record_refusal(decision: Decision) -> None:
    """Enter the no in the audit log; it stands even when the log is down."""
    audit.record_refusal(
        tenant_id=decision.tenant_id,
        actor=decision.actor,
        action="consent.decision.refused",
        reason=decision.reason,
        subject_pseudonym=subject_pseudonym(decision.tenant_epoch, decision.subject) if decision.subject else "",
        purposes=decision.purposes,
    )


def _decision(
    subject: SubjectRef,
    act: Act,
    caller: Caller,
    consents: dict[str, ConsentRef],
    *,
    project_id: UUID | None,
    sensitive: bool,
) -> Decision:
    if subject.state is SubjectState.ERASED:
        raise SubjectErased
    needed = NEEDED[act] + ((PurposeKey.SENSITIVE,) if sensitive else ())
    granted = frozenset(purpose for purpose in consents if _why_not(consents.get(purpose), subject) == "")
    reason = _restriction(subject, act) or next(
        (why for why in (_why_not(consents.get(purpose), subject) for purpose in needed) if why), ""
    )
    return Decision(
        tenant_id=subject.tenant_id,
        tenant_epoch=caller.tenant_epoch,
        subject=subject,
        action=act.value,
        actor=caller.actor,
        project_id=project_id,
        allowed=not reason,
        reason=reason,
        purposes=tuple(purpose.value for purpose in needed),
        granted=granted,
        consent_refs=tuple(str(consents[purpose].event_id) for purpose in needed if purpose in granted),
    )


def _restriction(subject: SubjectRef, act: Act) -> str:
    restricted = subject.state in {SubjectState.RESTRICTED, SubjectState.OBJECTED}
    return "subject_restricted" if restricted and act in STOPPED_BY_RESTRICTION else ""


def _why_not(consent: ConsentRef | None, subject: SubjectRef) -> str:
    """The reason this purpose may not be relied on, or "" when it may."""
    now = datetime.now(UTC)
    if consent is None:
        return "consent_required"
    if not consent.in_force(now):
        return _REASON_OF_STATE.get(consent.state, "consent_expired")
    if subject.age_band is AgeBand.CHILD and consent.spoken_by is not ConsentActor.GUARDIAN:
        return "guardian_required"
    return ""
