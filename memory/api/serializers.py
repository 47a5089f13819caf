"""Shapes of memories, recall and profile."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from accounts.http.fields import (
    ExactBoolean,
    ExactChoice,
    ExactId,
    ExactInstant,
    ExactInteger,
    ExactList,
    ExactNumber,
    ExactPattern,
    ExactText,
    SmallObject,
    StrictSerializer,
)
from accounts.http.paging import PageQuery
from memory.ranking import DEFAULT_POLICY, POLICIES, PolicyInvalid
from memory.services.recalling import policy_for
from memory.types import Audience, Kind, SourceClass, State

MAX_TEXT = 8000
MAX_BATCH = 100
MAX_METADATA_BYTES = 4096
MAX_SCHEMA_BYTES = 8192
_CATEGORY = r"^[a-z][a-z0-9_]{0,39}$"
_NAME = 100


def names(enum: Any) -> list[str]:
    return [member.name.lower() for member in enum]


KINDS, STATES, AUDIENCES, ALL_SOURCES = names(Kind), names(State), names(Audience), names(SourceClass)
# What a key may say of where a memory comes from; confirmed by the person is for the person alone to say.
SOURCES = [name for name in ALL_SOURCES if name != SourceClass.PERSON_CONFIRMED.name.lower()]


def _policy_shape(name: str) -> dict[str, Any]:
    """A policy and the ranges of its parameters. The default one need not be named."""
    parameters = {
        parameter: {"type": "number", "minimum": low, "maximum": high}
        for parameter, (low, high) in POLICIES[name].ranges.items()
    }
    named = {"type": "string", "enum": [name]}
    shape = {"type": "object", "properties": {"name": named, **parameters}, "additionalProperties": False}
    return shape if name == DEFAULT_POLICY else shape | {"required": ["name"]}


class ScoringField(SmallObject):
    """A scoring policy by name, with its parameters; an unknown one is refused here and not when somebody recalls."""

    schema_facets: ClassVar = {"anyOf": [_policy_shape(name) for name in sorted(POLICIES)]}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value: dict[str, Any] = super().to_internal_value(data)
        try:
            policy_for(value)
        except PolicyInvalid as error:
            raise serializers.ValidationError(str(error)) from error
        return value


class MemoryItem(StrictSerializer):
    """One memory, stored as given. Exactly the text sent is kept; it is normalised only for search."""

    text = ExactText(max_length=MAX_TEXT, says_something=True)
    kind = ExactChoice(choices=KINDS, default="semantic")
    source = ExactChoice(choices=SOURCES, default="agent_inference")  # type: ignore[assignment] # a field's name
    importance = ExactNumber(min_value=0, max_value=1, default=0.5)
    confidence = ExactNumber(min_value=0, max_value=1, default=1.0)
    categories = ExactList(child=ExactPattern(_CATEGORY), max_length=10, default=list)
    metadata = SmallObject(default=dict, max_bytes=MAX_METADATA_BYTES, help_text="Sealed with the text.")
    occurred_at = ExactInstant(required=False, help_text="When it was said or happened; not in the future.")
    expires_at = ExactInstant(required=False)
    agent = ExactText(plain=True, max_length=_NAME, allow_blank=True, default="")
    session = ExactText(plain=True, max_length=255, allow_blank=True, default="")
    audience = ExactChoice(choices=AUDIENCES, default="private")
    supersedes = ExactList(child=ExactId(), max_length=20, default=list)
    derived_from = ExactList(child=ExactId(), max_length=100, default=list)


class InferLater(ExactBoolean):
    """Only `false` is taken yet."""

    schema_facets: ClassVar = {"enum": [False]}


@extend_schema_serializer(exclude_fields=["messages"])
class MemoryInput(MemoryItem):
    """One memory."""

    project = ExactId(required=False)
    infer = InferLater(default=False)
    messages = serializers.JSONField(required=False, help_text="Not taken yet.")


class BatchInput(StrictSerializer):
    """Up to 100 memories, stored all or none."""

    project = ExactId(required=False)
    infer = InferLater(default=False)
    items = ExactList(child=MemoryItem(), min_length=1, max_length=MAX_BATCH)


class StoredAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=STATES)
    version = serializers.IntegerField()
    vector = serializers.ChoiceField(choices=["stored", "pending"])


class MemoriesStored(serializers.Serializer[Any]):
    memories = StoredAnswer(many=True)
    degraded = serializers.ListField(child=serializers.CharField())


class MemoryState(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    state = serializers.CharField()


class MemoryAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    text = serializers.CharField()
    kind = serializers.ChoiceField(choices=KINDS)
    state = serializers.ChoiceField(choices=STATES)
    source = serializers.ChoiceField(choices=ALL_SOURCES)  # type: ignore[assignment] # a field's name
    audience = serializers.ChoiceField(choices=AUDIENCES)
    importance = serializers.FloatField()
    confidence = serializers.FloatField()
    categories = serializers.ListField(child=serializers.CharField())
    metadata = serializers.DictField()
    project = serializers.UUIDField(allow_null=True, source="project_id")
    agent = serializers.CharField()
    session_id = serializers.UUIDField(allow_null=True)
    occurred_at = serializers.DateTimeField()
    valid_to = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    superseded_by = serializers.UUIDField(allow_null=True)
    version = serializers.IntegerField()
    access_count = serializers.IntegerField()
    last_accessed_at = serializers.DateTimeField(allow_null=True)


class MemoriesQuery(PageQuery):
    project = ExactId(required=False)
    agent = ExactText(plain=True, max_length=_NAME, allow_blank=True, default="")
    across_projects = serializers.BooleanField(default=False)
    history = serializers.BooleanField(default=False, help_text="Show what was replaced or has run out too.")
    kind = ExactChoice(choices=KINDS, required=False)
    category = ExactPattern(_CATEGORY, required=False)
    created_after = ExactInstant(required=False)


class OneMemoryQuery(StrictSerializer):
    project = ExactId(required=False)
    agent = ExactText(plain=True, max_length=_NAME, allow_blank=True, default="")
    across_projects = serializers.BooleanField(default=False)


class RecallInput(StrictSerializer):
    """A question, and where to look."""

    query = ExactText(max_length=MAX_TEXT, says_something=True)
    project = ExactId(required=False, help_text="None: unscoped memories only.")
    agent = ExactText(plain=True, max_length=_NAME, allow_blank=True, default="")
    session = ExactText(plain=True, max_length=255, allow_blank=True, default="", help_text="Only what came from it.")
    across_projects = ExactBoolean(default=False, help_text="Needs memory.share.")
    as_of = ExactInstant(required=False, help_text="Event time; now when left out.")
    kinds = ExactList(child=ExactChoice(choices=KINDS), max_length=3, default=list)
    categories = ExactList(child=ExactPattern(_CATEGORY), max_length=10, default=list)
    created_after = ExactInstant(required=False)
    limit = ExactInteger(min_value=1, max_value=50, default=5)
    knowledge_limit = ExactInteger(min_value=0, max_value=20, default=5)
    budget_tokens = ExactInteger(min_value=0, max_value=32000, default=2000)
    scoring = ScoringField(required=False, help_text='For example {"name": "decay"}.')
    explain = ExactBoolean(default=False)


class RecalledAnswer(MemoryAnswer):
    score = serializers.FloatField()
    critical = serializers.BooleanField()
    explain = serializers.DictField(required=False)


class PersonalStatus(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=["answered", "refused"])
    code = serializers.CharField(allow_null=True)


class ProfileLineAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    key = serializers.CharField()
    value = serializers.JSONField()
    project = serializers.UUIDField(allow_null=True, source="project_id")
    version = serializers.IntegerField()
    updated_at = serializers.DateTimeField()


class PassageAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    document_id = serializers.UUIDField()
    document_version = serializers.IntegerField()
    title = serializers.CharField()
    heading = serializers.CharField()
    text = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment] # a field's name
    created_at = serializers.DateTimeField()
    score = serializers.FloatField()
    explain = serializers.DictField(required=False)


class LeftOutAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    reason = serializers.CharField()


class ContextAnswer(serializers.Serializer[Any]):
    text = serializers.CharField()
    tokens = serializers.IntegerField()
    included = serializers.ListField(child=serializers.UUIDField())
    left_out = LeftOutAnswer(many=True)


class LeftOutPart(serializers.Serializer[Any]):
    part = serializers.ChoiceField(choices=["profile", "knowledge"])
    code = serializers.CharField(help_text="`scope_missing`: the key may not read this part.")


class RecallAnswer(serializers.Serializer[Any]):
    recall_id = serializers.UUIDField(help_text="The id of this read in the audit log.")
    personal = PersonalStatus()
    memories = RecalledAnswer(many=True)
    profile = ProfileLineAnswer(many=True)
    knowledge = PassageAnswer(many=True)
    context = ContextAnswer()  # type: ignore[assignment] # a field's name
    degraded = serializers.ListField(child=serializers.ChoiceField(choices=["embedder", "usage"]))
    left_out_parts = LeftOutPart(many=True)
    dropped = serializers.ListField(child=serializers.DictField(), required=False)


class ProfileInput(StrictSerializer):
    """A value that satisfies the schema of its key: up to 4096 bytes, 16 levels deep."""

    value = serializers.JSONField()


class ProjectQuery(StrictSerializer):
    project = ExactId(required=False)


class ProfileState(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    version = serializers.IntegerField()


class ProfileKeyInput(StrictSerializer):
    """What values a key may have."""

    schema = SmallObject(default=dict, max_bytes=MAX_SCHEMA_BYTES, help_text="JSON Schema 2020-12 of the values.")
    sensitive = ExactBoolean(default=False)


class ProfileKeyAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    key = serializers.CharField()
    project = serializers.UUIDField(allow_null=True, source="project_id")
    schema = serializers.DictField()
    sensitive = serializers.BooleanField()
    updated_at = serializers.DateTimeField()
