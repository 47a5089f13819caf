"""The keys database: wrapped keys written, read, unwrapped, and held in memory for up to a minute.

`accounts.keys` is the door to what they open; tests/house/test_doors.py lists who else may import this. The cache is
keyed by the epoch that comes with the tenant's or person's row, so rotation and erasure take effect at once everywhere.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from django.db import Error, connections, transaction
from uuid_utils.compat import uuid7

from accounts.crypto import (
    EnvelopeBroken,
    derive,
    envelope_key_id,
    new_key,
    open_envelope,
    seal_envelope,
    wrap_context,
)
from accounts.errors import KeyDestroyed, KeyUnavailable
from accounts.models import WrappedKey
from accounts.rootkey import RootKeyUnavailable, root_key

KEYS_ALIAS = "keys"
CACHE_SECONDS = 60.0
CACHE_ENTRIES = 4096

type Unwrapper = Callable[[bytes, bytes], bytes]


@dataclass(frozen=True, slots=True)
class KeySet:
    """Unwrapped keys of one owner. `by_id` holds every version that still opens something; `current_id` seals."""

    current_id: UUID
    by_id: dict[UUID, bytes] = field(repr=False)
    # The key that is never rotated: a tenant's index key, a person's audit key.
    steady_id: UUID
    steady: bytes = field(repr=False)


class _Cache:
    """Bounded, by age and number; safe from any thread."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[UUID, UUID | None, int], tuple[float, KeySet]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, owner: tuple[UUID, UUID | None, int]) -> KeySet | None:
        with self._lock:
            found = self._entries.get(owner)
            if found is None or found[0] < time.monotonic():
                self._entries.pop(owner, None)
                return None
            return found[1]

    def put(self, owner: tuple[UUID, UUID | None, int], keys: KeySet) -> None:
        with self._lock:
            self._entries[owner] = (time.monotonic() + CACHE_SECONDS, keys)
            while len(self._entries) > CACHE_ENTRIES:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()


cache = _Cache()


def tenant_keys(tenant_id: UUID, epoch: int) -> KeySet:
    """Raises KeyUnavailable when the keys database or the root key cannot be reached."""
    owner = (tenant_id, None, epoch)
    found = cache.get(owner)
    if found is None:
        found = _key_set(_rows(tenant_id, None), WrappedKey.Kind.TENANT, WrappedKey.Kind.TENANT_INDEX)
        cache.put(owner, found)
    return found


def subject_keys(tenant_id: UUID, tenant_epoch: int, subject_id: UUID, epoch: int) -> KeySet:
    """Raises KeyDestroyed when the person has no key any more, KeyUnavailable when it cannot be had now."""
    owner = (tenant_id, subject_id, epoch)
    found = cache.get(owner)
    if found is None:
        unwrap = _under(tenant_keys(tenant_id, tenant_epoch).by_id)
        rows = _rows(tenant_id, subject_id)
        found = _key_set(rows, WrappedKey.Kind.SUBJECT, WrappedKey.Kind.SUBJECT_AUDIT, unwrap)
        cache.put(owner, found)
    return found


def create_tenant_keys(tenant_id: UUID) -> None:
    """Write a tenant's key and index key; committed before the tenant's row is."""
    key = new_key()
    key_row = _new_row(tenant_id, None, WrappedKey.Kind.TENANT, key, root_key().wrap)
    index_row = _new_row(tenant_id, None, WrappedKey.Kind.TENANT_INDEX, new_key(), _wrap_under(key_row.id, key))
    _store(tenant_id, (key_row, index_row))


def create_subject_keys(tenant_id: UUID, tenant_epoch: int, subject_id: UUID) -> None:
    """Write a person's random key and independent audit key, before the person's row; orphans are swept."""
    tenant = tenant_keys(tenant_id, tenant_epoch)
    wrap = _wrap_under(tenant.current_id, tenant.by_id[tenant.current_id])
    kinds = (WrappedKey.Kind.SUBJECT, WrappedKey.Kind.SUBJECT_AUDIT)
    _store(tenant_id, [_new_row(tenant_id, subject_id, kind, new_key(), wrap) for kind in kinds])


