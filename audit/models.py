"""The log as the ORM may read it. Table, partitions, policies and triggers are plain SQL in the migration.

Only what selectors filter by is a field; everything else is read from `canonical`. Writing goes through
`audit.services`: `xid` and `epoch` have SQL defaults that an INSERT-only role cannot have returned.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class AuditEvent(models.Model):
    id = models.UUIDField(primary_key=True)
    tenant_id = models.UUIDField()
    at = models.DateTimeField()
    actor_kind = models.TextField()
    actor_id = models.TextField()
    action = models.TextField()
    subject_pseudonym = models.TextField()
    purposes = ArrayField(models.TextField())
    decision = models.TextField()
    reason = models.TextField()
    result = models.TextField()
    canonical = models.BinaryField()

    class Meta:
        managed = False
        db_table = "audit_event"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.action} {self.id}"
