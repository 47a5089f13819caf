"""The Celery task of a tenant: takes ids as keywords, starts without anybody's scope, enters its own."""

import contextvars
from collections.abc import Callable
from typing import Any
from uuid import UUID

from celery import Task, shared_task


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


def tenant_task[**P, R](**options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`shared_task` on TenantTask; the body's arguments are UUIDs, a caller's are their texts."""
    return shared_task(base=TenantTask, **options)
