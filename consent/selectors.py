"""Reads of consent: purposes, where a person stands, the ledger. Inside a scope."""

from django.db.models import F, QuerySet

from consent.models import ConsentEvent, ConsentState, PurposeVersion
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


def consents_of_person() -> list[ConsentRef]:
    """Where the person of the scope stands, by purpose."""
    return [
        ConsentRef(
            purpose=row.purpose,
            state=LedgerEvent(row.state),
            version=row.version,
            since=row.since,
            valid_until=row.valid_until,
            event_id=row.event_id,
            spoken_by=ConsentActor(row.spoken_by),
        )
        for row in ConsentState.objects.order_by("purpose")
    ]


def ledger_of(pseudonym: str) -> QuerySet[ConsentEvent]:
    """A person's ledger in its order. The scope must have revealed the pseudonym."""
    return ConsentEvent.objects.filter(subject_pseudonym=pseudonym).order_by("id")
