"""The Celery task of a tenant: takes ids as keywords, starts without anybody's scope, and enters its own where it needs one."""

import contextvars
from typing import Any
from uuid import UUID

from celery import Task


class TenantTask(Task):
    """`tenant_id` and every other argument arrive as text and are handed on as UUIDs; a task without a tenant raises.

    The body runs in an empty context, so that a scope of whoever called (or of the task before) can never reach it.
    """

    abstract = True

    def __call__(self, *args: object, tenant_id: str, **ids: str) -> Any:
        if args:
            raise TypeError(f"{self.name} takes keywords only.")
        given = {name: UUID(value) for name, value in ids.items() if value}
        return contextvars.Context().run(super().__call__, tenant_id=UUID(tenant_id), **given)
