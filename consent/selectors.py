"""Reads of consent: purposes, where a person stands, the ledger. Inside a scope."""

from django.db.models import F, QuerySet

from accounts.tenancy import Question, Reach, Rows, ask, current_scope
from consent.models import ConsentEvent, PurposeVersion
from consent.types import ConsentActor, ConsentRef, LedgerEvent, NoticeRef, PurposeRef


def current_purposes() -> list[PurposeRef]:
    """The tenant's purposes in their current version, by key."""
    rows = PurposeVersion.objects.filter(number=F("purpose__current")).select_related("purpose")
    rows = rows.prefetch_related("notices").order_by("purpose__key")
    return [_purpose_ref(row) for row in rows]


def _purpose_ref(row: PurposeVersion) -> PurposeRef:
    notices = sorted(row.notices.all(), key=lambda notice: notice.language)
    return PurposeRef(
        id=row.purpose_id,
        key=row.purpose.key,
        version=row.number,
        legal_basis=row.legal_basis,
        retention_days=row.retention_days,
        categories=tuple(row.categories),
        published_at=row.published_at,
        notices=tuple(NoticeRef(notice.language, notice.text, notice.digest) for notice in notices),
    )


# Written out, since every use of a person's data asks it.
_CONSENTS = """
    SELECT purpose, state, version, since, valid_until, event_id, spoken_by
    FROM consent_consentstate WHERE tenant_id = %s AND subject_id = %s ORDER BY purpose
"""


def consents_of_person() -> list[ConsentRef]:
    """Where the person of the scope stands, by purpose."""
    return consents_answered(ask(consents_question())[0])


def consents_question() -> Question:
    """For `consents_answered`, together with others."""
    scope = current_scope()
    return Question(_CONSENTS, (scope.tenant_id, None if isinstance(scope.subject, Reach) else scope.subject))


def consents_answered(rows: Rows) -> list[ConsentRef]:
    return [
        ConsentRef(
            purpose=purpose,
            state=LedgerEvent(state),
            version=version,
            since=since,
            valid_until=valid_until,
            event_id=event_id,
            spoken_by=ConsentActor(spoken_by),
        )
        for purpose, state, version, since, valid_until, event_id, spoken_by in rows
    ]


def ledger_of(pseudonym: str) -> QuerySet[ConsentEvent]:
    """A person's ledger in its order. The scope must have revealed the pseudonym."""
    return ConsentEvent.objects.filter(subject_pseudonym=pseudonym).order_by("id")
