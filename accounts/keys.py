"""The door to sealed values. Two keys to turn, in this order, and no third way.

A `Decision` (made by consent.policy.decide alone) seals, and opens *index* data: vectors, token hashes, counts;
a `Grant` (made by consent.access.record_read alone, its audit entry committed) opens *contents* of named rows.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Never
from uuid import UUID

from accounts import keystore
from accounts.crypto import (
    Binding,
    EnvelopeBroken,
    KeyUse,
    blind_index,
    derive,
    envelope_key_id,
    keyed_digest,
    open_envelope,
    pseudonym,
    seal_envelope,
)
from accounts.errors import TagMismatch
from accounts.fields import Sealed, SealedField
from accounts.types import SubjectRef
from audit import services as audit
from audit.types import Actor

logger = logging.getLogger(__name__)

_LABELS = {KeyUse.CONTENT: "content", KeyUse.INDEX: "index", KeyUse.TENANT: "tenant-content", KeyUse.PROOF: "proof"}


class NotGranted(Exception):
    """A sealed value was opened without the decision or grant that covers it: a fault of the code, never an answer."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What consent.policy.decide said, at the moment it said it.

    `purposes` are the purposes it rests on, `granted` all that are in force for the person, `consent_refs` the ledger
    entries that gave them. `subject` is None for what concerns the tenant alone.
    """

    tenant_id: UUID
    tenant_epoch: int
    subject: SubjectRef | None
    action: str
    actor: Actor
    project_id: UUID | None
    allowed: bool
    reason: str
    purposes: tuple[str, ...]
    granted: frozenset[str]
    consent_refs: tuple[str, ...]

    def require(self) -> "Decision":
        """Itself when allowed; else NotGranted: the caller should have answered with the refusal."""
        if not self.allowed:
            raise NotGranted(self.action)
        return self

    def covers(self, binding: Binding) -> bool:
        if not self.allowed or binding.tenant_id != self.tenant_id:
            return False
        return binding.use is KeyUse.TENANT or (self.subject is not None and binding.subject_id == self.subject.id)


@dataclass(frozen=True, slots=True)
class Grant:
    """A decision whose reading of these rows stands in the audit log."""

    decision: Decision
    ids: frozenset[UUID]
    event_id: UUID


def subject_of(decision: Decision) -> SubjectRef:
    """The person an allowed decision is about. Raises NotGranted for a refusal and for what concerns no person."""
    subject = decision.require().subject
    if subject is None:
        raise NotGranted(decision.action)
    return subject


def open_index(sealed: Sealed, decision: Decision) -> bytes:
    """Open index data under a decision. Raises TagMismatch, KeyDestroyed, KeyUnavailable, NotGranted."""
    binding = _bound(sealed)
    if binding.use is not KeyUse.INDEX or not decision.covers(binding):
        raise NotGranted(decision.action)
    return _open(sealed, binding, decision)


def open_content(sealed: Sealed, grant: Grant) -> bytes:
    """Open the content of a row the grant names. Raises TagMismatch, KeyDestroyed, KeyUnavailable, NotGranted."""
    binding = _bound(sealed)
    if binding.use is KeyUse.INDEX or binding.row_id not in grant.ids or not grant.decision.covers(binding):
        raise NotGranted(grant.decision.action)
    return _open(sealed, binding, grant.decision)


def seal_fields(instance: Any, decision: Decision, **plaintexts: bytes | None) -> None:
    """Seal all sealed fields of a row anew, under the next content version. None leaves a nullable field empty.

    A row not yet saved keeps its version. Every sealed field must be named: one under the old version would not open.
    """
    fields = {field.name: field for field in instance._meta.concrete_fields if isinstance(field, SealedField)}
    if set(plaintexts) != set(fields):
        raise TypeError(f"seal_fields takes exactly {sorted(fields)}")
    if not instance._state.adding:
        instance.content_version += 1
    for name, plaintext in plaintexts.items():
        setattr(
            instance,
            name,
            None if plaintext is None else _seal(plaintext, fields[name].binding_of(instance), decision),
        )


def term_key(decision: Decision) -> bytes:
    """The key of the token hashes inside a person's index.

    Derived from the key that is not rotated, so that a rotation of the others leaves every hash findable.
    """
    return derive(_subject_keys(decision).steady, "terms")


def list_digest(decision: Decision, parts: Iterable[bytes]) -> bytes:
    """32 bytes over a list of what belongs to the person, in its order; only who has the person's keys can make it."""
    return keyed_digest(derive(_subject_keys(decision).steady, "list"), *parts)


