"""What is counted when a memory is recalled: through Valkey, off the read path, loss tolerated."""

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from accounts.types import SubjectRef
from accounts.usage import lossy_store

COUNTS = "fmn:memory-use:counts"
TIMES = "fmn:memory-use:times"


def note_memory_use(tenant_id: UUID, subject: SubjectRef | None, ids: Sequence[UUID]) -> bool:
    """Count one use of each. False when Valkey did not take it."""
    if subject is None or not ids:
        return True
    members = [f"{tenant_id}:{subject.id}:{memory_id}" for memory_id in ids]
    return lossy_store().try_call(lambda client: _count(client, members), default=False)


def take_memory_uses() -> dict[str, tuple[int, int]]:
    """All counts since the last time, and remove them: (uses, Unix seconds of the last) by "tenant:subject:memory"."""
    return lossy_store().try_call(_take, default={})


def _count(client: Any, members: Sequence[str]) -> bool:
    pipeline = client.pipeline(transaction=False)
    now = int(time.time())
    for member in members:
        pipeline.hincrby(COUNTS, member, 1)
    pipeline.hset(TIMES, mapping=dict.fromkeys(members, now))
    pipeline.execute()
    return True


def _take(client: Any) -> dict[str, tuple[int, int]]:
    pipeline = client.pipeline(transaction=True)
    pipeline.hgetall(COUNTS)
    pipeline.hgetall(TIMES)
    pipeline.delete(COUNTS, TIMES)
    counts, times, _ = pipeline.execute()
    return {member.decode(): (int(count), int(times.get(member, 0))) for member, count in counts.items()}
