"""Reads of accounts, inside a scope. Strangers and unknowns are NotFound alike."""

from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

from django.db.models import Count, QuerySet

from accounts import keys
from accounts.credentials import ClaimedKey
from accounts.errors import NotFound, ProjectForbidden, SubjectErased
from accounts.models import ApiKey, Directory, Job, Membership, Organisation, Project, Subject, Tenant
from accounts.tenancy import Question, Rows, ask, ask_alone, current_scope
from accounts.types import (
    AgeBand,
    Caller,
    JobRef,
    KeyState,
    KeyView,
    Member,
    Mode,
    Principal,
    Role,
    SubjectRef,
    SubjectState,
    TenantRef,
    Workplace,
)
from audit.types import Actor

# Written out, since every request asks them and Django takes longer to write them than PostgreSQL to answer.
_KEY = """
    SELECT k.id, k.scopes, k.project_id, k.expires_at, t.mode, t.key_epoch
    FROM accounts_apikey k JOIN accounts_tenant t ON t.id = k.tenant_id
    WHERE k.tenant_id = %s AND t.id = %s AND k.digest = %s AND k.revoked_at IS NULL
"""
_SUBJECT = """
    SELECT id, tenant_id, state, key_epoch, index_version, version, locale, time_zone, age_band, created_at, updated_at
    FROM accounts_subject WHERE tenant_id = %s AND
"""


def principal_of(claimed: ClaimedKey) -> Principal | None:
    """The principal of a key in force, looked for in the tenant it claims; None for every other key.

    Asked outside any scope, in a transaction of its own: a key that was revoked stops at once.
    """
    question = Question(_KEY, (claimed.tenant_id, claimed.tenant_id, claimed.digest))
    for key_id, scopes, project_id, expires_at, mode, key_epoch in ask_alone(claimed.tenant_id, question):
        if mode == claimed.mode and not (expires_at and expires_at <= datetime.now(UTC)):
            return Principal(claimed.tenant_id, key_epoch, Mode(mode), key_id, frozenset(scopes), project_id)
    return None


def key_id_of(claimed: ClaimedKey) -> UUID:
    """The id of a key, in force or not. Raises NotFound."""
    found: UUID | None = ApiKey.objects.filter(digest=claimed.digest).values_list("id", flat=True).first()
    if found is None:
        raise NotFound
    return found


def workplaces() -> list[Workplace]:
    """Where the user of the scope (`user_scope`) belongs, by organisation's name, live first."""
    roles = dict(Membership.own.values_list("tenant_id", "role"))
    entries = Directory.objects.filter(tenant_id__in=roles).select_related("organisation")
    return [
        Workplace(entry.tenant_id, entry.organisation.name, Mode(entry.mode), Role(roles[entry.tenant_id]))
        for entry in entries.order_by("organisation__name", "organisation_id", "mode")
    ]


def member_of_tenant(user_id: UUID) -> Member:
    """The user as a member of the scope's tenant. Raises NotFound for a stranger."""
    row = Membership.objects.filter(user_id=user_id).select_related("tenant__organisation").first()
    if row is None:
        raise NotFound
    return Member(
        tenant_id=row.tenant_id,
        tenant_epoch=row.tenant.key_epoch,
        mode=Mode(row.tenant.mode),
        organisation=row.tenant.organisation.name,
        user_id=user_id,
        role=Role(row.role),
    )


def names_of_actors(actors: Iterable[Actor]) -> dict[str, str]:
    """By actor's id, what the tenant calls it: a key by its name, a member by e-mail. Others have no name here."""
    by_kind: dict[str, set[str]] = {}
    for actor in actors:
        by_kind.setdefault(actor.kind, set()).add(actor.id)
    keys_named = ApiKey.objects.filter(id__in=by_kind.get("api_key", ())).values_list("id", "name", "hint")
    members = Membership.objects.filter(user_id__in=by_kind.get("user", ())).values_list("user_id", "user__email")
    return {str(key_id): f"{name} (…{hint})" for key_id, name, hint in keys_named} | {
        str(user_id): email for user_id, email in members
    }


def api_keys() -> list[KeyView]:
    """The tenant's keys, newest first; never their text."""
    now = datetime.now(UTC)
    return [
        KeyView(
            id=row.id,
            name=row.name,
            hint=row.hint,
            scopes=tuple(row.scopes),
            project=row.project.name if row.project else "",
            created_at=row.created_at,
            expires_at=row.expires_at,
            last_used_at=row.last_used_at,
            state=_key_state(row, now),
        )
        for row in ApiKey.objects.select_related("project").order_by("-created_at", "-id")
    ]


def _key_state(row: ApiKey, now: datetime) -> KeyState:
    if row.revoked_at is not None:
        return KeyState.REVOKED
    return KeyState.EXPIRED if row.expires_at is not None and row.expires_at <= now else KeyState.IN_FORCE


