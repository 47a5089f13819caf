"""Entering what a person said about purposes into the ledger, and what follows from it at once."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from uuid_utils.compat import uuid7

from accounts.errors import FieldError, ValidationFailed
from accounts.keys import Decision, seal_fields, subject_of, subject_pseudonym
from accounts.tenancy import lock_person, reveal_pseudonym
from accounts.types import AgeBand, Caller, SubjectRef
from audit import services as audit
from consent import policy
from consent.errors import EvidenceMissing, GuardianRequired, NoticeOutdated
from consent.models import ConsentEvent, ConsentState
from consent.selectors import consents_of_person, current_purposes
from consent.types import IN_FORCE_AFTER, Act, ConsentActor, ConsentRef, NoticeRef, PurposeRef, Statement

CLOCK_TOLERANCE = timedelta(minutes=5)


def record_statement(subject: SubjectRef, statement: Statement, *, caller: Caller) -> list[ConsentRef]:
    """Enter one ledger event a purpose and bring the person's state up to it. Returns where the person stands now.

    Takes the person's exclusive lock: whoever uses the data at this moment finishes first, and nobody starts on the old
    state afterwards. A yes that is older than the ledger's last word on its purpose is refused: it is a replay.
    """
    lock_person(subject.id, exclusive=True)
    decision = policy.decide(subject, Act.CONSENT, caller=caller)
    subject, now = subject_of(decision), datetime.now(UTC)
    _check(subject, statement, caller, now)
    purposes = _purposes_named(statement)
    pseudonym = subject_pseudonym(caller.tenant_epoch, subject)
    reveal_pseudonym(pseudonym)
    standing = {consent.purpose: consent for consent in consents_of_person()}
    for purpose in purposes:
        _refuse_replay(statement, standing.get(purpose.key), now)
    events = [_enter(subject, statement, purpose, pseudonym, decision, caller, now) for purpose in purposes]
    for event in events:
        _stand(subject, event, standing.get(event.purpose))
    _record(subject, pseudonym, [event.id for event in events], statement, caller)
    return consents_of_person()


def _check(subject: SubjectRef, statement: Statement, caller: Caller, now: datetime) -> None:
    gives = statement.event in IN_FORCE_AFTER
    if gives and caller.actor.kind != "person" and not statement.evidence.strip():
        raise EvidenceMissing
    if gives and subject.age_band is AgeBand.CHILD and statement.spoken_by is not ConsentActor.GUARDIAN:
        raise GuardianRequired
    if statement.occurred_at and statement.occurred_at > now + CLOCK_TOLERANCE:
        raise ValidationFailed(errors=[FieldError("/occurred_at", "Lies in the future.")])
    if statement.valid_until and statement.valid_until <= now:
        raise ValidationFailed(errors=[FieldError("/valid_until", "Has passed already.")])


def _purposes_named(statement: Statement) -> list[PurposeRef]:
    known = {purpose.key: purpose for purpose in current_purposes()}
    missing = [key for key in statement.purposes if key not in known]
    if missing:
        raise ValidationFailed(errors=[FieldError("/purposes", f"This tenant does not have the purpose {missing[0]}.")])
    return [known[key] for key in statement.purposes]


def _refuse_replay(statement: Statement, standing: ConsentRef | None, now: datetime) -> None:
    if statement.event not in IN_FORCE_AFTER or standing is None:
        return
    said_at = statement.occurred_at or now
    if said_at < standing.since or (said_at == standing.since and not standing.in_force(now)):
        raise ValidationFailed(errors=[FieldError("/occurred_at", "The person has spoken about this since then.")])


def _shown_notice(statement: Statement, purpose: PurposeRef) -> NoticeRef:
    """The notice in the person's language, else English, else the first; it must be the one they were shown."""
    by_language = {notice.language: notice for notice in purpose.notices}
    fallbacks = (statement.language, statement.language.split("-")[0], "en", *by_language)
    shown = next(by_language[language] for language in fallbacks if language in by_language)
    if statement.notice_digests:
        named = [notice for notice in purpose.notices if notice.digest in statement.notice_digests]
        if not named:
            raise NoticeOutdated
        return named[0]
    return shown


def _enter(
    subject: SubjectRef,
    statement: Statement,
    purpose: PurposeRef,
    pseudonym: str,
    decision: Decision,
    caller: Caller,
    now: datetime,
) -> ConsentEvent:
    notice = _shown_notice(statement, purpose)
    event = ConsentEvent(
        id=uuid7(),
        tenant_id=subject.tenant_id,
        subject_pseudonym=pseudonym,
        purpose=purpose.key,
        version=purpose.version,
        notice_digest=notice.digest,
        event=statement.event,
        language=notice.language,
        surface=statement.surface,
        method=statement.method,
        spoken_by=statement.spoken_by,
        recorded_by=caller.actor.id,
        occurred_at=statement.occurred_at or now,
        recorded_at=now,
        valid_until=statement.valid_until,
    )
    event.own_subject_id = subject.id
    seal_fields(event, decision, evidence_sealed=statement.evidence.encode() or None)
    event.save(force_insert=True)
    return event


def _stand(subject: SubjectRef, event: ConsentEvent, before: ConsentRef | None) -> None:
    """Bring the person's state up to the event. `since` never goes back: a late word must not reopen an earlier one."""
    ConsentState.objects.update_or_create(
        tenant_id=subject.tenant_id,
        subject_id=subject.id,
        purpose=event.purpose,
        defaults={
            "state": event.event,
            "version": event.version,
            "spoken_by": event.spoken_by,
            "event_id": event.id,
            "since": max(event.occurred_at, before.since) if before else event.occurred_at,
            "valid_until": event.valid_until,
        },
    )


def _record(subject: SubjectRef, pseudonym: str, ids: Sequence[UUID], statement: Statement, caller: Caller) -> None:
    audit.record_in_transaction(
        tenant_id=subject.tenant_id,
        actor=caller.actor,
        action="consent.statement.recorded",
        resource_ids=ids,
        subject_pseudonym=pseudonym,
        purposes=[purpose.value for purpose in statement.purposes],
        consent_refs=[str(event_id) for event_id in ids],
        reason=statement.event.value,
    )
