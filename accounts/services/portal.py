"""The way to a person's own page: a link that is opened once, and the visit it becomes in the browser that opened it.

A link and a visit are random and kept as digests. Everything that is wrong with one is LinkUnusable or VisitRequired;
which of unknown, used, run out or altered it was is not said. Start at `create_link`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Q, QuerySet

from accounts import selectors
from accounts.credentials import ClaimedPass, PassKind, make_pass, parse_pass
from accounts.errors import LinkUnusable, NotFound, SubjectErased, VisitRequired
from accounts.keys import subject_pseudonym
from accounts.models import PortalPass
from accounts.tenancy import narrow, scope
from accounts.types import Caller, SubjectRef, Visitor
from audit import services as audit
from audit.types import Actor

LINK_LIFETIME = timedelta(minutes=15)
VISIT_LIFETIME = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class NewLink:
    """The link's text is not kept and cannot be shown again."""

    text: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class NewVisit:
    """What the browser keeps, as a cookie; not kept here."""

    text: str
    expires_at: datetime


def create_link(subject: SubjectRef, *, caller: Caller) -> NewLink:
    """In the person's scope. Whoever hands it on vouches that it reaches the person."""
    text = make_pass(PassKind.LINK, subject.tenant_id, subject.id)
    expires_at = datetime.now(UTC) + LINK_LIFETIME
    row = PortalPass.objects.create(
        tenant_id=subject.tenant_id,
        subject_id=subject.id,
        link_digest=_claimed(PassKind.LINK, text).digest,
        link_expires_at=expires_at,
    )
    _record("accounts.portal_link.created", row, subject, caller.actor, caller.tenant_epoch)
    return NewLink(text, expires_at)


def is_usable(text: str) -> bool:
    """Whether opening this link now would work. Uses nothing up: mail scanners and previews follow links too."""
    claimed = parse_pass(PassKind.LINK, text)
    if claimed is None:
        return False
    with scope(claimed.tenant_id, claimed.subject_id):
        return _unopened(claimed).exists()


def open_link(text: str) -> NewVisit:
    """Exchange a link for a visit, once: of two who try at the same moment one is refused. Raises LinkUnusable."""
    claimed = parse_pass(PassKind.LINK, text)
    if claimed is None:
        raise LinkUnusable
    with scope(claimed.tenant_id), _usable_or_not():
        subject, tenant = selectors.subject_by_id(claimed.subject_id), selectors.tenant_ref()
        with narrow(subject.id):
            row = _unopened(claimed).select_for_update().first()
            if row is None:
                raise LinkUnusable
            visit = make_pass(PassKind.VISIT, subject.tenant_id, subject.id)
            row.opened_at = datetime.now(UTC)
            row.visit_digest = _claimed(PassKind.VISIT, visit).digest
            row.visit_expires_at = row.opened_at + VISIT_LIFETIME
            row.save()
            person = Actor("person", subject_pseudonym(tenant.key_epoch, subject))
            _record("accounts.portal_link.opened", row, subject, person, tenant.key_epoch)
    return NewVisit(visit, row.visit_expires_at)


@contextmanager
def visiting(text: str) -> Iterator[Visitor]:
    """The person's scope for whoever holds this visit. Raises VisitRequired, also once the person was erased."""
    claimed = parse_pass(PassKind.VISIT, text)
    if claimed is None:
        raise VisitRequired
    with scope(claimed.tenant_id):
        try:
            subject = selectors.subject_by_id(claimed.subject_id)
        except (NotFound, SubjectErased):
            raise VisitRequired from None
        tenant, organisation = selectors.tenant_ref(), selectors.organisation_name()
        with narrow(subject.id):
            now = datetime.now(UTC)
            if not PortalPass.objects.filter(visit_digest=claimed.digest, visit_expires_at__gt=now).exists():
                raise VisitRequired
            yield Visitor(
                tenant_id=tenant.id,
                tenant_epoch=tenant.key_epoch,
                organisation=organisation,
                subject=subject,
                pseudonym=subject_pseudonym(tenant.key_epoch, subject),
            )


def end_visit(text: str) -> None:
    """From now on the visit opens nothing. Ending one that is none is harmless."""
    claimed = parse_pass(PassKind.VISIT, text)
    if claimed is not None:
        with scope(claimed.tenant_id, claimed.subject_id):
            PortalPass.objects.filter(visit_digest=claimed.digest).delete()


def forget_old_passes() -> int:
    """Delete what has run out, in a scope of everybody of a tenant. Returns how many went."""
    now = datetime.now(UTC)
    over = Q(opened_at=None, link_expires_at__lt=now) | Q(visit_expires_at__lt=now)
    return PortalPass.objects.filter(over).delete()[0]


def _claimed(kind: PassKind, text: str) -> ClaimedPass:
    claimed = parse_pass(kind, text)
    if claimed is None:
        raise LinkUnusable
    return claimed


def _unopened(claimed: ClaimedPass) -> QuerySet[PortalPass]:
    now = datetime.now(UTC)
    return PortalPass.objects.filter(link_digest=claimed.digest, opened_at=None, link_expires_at__gt=now)


@contextmanager
def _usable_or_not() -> Iterator[None]:
    try:
        yield
    except (NotFound, SubjectErased):
        raise LinkUnusable from None


def _record(action: str, row: PortalPass, subject: SubjectRef, actor: Actor, tenant_epoch: int) -> None:
    audit.record_in_transaction(
        tenant_id=subject.tenant_id,
        actor=actor,
        action=action,
        resource_ids=[row.id],
        subject_pseudonym=subject_pseudonym(tenant_epoch, subject),
    )
