"""Memories of a person, where they came from, and the sealed index that finds them."""

from django.db import models
from django.db.models.functions import Now

from accounts.constraints import CompositeForeignKey, tenant_keys
from accounts.crypto import KeyUse
from accounts.fields import SealedField
from accounts.tenancy import PersonModel
from memory.types import Audience, Kind, SourceClass, State


class InProject(models.Model):
    """May belong to one project; without one it is the tenant's or person's at large."""

    project = models.ForeignKey(
        "accounts.Project", null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )

    class Meta:
        abstract = True


def project_key(name: str) -> CompositeForeignKey:
    return CompositeForeignKey(
        name=name, columns=["tenant_id", "project_id"], to="accounts.Project", to_columns=["tenant_id", "id"]
    )


class Session(InProject, PersonModel):
    """A conversation a memory may come from. The tenant's name of it is sealed; the digest finds it again."""

    table_number = 3

    name_digest = models.BinaryField(max_length=32, editable=False)
    name_sealed = SealedField(number=1, use=KeyUse.CONTENT)
    content_version = models.PositiveBigIntegerField(default=1)
    created_at = models.DateTimeField(db_default=Now())

    class Meta(PersonModel.Meta):
        constraints = [
            *tenant_keys(person=True),
            project_key("memory_session_project"),
            models.UniqueConstraint(fields=["tenant", "subject", "name_digest"], name="memory_session_once"),
        ]


class Memory(InProject, PersonModel):
    """One memory. Text, categories and metadata are sealed; the columns hold nothing that tells what it says.

    What ranking needs stands a second time in the sealed index and is changed in the same transaction.
    """

    table_number = 4

    agent = models.CharField(max_length=100, blank=True)
    session = models.ForeignKey(
        Session, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    content_sealed = SealedField(number=1, use=KeyUse.CONTENT)
    content_version = models.PositiveBigIntegerField(default=1)

    kind = models.PositiveSmallIntegerField(choices=[(kind.value, kind.name) for kind in Kind])
    state = models.PositiveSmallIntegerField(choices=[(state.value, state.name) for state in State])
    source_class = models.PositiveSmallIntegerField(choices=[(source.value, source.name) for source in SourceClass])
    audience = models.PositiveSmallIntegerField(choices=[(audience.value, audience.name) for audience in Audience])
    purpose = models.CharField(max_length=40)
    written_by = models.CharField(max_length=64)
    importance = models.FloatField()
    confidence = models.FloatField()

    valid_from = models.DateTimeField()
    valid_to = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True)
    superseded_by = models.ForeignKey(
        "self", null=True, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    expires_at = models.DateTimeField(null=True)
    confirmed_at = models.DateTimeField(null=True)

    # Brought in from Valkey by a job, off the read path; loss tolerated.
    access_count = models.PositiveIntegerField(default=0)
    last_accessed_at = models.DateTimeField(null=True)

    class Meta(PersonModel.Meta):
        constraints = [
            *tenant_keys(person=True),
            project_key("memory_memory_project"),
            CompositeForeignKey(
                name="memory_memory_session",
                columns=["tenant_id", "subject_id", "session_id"],
                to="memory.Session",
                to_columns=["tenant_id", "subject_id", "id"],
            ),
            CompositeForeignKey(
                name="memory_memory_superseded_by",
                columns=["tenant_id", "subject_id", "superseded_by_id"],
                to="memory.Memory",
                to_columns=["tenant_id", "subject_id", "id"],
                on_delete="superseded_by_id",
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "subject", "superseded_by"],
                condition=models.Q(superseded_by__isnull=False),
                name="memory_memory_successor",
            ),
        ]


class Lineage(PersonModel):
    """One step of descent, written when it happens: this memory was made from, or in place of, that one."""

    memory = models.ForeignKey(
        Memory, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    source = models.ForeignKey(
        Memory, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    relation = models.CharField(max_length=10, choices=[("supersedes", "supersedes"), ("derived", "derived")])

    class Meta(PersonModel.Meta):
        constraints = [
            *tenant_keys(person=True),
            *(
                CompositeForeignKey(
                    name=f"memory_lineage_{end}",
                    columns=["tenant_id", "subject_id", f"{end}_id"],
                    to="memory.Memory",
                    to_columns=["tenant_id", "subject_id", "id"],
                    on_delete="cascade",
                )
                for end in ("memory", "source")
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "subject", "source"], name="memory_lineage_of_source"),
            models.Index(fields=["tenant", "subject", "memory"], name="memory_lineage_of_memory"),
        ]


class IndexSegment(PersonModel):
    """A sealed blob of index entries, see memory.segments. Written and merged by memory.index alone."""

    table_number = 5

    entries = models.PositiveIntegerField()
    # How many entries wait for a vector; lets a job find them without opening anything.
    pending = models.PositiveIntegerField(default=0)
    body_sealed = SealedField(number=1, use=KeyUse.INDEX)
    content_version = models.PositiveBigIntegerField(default=1)

    class Meta(PersonModel.Meta):
        constraints = tenant_keys(person=True)
        indexes = [
            models.Index(fields=["tenant"], condition=models.Q(pending__gt=0), name="memory_segment_pending"),
        ]
