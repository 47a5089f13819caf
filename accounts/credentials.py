"""The texts of credentials. Pure.

An API key is `fmn_<live|sandbox>_<tenant id, 22 base62>_<random, 32 base62>_<checksum, 6 base62>`; a pass to a person's
page `fmn_<link|visit>_<tenant id>_<person's id>_<random>_<checksum>`. Each names its tenant (and person), so that
looking it up needs no way round row security. The checksum (CRC-32 over what stands before it) lets scanners and
clients tell a credential from a typo without asking us; it is no secret.
"""

import hashlib
import re
import secrets
import string
import zlib
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from accounts.types import Mode

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_ID_LENGTH, _SECRET_LENGTH, _CHECKSUM_LENGTH = 22, 32, 6
_PATTERN = re.compile(r"(fmn_(live|sandbox)_([0-9A-Za-z]{22})_[0-9A-Za-z]{32})_([0-9A-Za-z]{6})")
_PASS_PATTERN = re.compile(r"(fmn_(link|visit)_([0-9A-Za-z]{22})_([0-9A-Za-z]{22})_[0-9A-Za-z]{32})_([0-9A-Za-z]{6})")
ID_PATTERN = f"[0-9A-Za-z]{{{_ID_LENGTH}}}"
HINT_LENGTH = 4


class PassKind(StrEnum):
    """A link is handed over and opened once; a visit is what the browser that opened it holds."""

    LINK = "link"
    VISIT = "visit"


@dataclass(frozen=True, slots=True)
class ClaimedKey:
    """What a well-formed key says of itself; nothing of it is proven yet."""

    mode: Mode
    tenant_id: UUID
    digest: bytes


@dataclass(frozen=True, slots=True)
class ClaimedPass:
    """What a well-formed pass to the privacy centre says of itself; nothing of it is proven yet."""

    tenant_id: UUID
    subject_id: UUID
    digest: bytes


def make_key(mode: Mode, tenant_id: UUID) -> str:
    return _with_checksum(f"fmn_{mode.value}_{id_text(tenant_id)}_{_secret()}")


def make_pass(kind: PassKind, tenant_id: UUID, subject_id: UUID) -> str:
    return _with_checksum(f"fmn_{kind.value}_{id_text(tenant_id)}_{id_text(subject_id)}_{_secret()}")


def parse_key(text: str) -> ClaimedKey | None:
    """None for anything that is not a key we could have made."""
    match = _PATTERN.fullmatch(text)
    if match is None or match[4] != _checksum(match[1]):
        return None
    tenant_id = id_from_text(match[3])
    return ClaimedKey(Mode(match[2]), tenant_id, key_digest(text)) if tenant_id else None


def parse_pass(kind: PassKind, text: str) -> ClaimedPass | None:
    """None for anything that is not a pass of this kind that we could have made."""
    match = _PASS_PATTERN.fullmatch(text)
    if match is None or match[2] != kind.value or match[5] != _checksum(match[1]):
        return None
    tenant_id, subject_id = id_from_text(match[3]), id_from_text(match[4])
    return ClaimedPass(tenant_id, subject_id, key_digest(text)) if tenant_id and subject_id else None


def id_text(number: UUID) -> str:
    """A UUID as 22 characters of base62, for keys and addresses."""
    return _base62(number.int, _ID_LENGTH)


def id_from_text(text: str) -> UUID | None:
    """None where 22 characters of base62 say more than 128 bits can."""
    number = _from_base62(text)
    return UUID(int=number) if number < 1 << 128 else None


def key_digest(text: str) -> bytes:
    """SHA-256: the secret has 190 bits of its own, so a slow hash would only slow every request."""
    return hashlib.sha256(text.encode()).digest()


def _secret() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH))


def _with_checksum(body: str) -> str:
    return f"{body}_{_checksum(body)}"


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), _CHECKSUM_LENGTH)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def _from_base62(text: str) -> int:
    number = 0
    for character in text:
        number = number * 62 + _ALPHABET.index(character)
    return number
