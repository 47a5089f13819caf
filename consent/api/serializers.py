"""Shapes of people, purposes, consents and audit events."""

from typing import Any
from zoneinfo import available_timezones

from rest_framework import serializers

from accounts.http.fields import (
    ExactChoice,
    ExactEmail,
    ExactInstant,
    ExactList,
    ExactPattern,
    ExactText,
    StrictSerializer,
)
from accounts.http.paging import PageQuery
from accounts.types import AgeBand
from consent.types import ConsentActor, LedgerEvent, PurposeKey

SPOKEN = [LedgerEvent.GIVEN.value, LedgerEvent.REFUSED.value, LedgerEvent.WITHDRAWN.value]
_CODE = r"^[a-z][a-z0-9_.-]{0,39}$"
_LANGUAGE = r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$"


class TimeZone(ExactText):
    """A name of the IANA database."""

    default_error_messages = {"unknown": "Not an IANA time zone."}

    def __init__(self, **options: Any) -> None:
        super().__init__(plain=True, max_length=64, **options)
        self.schema_facets = {"format": "iana-time-zone"}

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if name and name not in available_timezones():
            self.fail("unknown")
        return name


class SubjectInput(StrictSerializer):
    """A person's account data. E-mail and name are sealed. What is left out is emptied: PUT replaces."""

    email = ExactEmail(max_length=254, allow_blank=True, default="")
    name = ExactText(max_length=200, allow_blank=True, default="")
    locale = ExactPattern(_LANGUAGE, max_length=35, allow_blank=True, default="")
    time_zone = TimeZone(allow_blank=True, default="", help_text="IANA name.")
    age_band = ExactChoice(choices=[band.value for band in AgeBand], default=AgeBand.UNKNOWN.value)


class SubjectState(serializers.Serializer[Any]):
    """What a write answers: no content."""

    id = serializers.UUIDField()
    state = serializers.CharField()
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class SubjectAnswer(SubjectState):
    external_id = serializers.CharField()
    email = serializers.CharField()
    name = serializers.CharField()
    locale = serializers.CharField()
    time_zone = serializers.CharField()
    age_band = serializers.ChoiceField(choices=[band.value for band in AgeBand])


class SubjectListed(SubjectState):
    external_id = serializers.CharField()


class NoticeAnswer(serializers.Serializer[Any]):
    language = serializers.CharField()
    text = serializers.CharField()
    digest = serializers.CharField(help_text="SHA-256 of the text, hex.")


class PurposeAnswer(serializers.Serializer[Any]):
    key = serializers.CharField()
    version = serializers.IntegerField()
    legal_basis = serializers.CharField()
    retention_days = serializers.IntegerField(allow_null=True)
    categories = serializers.ListField(child=serializers.CharField())
    published_at = serializers.DateTimeField()
    notices = NoticeAnswer(many=True)


class ConsentInput(StrictSerializer):
    """What the person said. A key relays it: `spoken_by` says who spoke, `evidence` what shows it."""

    purposes = ExactList(
        child=ExactChoice(choices=[key.value for key in PurposeKey]),
        min_length=1,
        max_length=len(PurposeKey),
        unique=True,
    )
    event = ExactChoice(choices=SPOKEN)
    spoken_by = ExactChoice(choices=[actor.value for actor in ConsentActor], default=ConsentActor.AGENT.value)
    language = ExactPattern(_LANGUAGE, max_length=35, default="en")
    surface = ExactPattern(_CODE, default="api", help_text="Where it was said, for example `chat`.")
    method = ExactPattern(_CODE, default="relayed", help_text="How, for example `typed`, `button`.")
    evidence = ExactText(max_length=2000, allow_blank=True, default="", help_text="Kept sealed with the person's key.")
    occurred_at = ExactInstant(required=False)
    valid_until = ExactInstant(required=False)
    notice_digests = ExactList(child=ExactPattern(r"^[0-9a-f]{64}$"), max_length=len(PurposeKey), default=list)


class ConsentAnswer(serializers.Serializer[Any]):
    purpose = serializers.CharField()
    state = serializers.CharField()
    version = serializers.IntegerField()
    since = serializers.DateTimeField()
    valid_until = serializers.DateTimeField(allow_null=True)
    event_id = serializers.UUIDField()
    spoken_by = serializers.CharField()


class LedgerEntry(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    purpose = serializers.CharField()
    version = serializers.IntegerField()
    event = serializers.CharField()
    notice_digest = serializers.CharField()
    language = serializers.CharField()
    surface = serializers.CharField()
    method = serializers.CharField()
    spoken_by = serializers.CharField()
    occurred_at = serializers.DateTimeField()
    recorded_at = serializers.DateTimeField()
    valid_until = serializers.DateTimeField(allow_null=True)


class ConsentsAnswer(serializers.Serializer[Any]):
    consents = ConsentAnswer(many=True)
    history = LedgerEntry(many=True)
    next_cursor = serializers.CharField(allow_null=True, help_text="Of the history; None on its last page.")


class ConsentsState(serializers.Serializer[Any]):
    event_ids = serializers.ListField(child=serializers.UUIDField(), help_text="What this request entered.")
    consents = ConsentAnswer(many=True)


class PortalLinkInput(StrictSerializer):
    """Nothing can be chosen yet."""


class PortalLinkAnswer(serializers.Serializer[Any]):
    url = serializers.URLField(help_text="Hand it to the person; whoever opens it first sees what is remembered.")
    expires_at = serializers.DateTimeField()


class AuditQuery(PageQuery):
    action = ExactPattern(r"^[a-z_]+(\.[a-z_]+){2}$", required=False)
    decision = ExactChoice(choices=["allowed", "refused"], required=False)
    actor = serializers.CharField(max_length=64, required=False, help_text="Id of the acting key, member or part.")
    subject = ExactText(max_length=255, required=False, help_text="The tenant's id of a person.")
    since = ExactInstant(required=False)
    before = ExactInstant(required=False)


class ActorAnswer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    id = serializers.CharField()
    on_behalf_of = serializers.CharField()


class AuditEventAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    at = serializers.DateTimeField()
    actor = ActorAnswer()
    action = serializers.CharField()
    resource_kind = serializers.CharField()
    resource_ids = serializers.ListField(child=serializers.UUIDField())
    subject_pseudonym = serializers.CharField()
    purposes = serializers.ListField(child=serializers.CharField())
    consent_refs = serializers.ListField(child=serializers.CharField())
    decision = serializers.CharField()
    reason = serializers.CharField()
    request_id = serializers.CharField()
    counts = serializers.DictField(child=serializers.IntegerField())
    result = serializers.CharField()
