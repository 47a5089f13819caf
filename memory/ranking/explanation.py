"""Why a memory stands where it stands: the figures behind one place of a ranking."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class PassedBy(StrEnum):
    """What lifted a memory over the floor."""

    MEANING = "meaning"
    WORDS = "words"
    CRITICAL = "critical"


class Dropped(StrEnum):
    BELOW_FLOOR = "below_floor"
    BEYOND_POOL = "beyond_pool"
    BEYOND_LIMIT = "beyond_limit"


@dataclass(frozen=True, slots=True)
class LaneScore:
    """One lane's view: raw (cosine or BM25), scaled 0 to 1, rank among all entries from 1.

    All None where the lane says nothing: no vector of its model, none of the words.
    """

    lane: str
    raw: float | None
    scaled: float | None
    rank: int | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The figures of one place.

    coverage: share of the question's content words; terms: those of the policy's formula, empty for what
    was dropped before it was scored; dropped: None for what is in the answer.
    """

    lanes: tuple[LaneScore, ...]
    coverage: float
    passed_by: tuple[PassedBy, ...]
    relevance: float
    policy: str
    terms: Mapping[str, float]
    dropped: Dropped | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory in a ranking. position is its row in the index; score is None when it was dropped unscored.

    critical: it holds one of the slots kept for what must not be overlooked.
    """

    id: UUID
    position: int
    score: float | None
    critical: bool
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class Ranking:
    """An answer before its contents are opened.

    candidates: best first; dropped: the best of the rest, up to 50, with the reason; degraded: the question
    had no vector, so only words were compared.
    """

    candidates: tuple[Candidate, ...]
    dropped: tuple[Candidate, ...]
    degraded: bool
