"""Credentials of agents and back ends."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.constraints import CompositeForeignKey, tenant_keys
from accounts.tenancy import TenantModel


class ApiKey(TenantModel):
    """An API key: only its SHA-256 is kept, beside the visible last characters."""

    name = models.CharField(max_length=100)
    digest = models.BinaryField(max_length=32, editable=False)
    hint = models.CharField(max_length=8)
    scopes = ArrayField(models.CharField(max_length=32))
    project = models.ForeignKey(
        "accounts.Project", on_delete=models.PROTECT, null=True, related_name="+", db_constraint=False
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        constraints = [
            *tenant_keys(grants=(("fmn_app", "SELECT, INSERT, UPDATE"),)),
            models.UniqueConstraint(fields=["tenant", "digest"], name="accounts_apikey_digest"),
            CompositeForeignKey(
                name="accounts_apikey_project",
                columns=["tenant_id", "project_id"],
                to="accounts.Project",
                to_columns=["tenant_id", "id"],
            ),
        ]