def subjects_by_state() -> dict[SubjectState, int]:
    """How many people the tenant knows, by their state; nobody's row is opened."""
    counted = Subject.objects.values_list("state").annotate(people=Count("id"))
    return {SubjectState(state): people for state, people in counted}


def organisation_name() -> str:
    """Of the scope's tenant."""
    return Organisation.objects.get(id=tenant_ref().organisation_id).name


def tenant_ref() -> TenantRef:
    """The tenant of the scope."""
    row = Tenant.objects.get()
    return TenantRef(id=row.id, organisation_id=row.organisation_id, mode=Mode(row.mode), key_epoch=row.key_epoch)


def tenant_ids() -> list[UUID]:
    """All tenants, from the global directory: for nightly fan-out, outside any scope."""
    return list(Directory.objects.order_by("tenant_id").values_list("tenant_id", flat=True))


def subject_by_external_id(caller: Caller, external_id: str) -> SubjectRef:
    """Raises NotFound, or SubjectErased when the last person under this id was erased."""
    # Erased people keep their row as a tombstone; the one not erased comes first.
    order = "external_id_index = %s ORDER BY (state = %s), created_at DESC LIMIT 1"
    index = external_id_index(caller, external_id)
    (rows,) = ask(Question(_SUBJECT + order, (current_scope().tenant_id, index, SubjectState.ERASED.value)))
    return subject_answered(rows)


def external_id_index(caller: Caller, external_id: str) -> bytes:
    return keys.tenant_blind_index(caller.tenant_id, caller.tenant_epoch, "subject.external_id", external_id.encode())


def subject_by_id(subject_id: UUID) -> SubjectRef:
    """Raises NotFound, SubjectErased."""
    return subject_answered(ask(subject_question(subject_id))[0])


def subject_question(subject_id: UUID) -> Question:
    """For `subject_answered`, together with others."""
    return Question(_SUBJECT + "id = %s", (current_scope().tenant_id, subject_id))


def subject_answered(rows: Rows) -> SubjectRef:
    """Raises NotFound, SubjectErased."""
    if not rows:
        raise NotFound
    subject_id, tenant_id, state, key_epoch, index_version, version, locale, time_zone, age_band, created, updated = (
        rows[0]
    )
    if state == SubjectState.ERASED:
        raise SubjectErased
    return SubjectRef(
        id=subject_id,
        tenant_id=tenant_id,
        state=SubjectState(state),
        key_epoch=key_epoch,
        index_version=index_version,
        version=version,
        locale=locale,
        time_zone=time_zone,
        age_band=AgeBand(age_band),
        created_at=created,
        updated_at=updated,
    )


def subject_ref(row: Subject) -> SubjectRef:
    return SubjectRef(
        id=row.id,
        tenant_id=row.tenant_id,
        state=SubjectState(row.state),
        key_epoch=row.key_epoch,
        index_version=row.index_version,
        version=row.version,
        locale=row.locale,
        time_zone=row.time_zone,
        age_band=AgeBand(row.age_band),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def subjects_not_erased() -> QuerySet[Subject]:
    return Subject.objects.exclude(state=SubjectState.ERASED).order_by("id")


def project_for(principal: Principal, project_id: UUID | None) -> Project | None:
    """The project a request works in: the named one, else the key's own, else none.

    Raises NotFound for an unknown project, ProjectForbidden when the key is bound to another.
    """
    if principal.project_id and project_id and project_id != principal.project_id:
        raise ProjectForbidden
    wanted = project_id or principal.project_id
    if wanted is None:
        return None
    row = Project.objects.filter(id=wanted).first()
    if row is None:
        raise NotFound("There is no such project.")
    return row


def projects_of(principal: Principal, *, after: UUID | None) -> QuerySet[Project]:
    """The projects this key may see: all, or the one it is bound to."""
    rows = Project.objects.order_by("id")
    if principal.project_id:
        rows = rows.filter(id=principal.project_id)
    return rows.filter(id__gt=after) if after else rows


def project_by_id(principal: Principal, project_id: UUID) -> Project:
    row = projects_of(principal, after=None).filter(id=project_id).first()
    if row is None:
        raise NotFound
    return row


def job_by_id(principal: Principal, job_id: UUID) -> JobRef:
    """A job of the tenant, of the key's own project if it is bound to one. The scope must be ALL."""
    row = Job.objects.filter(id=job_id).first()
    if row is None or not principal.owns(row.project_id):
        raise NotFound
    return job_ref(row)


def job_ref(row: Job) -> JobRef:
    return JobRef(
        id=row.id,
        kind=row.kind,
        state=row.state,
        done=row.done,
        total=row.total,
        message=row.message,
        result=row.result,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