def destroy_subject_keys(tenant_id: UUID, subject_ids: Iterable[UUID]) -> int:
    """Delete all versions of these persons' keys. Returns how many keys went; calling twice is harmless."""
    with _keys_scope(tenant_id):
        deleted, _ = WrappedKey.objects.filter(tenant_id=tenant_id, subject_id__in=list(subject_ids)).delete()
    return deleted


def count_subject_keys(tenant_id: UUID, subject_id: UUID) -> int:
    with _keys_scope(tenant_id):
        return WrappedKey.objects.filter(tenant_id=tenant_id, subject_id=subject_id).count()


def subjects_with_keys(tenant_id: UUID, *, created_before: object) -> set[UUID]:
    with _keys_scope(tenant_id):
        rows = WrappedKey.objects.filter(tenant_id=tenant_id, subject_id__isnull=False, created_at__lt=created_before)
        return {subject_id for subject_id in rows.values_list("subject_id", flat=True).distinct() if subject_id}


@contextmanager
def _keys_scope(tenant_id: UUID) -> Iterator[None]:
    """One transaction on the keys database with its tenant set; database errors become KeyUnavailable."""
    try:
        with transaction.atomic(using=KEYS_ALIAS):
            with connections[KEYS_ALIAS].cursor() as cursor:
                cursor.execute("SELECT set_config('app.tenant_id', %s, true)", [str(tenant_id)])
            yield
    except Error as error:
        connections[KEYS_ALIAS].close()
        raise KeyUnavailable from error


def _rows(tenant_id: UUID, subject_id: UUID | None) -> list[WrappedKey]:
    with _keys_scope(tenant_id):
        rows = WrappedKey.objects.filter(tenant_id=tenant_id, subject_id=subject_id).order_by("version")
        return list(rows)


def _store(tenant_id: UUID, rows: Iterable[WrappedKey]) -> None:
    with _keys_scope(tenant_id):
        WrappedKey.objects.bulk_create(list(rows))


def _key_set(rows: list[WrappedKey], versioned: str, steady: str, unwrap: Unwrapper | None = None) -> KeySet:
    """`unwrap` opens all of them; without it the root key opens the versioned ones and those open the steady one."""
    versions = [row for row in rows if row.kind == versioned]
    fixed = next((row for row in rows if row.kind == steady), None)
    if not versions or fixed is None:
        raise KeyDestroyed
    keys = {row.id: (unwrap or _root_unwrap)(bytes(row.wrapped), _context(row)) for row in versions}
    steady_key = (unwrap or _under(keys))(bytes(fixed.wrapped), _context(fixed))
    return KeySet(current_id=versions[-1].id, by_id=keys, steady_id=fixed.id, steady=steady_key)


def _context(row: WrappedKey) -> bytes:
    return wrap_context(tenant_id=row.tenant_id, subject_id=row.subject_id, kind=row.kind, version=row.version)


def _new_row(
    tenant_id: UUID, subject_id: UUID | None, kind: str, key: bytes, wrap: Callable[[bytes, bytes], bytes]
) -> WrappedKey:
    row = WrappedKey(id=uuid7(), tenant_id=tenant_id, subject_id=subject_id, kind=kind, version=1)
    row.wrapped = wrap(key, _context(row))
    return row


def _root_unwrap(wrapped: bytes, context: bytes) -> bytes:
    try:
        return root_key().unwrap(wrapped, context)
    except RootKeyUnavailable as error:
        raise KeyUnavailable("The root key does not open this tenant's key.") from error


def _wrap_under(key_id: UUID, key: bytes) -> Callable[[bytes, bytes], bytes]:
    wrapping = derive(key, "wrap")
    return lambda plain, context: seal_envelope(plain, key=wrapping, key_id=key_id, associated_data=context)


def _under(tenant_keys_by_id: dict[UUID, bytes]) -> Unwrapper:
    def unwrap(wrapped: bytes, context: bytes) -> bytes:
        try:
            key = tenant_keys_by_id[envelope_key_id(wrapped)]
            return open_envelope(wrapped, key=derive(key, "wrap"), associated_data=context)
        except (KeyError, EnvelopeBroken) as error:
            raise KeyUnavailable("A wrapped key does not fit its tenant's key.") from error

    return unwrap
