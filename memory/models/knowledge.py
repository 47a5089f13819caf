"""What a tenant knows: documents in chunks. Never personal, so neither text nor vectors are sealed."""

from typing import ClassVar, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from pgvector.django import HalfVectorField

from accounts.constraints import CompositeForeignKey, RowRule, RowSecurity, tenant_keys
from accounts.tenancy import TenantManager, TenantModel
from memory.models.personal import InProject, project_key


class Document(InProject, TenantModel):
    """A text as given. `version` rises when it is replaced; the chunks are always those of one version."""

    class State(models.TextChoices):
        PENDING = "pending"
        READY = "ready"
        FAILED = "failed"

    name = models.CharField(max_length=200)
    title = models.CharField(max_length=300)
    source = models.CharField(max_length=1000, blank=True)
    format = models.CharField(max_length=8, choices=[("text", "text"), ("markdown", "markdown")])
    tags = ArrayField(models.CharField(max_length=50), default=list)
    text = models.TextField()
    state = models.CharField(max_length=7, choices=State.choices, default=State.PENDING)
    version = models.PositiveIntegerField(default=1)
    chunked_version = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        constraints = [
            *tenant_keys(),
            project_key("memory_document_project"),
            models.UniqueConstraint(
                fields=["tenant", "project", "name"], nulls_distinct=False, name="memory_document_name"
            ),
        ]


class Chunk(TenantModel):
    """A piece of a document with its vector; `length` is its number of terms, for BM25."""

    document = models.ForeignKey(
        Document, on_delete=models.DO_NOTHING, related_name="chunks", db_constraint=False, db_index=False
    )
    position = models.PositiveIntegerField()
    heading = models.CharField(max_length=500, blank=True)
    text = models.TextField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    token_count = models.PositiveIntegerField()
    length = models.PositiveIntegerField()
    model_number = models.PositiveSmallIntegerField(null=True)
    # No fixed dimension: it is a property of the model. Pending (NULL) while there is no embedder.
    embedding = HalfVectorField(null=True)

    class Meta(TenantModel.Meta):
        constraints = [
            *tenant_keys(),
            CompositeForeignKey(
                name="memory_chunk_document",
                columns=["tenant_id", "document_id"],
                to="memory.Document",
                to_columns=["tenant_id", "id"],
                on_delete="cascade",
            ),
            models.UniqueConstraint(fields=["tenant", "document", "position"], name="memory_chunk_position"),
        ]


class Posting(models.Model):
    """How often a term (signed 64-bit hash) occurs in a chunk. Full-text indexes go unused under row security."""

    pk = models.CompositePrimaryKey("tenant_id", "term", "chunk_id")
    tenant_id = models.UUIDField()
    term = models.BigIntegerField()
    chunk_id = models.UUIDField()
    frequency = models.PositiveSmallIntegerField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        constraints = [
            RowSecurity(
                name="memory_posting_rows",
                rule=RowRule.TENANT,
                grants=(("fmn_app", "SELECT, INSERT, DELETE"),),
            ),
            CompositeForeignKey(
                name="memory_posting_chunk",
                columns=["tenant_id", "chunk_id"],
                to="memory.Chunk",
                to_columns=["tenant_id", "id"],
                on_delete="cascade",
            ),
        ]
        indexes = [models.Index(fields=["tenant_id", "chunk_id"], name="memory_posting_of_chunk")]
