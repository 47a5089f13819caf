"""Credentials: of agents and back ends, and of people on their way to their own page."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.constraints import CompositeForeignKey, tenant_keys
from accounts.tenancy import PersonModel, TenantModel


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


class PortalPass(PersonModel):
    """A link to a person's own page, opened once, and the visit it became. Only digests are kept.

    `opened_at` is when the link was exchanged; from then on the visit's digest and end count.
    """

    link_digest = models.BinaryField(max_length=32, editable=False)
    link_expires_at = models.DateTimeField()
    opened_at = models.DateTimeField(null=True)
    visit_digest = models.BinaryField(max_length=32, null=True, editable=False)
    visit_expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(PersonModel.Meta):
        constraints = [
            *tenant_keys(person=True),
            models.UniqueConstraint(fields=["tenant", "subject", "link_digest"], name="accounts_portalpass_link"),
            models.UniqueConstraint(fields=["tenant", "subject", "visit_digest"], name="accounts_portalpass_visit"),
            models.CheckConstraint(
                condition=models.Q(opened_at=None, visit_digest=None, visit_expires_at=None)
                | models.Q(opened_at__isnull=False, visit_digest__isnull=False, visit_expires_at__isnull=False),
                name="accounts_portalpass_whole",
            ),
        ]
