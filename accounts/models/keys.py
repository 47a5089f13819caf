"""Wrapped keys: the only table of the keys database."""

from django.db import models
from uuid_utils.compat import uuid7

from accounts.constraints import RowRule, RowSecurity


class WrappedKey(models.Model):
    """A key of a tenant or a person, wrapped by the key above it. Deleting the row is destroying the key."""

    class Kind(models.TextChoices):
        TENANT = "tenant"
        TENANT_INDEX = "tenant_index"
        SUBJECT = "subject"
        SUBJECT_AUDIT = "subject_audit"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant_id = models.UUIDField()
    subject_id = models.UUIDField(null=True)
    kind = models.CharField(max_length=13, choices=Kind.choices)
    version = models.PositiveIntegerField(default=1)
    wrapped = models.BinaryField(max_length=128, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            RowSecurity(
                name="accounts_wrappedkey_rows",
                rule=RowRule.TENANT,
                grants=(("fmn_keys", "SELECT, INSERT, UPDATE, DELETE"),),
            ),
            models.UniqueConstraint(
                fields=["tenant_id", "subject_id", "kind", "version"],
                nulls_distinct=False,
                name="accounts_wrappedkey_once",
            ),
        ]
