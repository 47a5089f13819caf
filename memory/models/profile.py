"""The profile: typed keys a tenant or project declares, and each person's sealed values."""

from django.db import models
from django.db.models.functions import Now

from accounts.constraints import tenant_keys
from accounts.crypto import KeyUse
from accounts.fields import SealedField
from accounts.tenancy import PersonModel, TenantModel
from memory.models.personal import InProject, project_key


class ProfileKey(InProject, TenantModel):
    """A declared key: the JSON Schema its values satisfy, and whether they are sensitive."""

    key = models.CharField(max_length=100)
    schema = models.JSONField(default=dict)
    sensitive = models.BooleanField(default=False)
    updated_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        constraints = [
            *tenant_keys(),
            project_key("memory_profilekey_project"),
            models.UniqueConstraint(
                fields=["tenant", "project", "key"], nulls_distinct=False, name="memory_profilekey_once"
            ),
        ]


class ProfileEntry(InProject, PersonModel):
    """One value. The key's name is sealed with it, since a name such as `health.allergies` says something by itself."""

    table_number = 6

    key_digest = models.BinaryField(max_length=32, editable=False)
    value_sealed = SealedField(number=1, use=KeyUse.CONTENT)
    facets_sealed = SealedField(number=2, use=KeyUse.INDEX)
    content_version = models.PositiveBigIntegerField(default=1)
    version = models.PositiveIntegerField(default=1)
    written_by = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta(PersonModel.Meta):
        constraints = [
            *tenant_keys(person=True),
            project_key("memory_profileentry_project"),
            models.UniqueConstraint(
                fields=["tenant", "subject", "project", "key_digest"],
                nulls_distinct=False,
                name="memory_profileentry_once",
            ),
        ]
