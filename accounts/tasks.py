"""Background work of accounts: the outbox relay, and what is swept."""

import json
import logging
from datetime import UTC, datetime, timedelta
from uuid import UUID

from celery import current_app, shared_task
from django.db import connections, transaction

from accounts import keystore, selectors
from accounts.models import ApiKey, Subject
from accounts.services.idempotency import forget_old_records
from accounts.services.portal import forget_old_passes
from accounts.tenancy import ALL, scope
from accounts.usage import KEY_USE, REFUSED_KEYS, lossy_store, taken
from audit import services as audit
from audit.types import Actor

logger = logging.getLogger(__name__)

RELAY_ALIAS = "relay"
RELAY_BATCH = 100
ORPHAN_AGE = timedelta(hours=1)
MOST_ORPHANS = 20
KEYS_A_PERSON = 2

_TAKE = """
    DELETE FROM accounts_outboxentry WHERE id IN (
        SELECT id FROM accounts_outboxentry ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED
    ) RETURNING task, tenant_id, subject_id, arguments
"""


@shared_task(ignore_result=True)
def relay_outbox() -> int:
    """Send what the outbox holds. An entry goes when its message is with the broker: at least once, never lost."""
    sent = 0
    while batch := _relay_batch():
        sent += batch
    return sent


def _relay_batch() -> int:
    with transaction.atomic(using=RELAY_ALIAS), connections[RELAY_ALIAS].cursor() as cursor:
        cursor.execute(_TAKE, [RELAY_BATCH])
        entries = cursor.fetchall()
        for task, tenant_id, subject_id, arguments in entries:
            person = {"subject_id": str(subject_id)} if subject_id else {}
            current_app.send_task(task, kwargs={"tenant_id": str(tenant_id)} | person | _json(arguments))
    return len(entries)


def _json(value: dict[str, str] | str) -> dict[str, str]:
    """Django hands jsonb to raw cursors as text."""
    return json.loads(value) if isinstance(value, str) else value


@shared_task(ignore_result=True)
def sweep_nightly() -> None:
    """For each tenant: keys whose person never came to be, idempotency records past their day, used passes."""
    for tenant_id in selectors.tenant_ids():
        sweep_orphan_keys(tenant_id)
        with scope(tenant_id, ALL):
            forget_old_records()
            forget_old_passes()


def sweep_orphan_keys(tenant_id: UUID, older_than: timedelta = ORPHAN_AGE) -> int:
    """Destroy keys written for a person whose row was never committed. Returns how many keys went.

    A missing row is weak evidence: a data database put back to an older state, or a wrong one, lacks many. Orphans come
    singly, so more of them than usual are left for a person to look at, and said in the process's log.
    """
    with_keys = keystore.subjects_with_keys(tenant_id, created_before=datetime.now(UTC) - older_than)
    with scope(tenant_id):
        people = set(Subject.objects.filter(id__in=with_keys).values_list("id", flat=True))
        is_empty = not Subject.objects.exists()
    orphans = with_keys - people
    if len(orphans) > _usual_orphans(len(people), is_empty=is_empty):
        logger.critical(
            "tenant %s: %d of %d people with keys have no row; no key is destroyed. Is this their database?",
            tenant_id,
            len(orphans),
            len(with_keys),
        )
        return 0
    if orphans:
        _record_sweep(tenant_id, len(orphans))
    return keystore.destroy_subject_keys(tenant_id, orphans)


def _usual_orphans(people: int, *, is_empty: bool) -> int:
    """How many persons' keys may go at once: 20, or one in twenty; 20 keys where a tenant has nobody at all."""
    return MOST_ORPHANS // KEYS_A_PERSON if is_empty else max(MOST_ORPHANS, people // 20)


def _record_sweep(tenant_id: UUID, persons: int) -> None:
    """Before the keys go: without the entry they stay."""
    audit.record_committed(
        tenant_id=tenant_id,
        actor=Actor("system", "sweep"),
        action="accounts.key.swept",
        counts={"items": persons},
    )


@shared_task(ignore_result=True)
def store_key_use() -> int:
    """Bring the counted key uses into the rows. Loses at most what Valkey lost."""
    uses: dict[str, int] = lossy_store().try_call(lambda client: taken(client, KEY_USE), default={})
    for member, seconds in uses.items():
        tenant_id, key_id = (UUID(part) for part in member.split(":"))
        with scope(tenant_id):
            ApiKey.objects.filter(id=key_id).update(last_used_at=datetime.fromtimestamp(seconds, UTC))
    return len(uses)


@shared_task(ignore_result=True)
def record_refused_keys() -> int:
    """Enter in each tenant's log how many keys that name it were refused; what names no tenant is not kept."""
    refused: dict[str, int] = lossy_store().try_call(lambda client: taken(client, REFUSED_KEYS), default={})
    known = set(selectors.tenant_ids()) if refused else set()
    for tenant_id, count in refused.items():
        if UUID(tenant_id) in known:
            audit.record_committed(
                tenant_id=UUID(tenant_id),
                actor=Actor("system", "authentication"),
                action="accounts.authentication.refused",
                decision="refused",
                reason="unauthenticated",
                counts={"attempts": count},
                result="refused",
            )
    return len(refused)
