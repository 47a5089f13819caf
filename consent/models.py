"""Purposes with their notices; the ledger of what people said; where each person stands."""

from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from accounts.constraints import AppendOnly, CompositeForeignKey, RowRule, tenant_keys
from accounts.crypto import KeyUse
from accounts.fields import SealedField
from accounts.tenancy import PersonModel, TenantModel
from consent.types import ConsentActor, LedgerEvent

_READ_AND_ADD = (("fmn_app", "SELECT, INSERT"),)


class Purpose(TenantModel):
    """What data may be used for. `current` is the version people are asked about."""

    key = models.CharField(max_length=40)
    current = models.PositiveIntegerField(default=1)

    class Meta(TenantModel.Meta):
        constraints = [
            *tenant_keys(),
            models.UniqueConstraint(fields=["tenant", "key"], name="consent_purpose_key"),
        ]


class PurposeVersion(TenantModel):
    """One published version; never changed afterwards, so that what was agreed to stays provable."""

    purpose = models.ForeignKey(Purpose, on_delete=models.PROTECT, related_name="versions", db_constraint=False)
    number = models.PositiveIntegerField()
    legal_basis = models.CharField(max_length=20, default="consent")
    retention_days = models.PositiveIntegerField(null=True)
    categories = ArrayField(models.CharField(max_length=40), default=list)
    published_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        constraints = [
            *tenant_keys(grants=_READ_AND_ADD),
            AppendOnly(name="consent_purposeversion_kept"),
            models.UniqueConstraint(fields=["tenant", "purpose", "number"], name="consent_purposeversion_number"),
            CompositeForeignKey(
                name="consent_purposeversion_purpose",
                columns=["tenant_id", "purpose_id"],
                to="consent.Purpose",
                to_columns=["tenant_id", "id"],
            ),
        ]


class Notice(TenantModel):
    """The exact text of a version in one language, and its SHA-256 in hex."""

    version = models.ForeignKey(PurposeVersion, on_delete=models.PROTECT, related_name="notices", db_constraint=False)
    language = models.CharField(max_length=35)
    text = models.TextField()
    digest = models.CharField(max_length=64)

    class Meta(TenantModel.Meta):
        constraints = [
            *tenant_keys(grants=_READ_AND_ADD),
            AppendOnly(name="consent_notice_kept"),
            models.UniqueConstraint(fields=["tenant", "version", "language"], name="consent_notice_language"),
            CompositeForeignKey(
                name="consent_notice_version",
                columns=["tenant_id", "version_id"],
                to="consent.PurposeVersion",
                to_columns=["tenant_id", "id"],
            ),
        ]


class ConsentEvent(TenantModel):
    """The ledger: what a person said, under their pseudonym alone, so that it can stay as proof after they are erased.

    The evidence is sealed with the person's key that is not rotated, since no row here can be sealed anew.
    """

    table_number = 2
    # Seals the evidence for its person; the column that would name them does not exist.
    own_subject_id: UUID | None = None

    subject_pseudonym = models.CharField(max_length=32)
    purpose = models.CharField(max_length=40)
    version = models.PositiveIntegerField()
    notice_digest = models.CharField(max_length=64)
    event = models.CharField(max_length=9, choices=[(event.value, event.name) for event in LedgerEvent])
    language = models.CharField(max_length=35)
    surface = models.CharField(max_length=40)
    method = models.CharField(max_length=40)
    spoken_by = models.CharField(max_length=8, choices=[(actor.value, actor.name) for actor in ConsentActor])
    recorded_by = models.CharField(max_length=36)
    evidence_sealed = SealedField(number=1, use=KeyUse.PROOF, null=True)
    content_version = models.PositiveBigIntegerField(default=1)
    occurred_at = models.DateTimeField()
    recorded_at = models.DateTimeField(db_default=Now())
    valid_until = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        constraints = [
            *tenant_keys(rule=RowRule.PSEUDONYM, grants=_READ_AND_ADD),
            AppendOnly(name="consent_ledger_kept"),
        ]
        indexes = [models.Index(fields=["tenant", "subject_pseudonym", "id"], name="consent_event_of_person")]


class ConsentState(PersonModel):
    """Where a person stands on a purpose: the ledger's last word, kept for asking. `event_id` names that entry."""

    purpose = models.CharField(max_length=40)
    state = models.CharField(max_length=9, choices=[(event.value, event.name) for event in LedgerEvent])
    version = models.PositiveIntegerField()
    spoken_by = models.CharField(max_length=8, choices=[(actor.value, actor.name) for actor in ConsentActor])
    event_id = models.UUIDField()
    since = models.DateTimeField()
    valid_until = models.DateTimeField(null=True)

    class Meta(PersonModel.Meta):
        constraints = [
            *tenant_keys(person=True),
            models.UniqueConstraint(fields=["tenant", "subject", "purpose"], name="consent_state_once"),
            CompositeForeignKey(
                name="consent_state_event",
                columns=["tenant_id", "event_id"],
                to="consent.ConsentEvent",
                to_columns=["tenant_id", "id"],
            ),
        ]
