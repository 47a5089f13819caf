"""What every app shares to get work done once: jobs, the outbox, idempotency records."""

from django.db import models
from django.db.models.functions import Now

from accounts.constraints import CompositeForeignKey, tenant_keys
from accounts.tenancy import OptionalPersonModel


class Job(OptionalPersonModel):
    """Background work one can ask about. Result and message carry ids, counts and codes; never content."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        SUCCEEDED = "succeeded"
        FAILED = "failed"

    project = models.ForeignKey(
        "accounts.Project", null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    kind = models.CharField(max_length=40)
    state = models.CharField(max_length=9, choices=State.choices, default=State.QUEUED)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    message = models.CharField(max_length=200, blank=True)
    result = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    class Meta(OptionalPersonModel.Meta):
        constraints = [
            *tenant_keys(person=True),
            CompositeForeignKey(
                name="accounts_job_project",
                columns=["tenant_id", "project_id"],
                to="accounts.Project",
                to_columns=["tenant_id", "id"],
            ),
        ]


class OutboxEntry(OptionalPersonModel):
    """A task to be sent once its transaction has committed: a name and ids. The relay sends and removes it."""

    task = models.CharField(max_length=100)
    arguments = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())

    class Meta(OptionalPersonModel.Meta):
        constraints = tenant_keys(
            person=True,
            grants=(("fmn_app", "SELECT, INSERT, DELETE"),),
            open_to=(("fmn_relay", "SELECT, UPDATE, DELETE"),),
        )


class IdempotencyRecord(OptionalPersonModel):
    """What a write with an Idempotency-Key answered: ids, versions, states. Digests are keyed; no content is kept."""

    key_digest = models.BinaryField(max_length=32, editable=False)
    request_digest = models.BinaryField(max_length=32, editable=False)
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())

    class Meta(OptionalPersonModel.Meta):
        constraints = [
            *tenant_keys(person=True),
            models.UniqueConstraint(fields=["tenant", "key_digest"], name="accounts_idempotency_once"),
        ]
        indexes = [models.Index(fields=["tenant", "created_at"], name="accounts_idempotency_age")]
