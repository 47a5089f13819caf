"""Background work: a job to ask about, and an outbox entry that sends its task once the transaction has committed."""

import logging
from typing import Any, Literal
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from accounts.models import Job, OutboxEntry
from accounts.selectors import job_ref
from accounts.tenancy import Reach, current_scope
from accounts.types import JobRef
from accounts.usage import lossy_store
from audit import services as audit
from audit.types import Actor

logger = logging.getLogger(__name__)


def queue_job(kind: str, task: str, *, project_id: UUID | None, **arguments: UUID) -> JobRef:
    """Write a job and the outbox entry of its task, in the caller's transaction. Arguments are ids, and only ids."""
    entered = current_scope()
    subject_id = None if isinstance(entered.subject, Reach) else entered.subject
    job = Job.objects.create(tenant_id=entered.tenant_id, subject_id=subject_id, project_id=project_id, kind=kind)
    job.refresh_from_db()
    send_later(task, job_id=job.id, **arguments)
    return job_ref(job)


def send_later(task: str, **arguments: UUID) -> None:
    """Have a task sent after the commit: at once by a nudge, within seconds by the relay when the nudge is lost."""
    entered = current_scope()
    subject_id = None if isinstance(entered.subject, Reach) else entered.subject
    OutboxEntry.objects.create(
        tenant_id=entered.tenant_id,
        subject_id=subject_id,
        task=task,
        arguments={name: str(value) for name, value in arguments.items()},
    )
    transaction.on_commit(nudge_relay)


def nudge_relay() -> None:
    from accounts.tasks import relay_outbox  # leaf

    if not lossy_store().available():
        return
    try:
        relay_outbox.apply_async(retry=False)
    except OperationalError:
        logger.warning("the outbox relay could not be nudged; the schedule will run it")


def start_job(job_id: UUID, total: int) -> None:
    _set(job_id, state=Job.State.RUNNING, total=total)


def advance_job(job_id: UUID, done: int) -> None:
    _set(job_id, done=done)


def finish_job(job_id: UUID, result: dict[str, Any]) -> None:
    """`result` holds ids and counts."""
    if _set(job_id, state=Job.State.SUCCEEDED, result=result, message=""):
        _record_end(job_id, "ok")


def fail_job(job_id: UUID, code: str) -> None:
    if _set(job_id, state=Job.State.FAILED, message=code):
        _record_end(job_id, "failed")


def _record_end(job_id: UUID, result: Literal["ok", "failed"]) -> None:
    audit.record_in_transaction(
        tenant_id=current_scope().tenant_id,
        actor=Actor("system", "jobs"),
        action="accounts.job.finished",
        resource_ids=[job_id],
        result=result,
    )


def _set(job_id: UUID, **values: Any) -> bool:
    """Change a job that has not ended; a task handed out a second time cannot reopen one. False when it has ended."""
    unended = Job.objects.filter(id=job_id, state__in=(Job.State.QUEUED, Job.State.RUNNING))
    return unended.update(updated_at=Now(), **values) > 0
