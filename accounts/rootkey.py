"""Providers of the root key: they wrap and unwrap tenant keys. Nothing else ever sees the root key."""

import base64
import binascii
from functools import cache
from typing import Protocol
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from accounts.crypto import KEY_BYTES, EnvelopeBroken, derive, open_envelope, seal_envelope


class RootKeyUnavailable(Exception):
    """The provider cannot answer now, or does not hold the root key that wrapped this."""


class RootKeyProvider(Protocol):
    def wrap(self, key: bytes, context: bytes) -> bytes: ...
    def unwrap(self, wrapped: bytes, context: bytes) -> bytes: ...


class LocalRootKey:
    """A 256-bit key from ROOT_KEY_FILE (or ROOT_KEY), base64; kept outside the data folder and its backups."""

    def __init__(self) -> None:
        try:
            key = base64.b64decode(settings.READ_ROOT_KEY(), validate=True)
        except binascii.Error as error:
            raise ImproperlyConfigured("ROOT_KEY is not base64.") from error
        if len(key) != KEY_BYTES:
            raise ImproperlyConfigured(f"ROOT_KEY must be {KEY_BYTES} bytes in base64, not {len(key)}.")
        self._key = derive(key, "root-wrap")
        self._id = UUID(bytes=derive(key, "root-id")[:16])

    def wrap(self, key: bytes, context: bytes) -> bytes:
        return seal_envelope(key, key=self._key, key_id=self._id, associated_data=context)

    def unwrap(self, wrapped: bytes, context: bytes) -> bytes:
        try:
            return open_envelope(wrapped, key=self._key, associated_data=context)
        except EnvelopeBroken as error:
            raise RootKeyUnavailable("wrapped under another root key, or damaged") from error


@cache
def root_key() -> RootKeyProvider:
    provider: RootKeyProvider = import_string(settings.ROOT_KEY_PROVIDER)()
    return provider
