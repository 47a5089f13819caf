"""Term hashes of shared knowledge: 64 bits, signed as PostgreSQL's bigint, keyed by tenant so no two share them."""

import hashlib
from uuid import UUID


def posting_key(tenant_id: UUID) -> bytes:
    """Not a secret (the text beside it is plain): it keeps one tenant's postings useless for another's."""
    return hashlib.sha256(b"fmn-postings/1" + tenant_id.bytes).digest()


def signed(term: int) -> int:
    """uint64 as the int64 with the same bits."""
    return term - (1 << 64) if term >= 1 << 63 else term


def unsigned(term: int) -> int:
    return term + (1 << 64) if term < 0 else term
