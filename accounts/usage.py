"""What is counted off the read path: key use. Goes through Valkey, which may lose it; a job brings it into the rows.

Nothing waits for Valkey: a call takes at most a fifth of a second, and after a failure none is tried for five.
"""

import logging
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any
from uuid import UUID

import redis
from django.conf import settings

from accounts.types import Principal

logger = logging.getLogger(__name__)

CALL_SECONDS = 0.2
PAUSE_SECONDS = 5.0
KEY_USE = "fmn:key-use"
REFUSED_KEYS = "fmn:refused-keys"
MOST_REFUSED = 10_000
MOST_NOTED = 10_000


class LossyStore:
    """Valkey for what may be lost. `available` says how it is; `try_call` runs a call or returns `default`."""

    def __init__(self, url: str) -> None:
        self.client: Any = redis.Redis.from_url(url, socket_timeout=CALL_SECONDS, socket_connect_timeout=CALL_SECONDS)
        self._paused_until = 0.0
        self._lock = threading.Lock()

    def try_call[T](self, call: Callable[[Any], T], default: T) -> T:
        if self.paused:
            return default
        try:
            return call(self.client)
        except (redis.RedisError, OSError) as error:
            with self._lock:
                self._paused_until = time.monotonic() + PAUSE_SECONDS
            logger.warning("Valkey cannot be reached (%s); uses are not counted meanwhile", type(error).__name__)
            return default

    @property
    def paused(self) -> bool:
        """Whether a call has just failed, so that none is tried."""
        return time.monotonic() < self._paused_until

    def available(self) -> bool:
        return self.try_call(lambda client: bool(client.ping()), default=False)


@cache
def lossy_store() -> LossyStore:
    return LossyStore(settings.REDIS_URL)


def note_refused_key(tenant_id: UUID) -> None:
    """Count a key that opened nothing, by the tenant it claims. What tenant that is, if any, is found out later.

    Anybody may claim any tenant, so at most 10,000 of them are kept until the counts are taken, each minute; a claim of
    one more is not counted. Callers that come at the same moment may exceed that by their number.
    """
    lossy_store().try_call(lambda client: _count_refused(client, str(tenant_id)), default=None)


def _count_refused(client: Any, member: str) -> None:
    pipeline = client.pipeline(transaction=False)
    pipeline.hlen(REFUSED_KEYS)
    pipeline.hexists(REFUSED_KEYS, member)
    size, known = pipeline.execute()
    if known or size < MOST_REFUSED:
        client.hincrby(REFUSED_KEYS, member, 1)


def taken(client: Any, name: str) -> dict[str, int]:
    """A hash of counts, and remove it."""
    pipeline = client.pipeline(transaction=True)
    pipeline.hgetall(name)
    pipeline.delete(name)
    return {member.decode(): int(count) for member, count in pipeline.execute()[0].items()}


# By key, the second it was last noted in: what is kept is that second, so saying it again changes nothing.
_noted: dict[str, int] = {}


def note_key_use(principal: Principal) -> None:
    member, now = f"{principal.tenant_id}:{principal.key_id}", int(time.time())
    if _noted.get(member) == now:
        return
    if len(_noted) >= MOST_NOTED:
        _noted.clear()
    _noted[member] = now
    lossy_store().try_call(lambda client: client.hset(KEY_USE, member, now), default=0)