def subject_pseudonym(tenant_epoch: int, subject: SubjectRef) -> str:
    """The person's name in audit and ledger, 32 hex digits. Raises KeyDestroyed after erasure."""
    keys = keystore.subject_keys(subject.tenant_id, tenant_epoch, subject.id, subject.key_epoch)
    return pseudonym(keys.steady, subject.id)


def tenant_blind_index(tenant_id: UUID, tenant_epoch: int, field: str, value: bytes) -> bytes:
    """16 bytes, equal for equal values of one tenant and field, and only there."""
    return blind_index(keystore.tenant_keys(tenant_id, tenant_epoch).steady, field, value)


def tenant_digest(tenant_id: UUID, tenant_epoch: int, *parts: bytes) -> bytes:
    """32 bytes, keyed by the tenant: for telling two requests apart without keeping either."""
    return keyed_digest(keystore.tenant_keys(tenant_id, tenant_epoch).steady, b"digest/1", *parts)


def _bound(sealed: Sealed) -> Binding:
    if sealed.binding is None:
        raise NotGranted("a sealed value without its row cannot be opened")
    return sealed.binding


def _subject_keys(decision: Decision) -> keystore.KeySet:
    subject = subject_of(decision)
    return keystore.subject_keys(decision.tenant_id, decision.tenant_epoch, subject.id, subject.key_epoch)


def _owner_keys(binding: Binding, decision: Decision) -> keystore.KeySet:
    if binding.use is KeyUse.TENANT:
        return keystore.tenant_keys(decision.tenant_id, decision.tenant_epoch)
    return _subject_keys(decision)


def _keys_of(binding: Binding, decision: Decision) -> dict[UUID, bytes]:
    """By id, the keys that may open a value in this place: of its owner, and of its use."""
    keys = _owner_keys(binding, decision)
    return {keys.steady_id: keys.steady} if binding.use is KeyUse.PROOF else keys.by_id


def _key_for(key_id: UUID, binding: Binding, decision: Decision) -> bytes:
    """The key is chosen by id among the owner's own; another's id opens nothing."""
    try:
        return _keys_of(binding, decision)[key_id]
    except KeyError:
        raise TagMismatch from None


def _seal(plaintext: bytes, binding: Binding, decision: Decision) -> Sealed:
    if not decision.covers(binding):
        raise NotGranted(decision.action)
    keys = _owner_keys(binding, decision)
    key_id = keys.steady_id if binding.use is KeyUse.PROOF else keys.current_id
    envelope = seal_envelope(
        plaintext,
        key=derive(_key_for(key_id, binding, decision), _LABELS[binding.use]),
        key_id=key_id,
        associated_data=binding.associated_data(),
    )
    return Sealed(envelope, binding)


def _open(sealed: Sealed, binding: Binding, decision: Decision) -> bytes:
    try:
        key = _key_for(envelope_key_id(sealed.envelope), binding, decision)
        label = _LABELS[binding.use]
        return open_envelope(sealed.envelope, key=derive(key, label), associated_data=binding.associated_data())
    except (EnvelopeBroken, TagMismatch):
        raise_alarm(decision, binding.row_id)


def raise_alarm(decision: Decision, row_id: UUID) -> Never:
    """Record that a stored value is not what was sealed there, then raise TagMismatch."""
    logger.critical("sealed value not authentic: row %s", row_id)
    # A person who looks is named by the pseudonym: their row's id beside it would tie the two for ever.
    by_person = decision.actor.kind == "person" and decision.subject is not None and row_id == decision.subject.id
    audit.record_refusal(
        tenant_id=decision.tenant_id,
        actor=decision.actor,
        action="accounts.seal.mismatched",
        reason="tag_mismatch",
        resource_ids=[] if by_person else [row_id],
    )
    raise TagMismatch
