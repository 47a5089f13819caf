"""Shapes of jobs."""

from typing import Any

from rest_framework import serializers

from accounts.types import JobRef

JOB_STATES = ["queued", "running", "succeeded", "failed"]


class JobAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.CharField()
    state = serializers.ChoiceField(choices=JOB_STATES)
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    message = serializers.CharField()
    result = serializers.DictField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


def job_answer(job: JobRef) -> dict[str, Any]:
    return dict(JobAnswer(job).data)
