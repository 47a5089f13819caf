"""Shapes of projects and jobs."""

from typing import Any

from rest_framework import serializers

from accounts.http.fields import ExactBoolean, ExactText, StrictSerializer
from accounts.models import Project
from accounts.types import JobRef


class ProjectInput(StrictSerializer):
    name = ExactText(plain=True, max_length=100)
    scoring = serializers.DictField(required=False, help_text='For example {"name": "weighted", "similarity": 0.7}.')
    undeclared_profile_keys = ExactBoolean(default=False)


class ProjectAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    scoring = serializers.DictField()
    undeclared_profile_keys = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class JobAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.CharField()
    state = serializers.ChoiceField(choices=["queued", "running", "succeeded", "failed"])
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    message = serializers.CharField()
    result = serializers.DictField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


def project_answer(row: Project) -> dict[str, Any]:
    return dict(ProjectAnswer(row).data)


def job_answer(job: JobRef) -> dict[str, Any]:
    return dict(JobAnswer(job).data)
