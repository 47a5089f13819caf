"""One memory as ranking sees it: everything but its words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from memory.analysis import ANALYSER_VERSION
from memory.types import Audience, Kind, SourceClass, State, StoredVector, TermVector


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The Python form of one row of an Index.

    importance and confidence are 0 to 1 and kept as float32; times are aware and kept to the microsecond
    in UTC; purpose is the number of a consent purpose; token_count is what the text costs of a context
    budget; vectors are by model number, none while the vector is pending; analyser_version says which
    version of analysis gave the terms.
    """

    id: UUID
    kind: Kind
    state: State
    source_class: SourceClass
    purpose: int
    audience: Audience
    importance: float
    confidence: float
    created_at: datetime
    content_version: int
    token_count: int
    terms: TermVector
    vectors: Mapping[int, StoredVector] = field(default_factory=dict)
    project_id: UUID | None = None
    agent: str | None = None
    session_id: UUID | None = None
    confirmed: bool = False
    pinned: bool = False
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    superseded_at: datetime | None = None
    expires_at: datetime | None = None
    confirmed_at: datetime | None = None
    categories: tuple[str, ...] = ()
    analyser_version: int = ANALYSER_VERSION
