"""Organisations and their members (global), tenants and projects."""

from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models.functions import Lower, Now
from uuid_utils.compat import uuid7

from accounts.constraints import RowRule, RowSecurity, tenant_keys
from accounts.tenancy import TenantManager, TenantModel, current_scope
from accounts.types import Mode, Role


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None) -> "User":
        user = self.model(email=self.normalize_email(email))
        user.set_password(password)
        user.save(using=self._db)
        return user


class User(AbstractBaseUser):
    """A person on the tenant's side: signs in, belongs to organisations through memberships."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.EmailField(max_length=254, unique=True)
    name = models.CharField(max_length=150, blank=True)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects = UserManager()

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="accounts_user_email_any_case")]

    def __str__(self) -> str:
        return self.email


class Organisation(models.Model):
    """A customer. Owns tenants; has no personal data of the people they remember."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)


class Directory(models.Model):
    """The global list of opaque tenant ids, for sign-in, switching and nightly fan-out. Holds nothing else."""

    tenant_id = models.UUIDField(primary_key=True)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    mode = models.CharField(max_length=7, choices=[(mode.value, mode.name) for mode in Mode])


class TenantItselfManager(models.Manager["Tenant"]):
    def get_queryset(self) -> models.QuerySet["Tenant"]:
        return super().get_queryset().filter(id=current_scope().tenant_id)


class Tenant(models.Model):
    """One wall: live or sandbox of an organisation. `key_epoch` rises when its keys change or go."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    mode = models.CharField(max_length=7, choices=[(mode.value, mode.name) for mode in Mode])
    key_epoch = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TenantItselfManager()

    class Meta:
        base_manager_name = "objects"
        constraints = [
            RowSecurity(
                name="accounts_tenant_rows",
                rule=RowRule.TENANT_ITSELF,
                grants=(("fmn_app", "SELECT, INSERT, UPDATE"),),
            ),
            models.UniqueConstraint(fields=["organisation", "mode"], name="accounts_tenant_one_a_mode"),
        ]


class OwnMembershipManager(models.Manager["Membership"]):
    """Those of the scope's user, in every tenant; row security shows a user no other's."""

    def get_queryset(self) -> models.QuerySet["Membership"]:
        user_id = current_scope().user_id
        return super().get_queryset().filter(user_id=user_id) if user_id else self.none()


class Membership(TenantModel):
    """A user's role in one tenant, so that roles differ between live and sandbox."""

    objects = TenantManager()  # type: ignore[misc]  # again, so that it stays the default one
    own = OwnMembershipManager()

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    role = models.CharField(max_length=15, choices=[(role.value, role.name) for role in Role])
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        constraints = [
            *tenant_keys(rule=RowRule.MEMBERSHIP),
            models.UniqueConstraint(fields=["tenant", "user"], name="accounts_membership_once"),
        ]


class Project(TenantModel):
    """One product or agent deployment inside a tenant, with its recall policy and its rule for profile keys."""

    name = models.CharField(max_length=100)
    # memory.ranking policy by name with its parameters, e.g. {"name": "weighted", "similarity": 0.7}; empty: evidence.
    scoring = models.JSONField(default=dict)
    undeclared_profile_keys = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True, db_default=Now())

    class Meta(TenantModel.Meta):
        constraints = [
            *tenant_keys(),
            models.UniqueConstraint(fields=["tenant", "name"], name="accounts_project_name"),
        ]
