"""People over the API: opening their names is a read like any other, so it stands here and not in accounts."""

from uuid import UUID

from django.db.models import QuerySet

from accounts.errors import NotFound, PreconditionFailed, SubjectErased
from accounts.models import Subject
from accounts.selectors import subject_by_external_id
from accounts.services.subjects import (
    AccountData,
    OpenedSubject,
    change_subject,
    create_subject,
    open_external_id,
    open_subject,
)
from accounts.types import Principal, SubjectRef
from consent.access import record_read
from consent.policy import decide, decide_for_new, decide_for_tenant, require
from consent.types import Act


def put_subject(
    external_id: str, data: AccountData, *, principal: Principal, if_version: int | None
) -> tuple[SubjectRef, bool]:
    """Make the person known or replace their account data; the flag says whether they are new.

    An erased person's id makes a new person: nothing of the old one is found under it.
    """
    try:
        known = subject_by_external_id(principal, external_id)
    except (NotFound, SubjectErased):
        if if_version is not None:
            raise PreconditionFailed from None
        created = create_subject(
            external_id, data, principal=principal, decide=lambda ref: decide_for_new(ref, caller=principal)
        )
        return created, True
    changed = change_subject(
        known,
        external_id,
        data,
        principal=principal,
        decision=decide(known, Act.ACCOUNT, caller=principal),
        if_version=if_version,
    )
    return changed, False


def read_subject(subject: SubjectRef, *, principal: Principal) -> OpenedSubject:
    decision = require(decide(subject, Act.ACCOUNT, caller=principal))
    grant = record_read(decision, [subject.id], action="accounts.subject.read")
    return open_subject(Subject.objects.get(id=subject.id), grant)


def read_directory(rows: QuerySet[Subject], *, principal: Principal) -> list[tuple[Subject, str]]:
    """The people of one page with the tenant's own ids of them; recorded as one read."""
    people = list(rows)
    ids: list[UUID] = [row.id for row in people]
    decision = decide_for_tenant(Act.TENANT, caller=principal)
    grant = record_read(decision, ids, action="accounts.subject.listed", counts={"items": len(ids)})
    return [(row, open_external_id(row, grant)) for row in people]
