"""Values that cross app borders: ids and states, never rows."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from audit.types import Actor


class Mode(StrEnum):
    LIVE = "live"
    SANDBOX = "sandbox"


class Role(StrEnum):
    OWNER = "owner"
    ADMIN = "admin"
    DEVELOPER = "developer"
    PRIVACY_OFFICER = "privacy_officer"
    AUDITOR = "auditor"


class SubjectState(StrEnum):
    ACTIVE = "active"
    RESTRICTED = "restricted"
    OBJECTED = "objected"
    ERASED = "erased"


class AgeBand(StrEnum):
    UNKNOWN = "unknown"
    CHILD = "child"
    ADULT = "adult"


@dataclass(frozen=True, slots=True)
class SubjectRef:
    """A person remembered, as far as any app may know without opening anything."""

    id: UUID
    tenant_id: UUID
    state: SubjectState
    key_epoch: int
    index_version: int
    version: int
    locale: str
    time_zone: str
    age_band: AgeBand
    created_at: datetime
    updated_at: datetime


class Caller(Protocol):
    """Whoever asks for something in a tenant: a key, a member, the person themselves, or a part of the system."""

    @property
    def tenant_id(self) -> UUID: ...
    @property
    def tenant_epoch(self) -> int: ...
    @property
    def actor(self) -> Actor: ...


class Asker(Caller, Protocol):
    """A caller with a reach among the tenant's projects: what it sees, and what it may change."""

    def sees(self, project_id: UUID | None) -> bool: ...
    def owns(self, project_id: UUID | None) -> bool: ...


class _Everywhere:
    """The reach of whoever is bound to no project."""

    __slots__ = ()

    def sees(self, project_id: UUID | None) -> bool:
        return True

    def owns(self, project_id: UUID | None) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class SystemCaller:
    tenant_id: UUID
    tenant_epoch: int
    actor: Actor


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls: one API key of one tenant, with what it may."""

    tenant_id: UUID
    tenant_epoch: int
    mode: Mode
    key_id: UUID
    scopes: frozenset[str]
    project_id: UUID | None

    @property
    def actor(self) -> Actor:
        return Actor(kind="api_key", id=str(self.key_id))

    def sees(self, project_id: UUID | None) -> bool:
        """A key bound to a project sees that one's things and what belongs to none; another key sees everything."""
        return self.project_id is None or project_id in (None, self.project_id)

    def owns(self, project_id: UUID | None) -> bool:
        """And it changes only that one's."""
        return self.project_id in (None, project_id)


@dataclass(frozen=True, slots=True)
class Member(_Everywhere):
    """A user in one tenant, by the role they have there."""

    tenant_id: UUID
    tenant_epoch: int
    mode: Mode
    organisation: str
    user_id: UUID
    role: Role

    @property
    def actor(self) -> Actor:
        return Actor(kind="user", id=str(self.user_id))


@dataclass(frozen=True, slots=True)
class Visitor(_Everywhere):
    """A person remembered who looks at what is kept of them. They act under their pseudonym."""

    tenant_id: UUID
    tenant_epoch: int
    organisation: str
    subject: SubjectRef
    pseudonym: str

    @property
    def actor(self) -> Actor:
        return Actor(kind="person", id=self.pseudonym)


class KeyState(StrEnum):
    IN_FORCE = "in_force"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class KeyView:
    """An API key as its tenant's team sees it."""

    id: UUID
    name: str
    hint: str
    scopes: tuple[str, ...]
    project: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    state: KeyState


@dataclass(frozen=True, slots=True)
class Workplace:
    """A tenant a user belongs to, for the switcher."""

    tenant_id: UUID
    organisation: str
    mode: Mode
    role: Role


@dataclass(frozen=True, slots=True)
class TenantRef:
    id: UUID
    organisation_id: UUID
    mode: Mode
    key_epoch: int


@dataclass(frozen=True, slots=True)
class JobRef:
    """A piece of background work as its owner sees it. `total` 0 means not known yet."""

    id: UUID
    kind: str
    state: str
    done: int
    total: int
    message: str
    result: dict[str, object]
    created_at: datetime
    updated_at: datetime
