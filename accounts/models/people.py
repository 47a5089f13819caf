"""People remembered."""

from uuid import UUID

from django.db import models
from django.db.models.functions import Now

from accounts.constraints import RowRule, tenant_keys
from accounts.crypto import KeyUse
from accounts.fields import SealedField
from accounts.tenancy import TenantModel
from accounts.types import AgeBand, SubjectState


class Subject(TenantModel):
    """A person remembered, under the tenant's own id, which is sealed under the tenant's key: lists open no person's.

    `key_epoch` rises with every change of the person's keys, `index_version` with every change of the sealed index.
    """

    table_number = 1

    external_id_index = models.BinaryField(max_length=16, editable=False)
    # Empty only in the tombstone of an erased person.
    external_id_sealed = SealedField(number=1, use=KeyUse.TENANT, null=True)
    contact_sealed = SealedField(number=2, use=KeyUse.CONTENT, null=True)
    email_index = models.BinaryField(max_length=16, null=True, editable=False)
    content_version = models.PositiveBigIntegerField(default=1)

    locale = models.CharField(max_length=35, blank=True)
    time_zone = models.CharField(max_length=64, blank=True)
    age_band = models.CharField(
        max_length=7, default=AgeBand.UNKNOWN.value, choices=[(band.value, band.name) for band in AgeBand]
    )

    state = models.CharField(
        max_length=10, default=SubjectState.ACTIVE.value, choices=[(s.value, s.name) for s in SubjectState]
    )
    key_epoch = models.PositiveIntegerField(default=1)
    index_version = models.PositiveBigIntegerField(default=0)
    # Keyed digest of the list of index segments with their versions: an old segment put back is not on it.
    index_list_digest = models.BinaryField(max_length=32, null=True, editable=False)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        constraints = [
            *tenant_keys(rule=RowRule.TENANT, grants=(("fmn_app", "SELECT, INSERT, UPDATE"),)),
            models.UniqueConstraint(
                fields=["tenant", "external_id_index"],
                condition=~models.Q(state=SubjectState.ERASED.value),
                name="accounts_subject_external_id",
            ),
            models.UniqueConstraint(
                fields=["tenant", "email_index"],
                condition=models.Q(email_index__isnull=False) & ~models.Q(state=SubjectState.ERASED.value),
                name="accounts_subject_email",
            ),
            models.CheckConstraint(
                condition=models.Q(external_id_sealed__isnull=False) | models.Q(state=SubjectState.ERASED.value),
                name="accounts_subject_has_its_id",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "external_id_index", "created_at"], name="accounts_subject_by_id")]

    @property
    def own_subject_id(self) -> UUID:
        return self.pk
