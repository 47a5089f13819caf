"""The bytes of an event that are stored, hashed and later shown to a verifier: format "fmn-audit-event/1".

JSON with sorted keys, no spaces and integers only, so that any language gets the same bytes; times are whole
microseconds since 1970. A verifier hashes the stored bytes and never serialises anew. Frozen vectors are in
the tests: a change of any byte is a new format number.
"""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from audit.errors import NotCanonical, UndeclaredField
from audit.types import Actor, Event

FORMAT = "fmn-audit-event/1"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def canonical_bytes(event: Event) -> bytes:
    document = {
        "format": FORMAT,
        "id": str(event.id),
        "tenant_id": str(event.tenant_id),
        "at": (event.at - _EPOCH) // _MICROSECOND,
        "actor": {"kind": event.actor.kind, "id": event.actor.id, "on_behalf_of": event.actor.on_behalf_of},
        "action": event.action,
        "resource": {"kind": event.resource_kind, "ids": [str(each) for each in event.resource_ids]},
        "subject_pseudonym": event.subject_pseudonym,
        "purposes": event.purposes,
        "consent_refs": event.consent_refs,
        "decision": event.decision,
        "reason": event.reason,
        "request_id": event.request_id,
        "counts": dict(event.counts),
        "result": event.result,
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def event_from_canonical(data: bytes) -> Event:
    """The event these bytes say. Raises `NotCanonical` for another format or what no event may hold."""
    try:
        document = json.loads(data)
        event = _event_from_document(document)
    except (ValueError, TypeError, KeyError, AttributeError, UndeclaredField, OverflowError) as error:
        raise NotCanonical(FORMAT) from error
    if document["format"] != FORMAT or canonical_bytes(event) != data:
        raise NotCanonical(FORMAT)
    return event


def _event_from_document(document: dict[str, Any]) -> Event:
    return Event(
        id=UUID(document["id"]),
        tenant_id=UUID(document["tenant_id"]),
        at=_EPOCH + document["at"] * _MICROSECOND,
        actor=Actor(**document["actor"]),
        action=document["action"],
        resource_kind=document["resource"]["kind"],
        resource_ids=tuple(UUID(each) for each in document["resource"]["ids"]),
        subject_pseudonym=document["subject_pseudonym"],
        purposes=tuple(document["purposes"]),
        consent_refs=tuple(document["consent_refs"]),
        decision=document["decision"],
        reason=document["reason"],
        request_id=document["request_id"],
        counts=document["counts"],
        result=document["result"],
    )


def leaf_hash(data: bytes) -> bytes:
    """SHA-256(0x00 || data): the leaf of a Merkle tree, RFC 9162 section 2.1.1. 32 bytes."""
    return hashlib.sha256(b"\x00" + data).digest()
