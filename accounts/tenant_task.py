"""The Celery task of a tenant: takes ids as keywords, starts without anybody's scope, enters its own."""

import contextvars
from collections.abc import Callable
from typing import Any
from uuid import UUID

from celery import Task, shared_task

from accounts.services.jobs import fail_job
from accounts.tenancy import ALL, scope


class TenantTask(Task[..., Any]):
    """`tenant_id` and every other argument arrive as text and are handed on as UUIDs; a task without a tenant raises.

    The body runs in an empty context, so that a scope of whoever called (or of the task before) can never reach it.
    """

    abstract = True

    def __call__(self, *args: object, tenant_id: str, **ids: str) -> Any:
        if args:
            raise TypeError(f"{self.name} takes keywords only.")
        given = {name: UUID(value) for name, value in ids.items() if value}
        return contextvars.Context().run(super().__call__, tenant_id=UUID(tenant_id), **given)

    def on_failure(self, exc: Exception, task_id: str, args: object, kwargs: dict[str, str], einfo: object) -> None:
        """The last try failed: whoever asks about the job is told, by the error's code and no more."""
        if "job_id" in kwargs:
            with scope(UUID(kwargs["tenant_id"]), ALL):
                fail_job(UUID(kwargs["job_id"]), getattr(exc, "code", "failed"))


def tenant_task(base: type[TenantTask] = TenantTask, **options: Any) -> Callable[[Callable[..., Any]], TenantTask]:
    """`shared_task` on TenantTask; the body's arguments are UUIDs, a caller's are their texts."""
    return shared_task(base=base, **options)
