"""Background work: a job to ask about, and an outbox entry that sends its task once the transaction has committed."""

import logging
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from accounts.models import Job, OutboxEntry
from accounts.selectors import job_ref
from accounts.tenancy import Reach, current_scope
from accounts.types import JobRef
from accounts.usage import lossy_store

logger = logging.getLogger(__name__)


def queue_job(kind: str, task: str, **arguments: UUID) -> JobRef:
    """Write a job and the outbox entry of its task, in the caller's transaction. Arguments are ids, and only ids."""
    entered = current_scope()
    subject_id = None if isinstance(entered.subject, Reach) else entered.subject
    job = Job.objects.create(tenant_id=entered.tenant_id, subject_id=subject_id, kind=kind)
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
    _set(job_id, state=Job.State.SUCCEEDED, result=result, message="")


def fail_job(job_id: UUID, code: str) -> None:
    _set(job_id, state=Job.State.FAILED, message=code)


def _set(job_id: UUID, **values: Any) -> None:
    Job.objects.filter(id=job_id).update(updated_at=Now(), **values)
