"""The text of an API key: `fmn_<live|sandbox>_<tenant id, 22 base62>_<random, 32 base62>_<checksum, 6 base62>`. Pure.

The key names its tenant, so that looking it up needs no way round row security. The checksum (CRC-32 over what stands
before it) lets scanners and clients tell a key from a typo without asking us; it is no secret.
"""

import hashlib
import re
import secrets
import string
import zlib
from dataclasses import dataclass
from uuid import UUID

from accounts.types import Mode

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_ID_LENGTH, _SECRET_LENGTH, _CHECKSUM_LENGTH = 22, 32, 6
_PATTERN = re.compile(r"(fmn_(live|sandbox)_([0-9A-Za-z]{22})_[0-9A-Za-z]{32})_([0-9A-Za-z]{6})")
HINT_LENGTH = 4


@dataclass(frozen=True, slots=True)
class ClaimedKey:
    """What a well-formed key says of itself; nothing of it is proven yet."""

    mode: Mode
    tenant_id: UUID
    digest: bytes


def make_key(mode: Mode, tenant_id: UUID) -> str:
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH))
    body = f"fmn_{mode.value}_{_base62(tenant_id.int, _ID_LENGTH)}_{secret}"
    return f"{body}_{_checksum(body)}"


def parse_key(text: str) -> ClaimedKey | None:
    """None for anything that is not a key we could have made."""
    match = _PATTERN.fullmatch(text)
    if match is None or match[4] != _checksum(match[1]):
        return None
    number = _from_base62(match[3])
    if number >= 1 << 128:
        return None
    return ClaimedKey(Mode(match[2]), UUID(int=number), key_digest(text))


def key_digest(text: str) -> bytes:
    """SHA-256: the secret has 190 bits of its own, so a slow hash would only slow every request."""
    return hashlib.sha256(text.encode()).digest()


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
