"""The words of consent: purposes, what is asked, what the ledger says."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class PurposeKey(StrEnum):
    STORE = "memory.store"
    PERSONALISE = "memory.personalise"
    INFER = "memory.infer"
    SENSITIVE = "memory.sensitive"
    SHARE = "memory.share"
    SEND = "provider.send"
    IMPROVE = "improve"


class Act(StrEnum):
    """What somebody wants to do with a person's data."""

    STORE = "store"
    RECALL = "recall"
    LIST = "list"
    DERIVE = "derive"
    SHARE = "share"
    SEND = "send"
    FORGET = "forget"
    CONSENT = "consent"
    ACCOUNT = "account"
    # The person looks at what is kept of them.
    OWN = "own"
    # Not about one person: what belongs to the tenant, such as its knowledge, its log, its people's ids.
    TENANT = "tenant"


# The one table from act to purposes. Forgetting, the ledger itself, the person's own view and account data need no
# consent: the first three are the person's rights, the last rests on contract.
NEEDED: dict[Act, tuple[PurposeKey, ...]] = {
    Act.STORE: (PurposeKey.STORE,),
    Act.RECALL: (PurposeKey.STORE, PurposeKey.PERSONALISE),
    Act.LIST: (PurposeKey.STORE,),
    Act.DERIVE: (PurposeKey.STORE, PurposeKey.INFER),
    Act.SHARE: (PurposeKey.STORE, PurposeKey.PERSONALISE, PurposeKey.SHARE),
    Act.SEND: (PurposeKey.STORE, PurposeKey.SEND),
    Act.FORGET: (),
    Act.CONSENT: (),
    Act.ACCOUNT: (),
    Act.OWN: (),
    Act.TENANT: (),
}

# Acts that a restriction (Art. 18) or an objection (Art. 21) stops, whatever the consents say.
STOPPED_BY_RESTRICTION = frozenset({Act.STORE, Act.RECALL, Act.LIST, Act.DERIVE, Act.SHARE, Act.SEND})


# What needs memory.sensitive: the special categories of Art. 9 GDPR, in everyday words.
SENSITIVE_CATEGORIES = frozenset(
    {"belief", "biometrics", "ethnicity", "genetics", "health", "origin", "politics", "religion", "sexuality", "union"}
)


class LedgerEvent(StrEnum):
    GIVEN = "given"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"
    RENEWED = "renewed"
    IMPORTED = "imported"


IN_FORCE_AFTER = frozenset({LedgerEvent.GIVEN, LedgerEvent.RENEWED, LedgerEvent.IMPORTED})


class ConsentActor(StrEnum):
    """Who spoke. An agent relays: what counts is the evidence of what the person said."""

    PERSON = "person"
    GUARDIAN = "guardian"
    STAFF = "staff"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class NoticeRef:
    """The exact text a person was shown, by its SHA-256 in hex."""

    language: str
    text: str
    digest: str


@dataclass(frozen=True, slots=True)
class PurposeRef:
    """The current version of a purpose."""

    id: UUID
    key: str
    version: int
    legal_basis: str
    retention_days: int | None
    categories: tuple[str, ...]
    published_at: datetime
    notices: tuple[NoticeRef, ...]


@dataclass(frozen=True, slots=True)
class ConsentRef:
    """Where a person stands on one purpose."""

    purpose: str
    state: LedgerEvent
    version: int
    since: datetime
    valid_until: datetime | None
    event_id: UUID
    spoken_by: ConsentActor

    def in_force(self, at: datetime) -> bool:
        return self.state in IN_FORCE_AFTER and (self.valid_until is None or at < self.valid_until)


@dataclass(frozen=True, slots=True)
class Statement:
    """What was said about some purposes, when, where and how; to be entered in the ledger."""

    event: LedgerEvent
    purposes: tuple[PurposeKey, ...]
    language: str
    surface: str
    method: str
    spoken_by: ConsentActor
    evidence: str
    occurred_at: datetime | None = None
    valid_until: datetime | None = None
    notice_digests: tuple[str, ...] = ()
