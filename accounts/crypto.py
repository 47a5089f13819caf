"""Bytes in, bytes out: the envelope, its associated data, key derivation, blind indexes. Pure; knows no Django.

Formats are frozen by tests/accounts/test_crypto.py: what was sealed once must open for ever. A change is a new
version byte beside the old one, never a change of the old one.
"""

import hashlib
import hmac
import os
from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32
FORMAT = 1
ALGORITHM_AES_256_GCM = 1
NONCE_BYTES = 12
TAG_BYTES = 16
HEADER_BYTES = 2 + 16 + NONCE_BYTES
MIN_ENVELOPE_BYTES = HEADER_BYTES + TAG_BYTES
_NO_SUBJECT = UUID(int=0)


class KeyUse(IntEnum):
    """Which key of the hierarchy a sealed field is under (trust.md 2)."""

    CONTENT = 1
    INDEX = 2
    TENANT = 3
    # Proof that stays when content keys rotate, and is unreadable once the person's keys are destroyed.
    PROOF = 4


class EnvelopeBroken(Exception):
    """Not an envelope of a known format, or its tag does not fit key, place or bytes."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The one place a sealed value may be opened in: tenant, person, row, field and content version."""

    tenant_id: UUID
    subject_id: UUID | None
    table: int
    row_id: UUID
    field: int
    version: int
    use: KeyUse

    def associated_data(self) -> bytes:
        """Length-prefixed, so that no two places give the same bytes: (u8 length, bytes) for each part."""
        parts = (
            bytes([FORMAT]),
            self.tenant_id.bytes,
            (self.subject_id or _NO_SUBJECT).bytes,
            self.table.to_bytes(2, "big"),
            self.row_id.bytes,
            self.field.to_bytes(2, "big"),
            self.version.to_bytes(8, "big"),
            bytes([self.use]),
        )
        return b"".join(bytes([len(part)]) + part for part in parts)


def new_key() -> bytes:
    return os.urandom(KEY_BYTES)


def derive(key: bytes, label: str) -> bytes:
    """HKDF-SHA256 (RFC 5869) of a 256-bit key for one use; labels are part of the frozen format."""
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=f"fmn/1/{label}".encode()).derive(key)


def seal_envelope(plaintext: bytes, *, key: bytes, key_id: UUID, associated_data: bytes) -> bytes:
    """`version | algorithm | key id (16) | nonce (12) | ciphertext ‖ tag`, AES-256-GCM (NIST SP 800-38D)."""
    nonce = os.urandom(NONCE_BYTES)
    header = bytes([FORMAT, ALGORITHM_AES_256_GCM]) + key_id.bytes
    return header + nonce + AESGCM(key).encrypt(nonce, plaintext, header + associated_data)


def envelope_key_id(envelope: bytes) -> UUID:
    if len(envelope) < MIN_ENVELOPE_BYTES or envelope[0] != FORMAT or envelope[1] != ALGORITHM_AES_256_GCM:
        raise EnvelopeBroken("unknown envelope format")
    return UUID(bytes=bytes(envelope[2:18]))


def open_envelope(envelope: bytes, *, key: bytes, associated_data: bytes) -> bytes:
    """Raises EnvelopeBroken; there is no trial of other keys and no partial result."""
    envelope_key_id(envelope)
    header, nonce = envelope[:18], envelope[18:HEADER_BYTES]
    try:
        return AESGCM(key).decrypt(nonce, envelope[HEADER_BYTES:], header + associated_data)
    except InvalidTag as error:
        raise EnvelopeBroken("tag mismatch") from error


def wrap_context(*, tenant_id: UUID, subject_id: UUID | None, kind: str, version: int) -> bytes:
    """Associated data of a wrapped key: a wrapped key put in another's row does not unwrap."""
    return b"|".join(
        (b"fmn-wrap/1", tenant_id.bytes, (subject_id or _NO_SUBJECT).bytes, kind.encode(), b"%d" % version)
    )


def keyed_digest(key: bytes, *parts: bytes) -> bytes:
    """HMAC-SHA256 over length-prefixed parts (u32 big-endian length, bytes)."""
    message = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return hmac.digest(key, message, hashlib.sha256)


def blind_index(key: bytes, field: str, value: bytes) -> bytes:
    """16 bytes to look a high-entropy value up by equality without storing it."""
    return keyed_digest(key, b"blind-index/1", field.encode(), value)[:16]


def pseudonym(audit_key: bytes, subject_id: UUID) -> str:
    """A person's name in audit and ledger: 32 hex digits, unlinkable once the audit key is destroyed."""
    return keyed_digest(audit_key, b"pseudonym/1", subject_id.bytes)[:16].hex()
