"""Opening organisations, tenants and projects, and giving members their roles."""

from collections.abc import Callable
from uuid import UUID

from django.db import IntegrityError, transaction
from uuid_utils.compat import uuid7

from accounts import keystore
from accounts.errors import Conflict, NotFound
from accounts.models import Directory, Membership, Organisation, Project, Tenant, User
from accounts.tenancy import current_scope, scope
from accounts.types import Mode, Role, TenantRef
from audit import services as audit
from audit.types import Actor


def create_organisation(name: str) -> UUID:
    return Organisation.objects.create(name=name).id


def open_tenant(
    organisation_id: UUID, mode: Mode, *, actor: Actor, furnish: Callable[[TenantRef], None] | None = None
) -> TenantRef:
    """Open a live or sandbox tenant with its keys; `furnish` fills it in the same transaction.

    The keys are committed first: a tenant without keys cannot exist; keys without a tenant open nothing.
    """
    tenant_id = uuid7()
    keystore.create_tenant_keys(tenant_id)
    with scope(tenant_id):
        row = Tenant(id=tenant_id, organisation_id=organisation_id, mode=mode)
        row.save(force_insert=True)
        Directory.objects.create(tenant_id=tenant_id, organisation_id=organisation_id, mode=mode)
        audit.record_in_transaction(
            tenant_id=tenant_id, actor=actor, action="accounts.tenant.opened", resource_ids=[tenant_id]
        )
        opened = TenantRef(id=tenant_id, organisation_id=organisation_id, mode=mode, key_epoch=row.key_epoch)
        if furnish is not None:
            furnish(opened)
    return opened


def create_project(
    name: str,
    *,
    actor: Actor,
    scoring: dict[str, object] | None = None,
    undeclared_profile_keys: bool = False,
) -> Project:
    """Raises Conflict when the tenant has a project of this name."""
    tenant_id = current_scope().tenant_id
    row = Project(
        tenant_id=tenant_id, name=name, scoring=scoring or {}, undeclared_profile_keys=undeclared_profile_keys
    )
    _save_under_its_name(row)
    audit.record_in_transaction(
        tenant_id=tenant_id, actor=actor, action="accounts.project.created", resource_ids=[row.id]
    )
    return row


def change_project(
    project_id: UUID, *, actor: Actor, name: str, scoring: dict[str, object], undeclared_profile_keys: bool
) -> Project:
    """Replace a project's name and settings. Raises NotFound, Conflict when another one has the name."""
    row = Project.objects.select_for_update(no_key=True).filter(id=project_id).first()
    if row is None:
        raise NotFound
    row.name, row.scoring, row.undeclared_profile_keys = name, scoring, undeclared_profile_keys
    _save_under_its_name(row)
    audit.record_in_transaction(
        tenant_id=row.tenant_id, actor=actor, action="accounts.project.changed", resource_ids=[row.id]
    )
    return row


def _save_under_its_name(row: Project) -> None:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise Conflict("There is a project of this name already.") from error


def grant_membership(user: User, role: Role, *, actor: Actor) -> UUID:
    """Give a user a role in the tenant of the scope; giving it again changes the role."""
    tenant_id = current_scope().tenant_id
    row, _ = Membership.objects.update_or_create(tenant_id=tenant_id, user=user, defaults={"role": role})
    audit.record_in_transaction(
        tenant_id=tenant_id, actor=actor, action="accounts.membership.granted", resource_ids=[row.id]
    )
    return row.id
