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
    """Whoever asks for something in a tenant: an API key, or a part of the system working for one."""

    @property
    def tenant_id(self) -> UUID: ...
    @property
    def tenant_epoch(self) -> int: ...
    @property
    def actor(self) -> Actor: ...


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
