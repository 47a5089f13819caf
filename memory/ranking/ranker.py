"""Ranking: lanes, floor, critical slots, fusion, policy, in that order.

Relies on an opened Index that already holds only what may appear, on lanes for raw scores and on a policy for
the formula. Pure: time and access figures come in. Start at rank.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory.analysis import QueryTerms
from memory.ranking.explanation import Candidate, Dropped, Explanation, LaneScore, PassedBy, Ranking
from memory.ranking.lanes import QueryVector, Scores, WordScores, dense_scores, match_words
from memory.ranking.policies import Facts, ScoringPolicy
from memory.segments import Index
from memory.segments.index import CONFIRMED, to_microseconds
from memory.types import Mask, Positions

DENSE_WEIGHT = 1.0
LEXICAL_WEIGHT = 0.7
COVERAGE_FLOOR = 0.5
COVERAGE_FLOOR_WORDS_ONLY = 0.15  # where no vector speaks: without one, 0.5 left 28 % of what was needed
CRITICAL_IMPORTANCE = 0.9
CRITICAL_SLOTS = 2
POOL = 200  # candidates that are scored; access figures are looked up for no more than these
DROPPED_SHOWN = 50
TIE_DECIMALS = 3  # scores equal to this many decimals are a tie; the newer memory then goes first
MICROSECONDS_A_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked: its words, and a vector for each model in the index (none when the embedder failed)."""

    terms: QueryTerms
    vectors: tuple[QueryVector, ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """How often a memory was recalled and when last."""

    count: int
    last_at: datetime | None


type AccessLookup = Callable[[Sequence[UUID]], Mapping[UUID, Access]]


def rank(
    index: Index,
    query: Query,
    *,
    policy: ScoringPolicy,
    now: datetime,
    limit: int,
    access: AccessLookup | None = None,
) -> Ranking:
    """The best `limit` entries for the query, each with its explanation, and the best of those left out.

    An entry appears only when it is related: cosine at or above its model's floor, or at least half of the
    question's content words by weight, or a critical slot. Nothing related gives an empty ranking. `access`
    is called once at most, and only for policies that use it; without it nothing was ever recalled.
    """
    lanes = _Lanes.compared(index, query)
    slots = _critical_slots(index, lanes)
    passing = lanes.near | lanes.worded
    passing[slots] = True
    pool = _best(lanes.relevance, np.flatnonzero(passing), slots)
    terms = policy.terms(_facts(index, lanes, pool, now, _looked_up(index, pool, access, policy)))
    order = _order(index, pool, policy.score(terms))
    kept = keep_slots(order, np.isin(pool[order], slots), limit)
    report = _Report(index, lanes, policy, set(slots.tolist()), pool, terms, policy.score(terms))
    return Ranking(
        tuple(report.scored(place, None) for place in kept),
        tuple(report.left_out(order, kept, passing)),
        degraded=not query.vectors,
    )


def keep_slots(order: Positions, critical: Mask, limit: int) -> list[int]:
    """The first `limit` of `order`, in order, of which critical ones (bool, like order) are always part."""
    others = max(limit - int(critical.sum()), 0)
    chosen = critical | (np.cumsum(~critical) <= others)
    return [int(place) for place in order[chosen][:limit]]


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Everything the lanes say, arrays over all rows of the index."""

    dense: tuple[tuple[str, Scores, Scores], ...]  # name, raw, scaled
    words: WordScores
    words_scaled: Scores
    cosine: Scores  # the best over models, -inf without a vector
    near: Mask
    worded: Mask
    relevance: Scores

    @classmethod
    def compared(cls, index: Index, query: Query) -> "_Lanes":
        raw = [dense_scores(index, vector) for vector in query.vectors]
        words = match_words(index, query.terms)
        near = np.zeros(len(index), np.bool_)
        for scores, vector in zip(raw, query.vectors, strict=True):
            near |= scores >= vector.floor
        dense = tuple(
            (f"dense:{vector.model_number}", scores, scaled(scores))
            for scores, vector in zip(raw, query.vectors, strict=True)
        )
        cosine = _highest(raw, len(index))
        words_scaled = scaled(words.bm25)
        return cls(
            dense=dense,
            words=words,
            words_scaled=words_scaled,
            cosine=cosine,
            near=near,
            worded=words.coverage >= np.where(np.isneginf(cosine), COVERAGE_FLOOR_WORDS_ONLY, COVERAGE_FLOOR),
            relevance=fused(_highest([each for _, _, each in dense], len(index)), words_scaled),
        )


def scaled(raw: Scores) -> Scores:
    """Min-max over all rows, the minimum being 0, what a lane gives to the wholly unrelated: 0 to 1.

    NaN (the lane says nothing) stays NaN. A single row, or rows all equal, are 1 when above 0 and else 0.
    """
    highest = np.fmax.reduce(raw, initial=0.0)
    if highest <= 0:
        return np.where(np.isnan(raw), np.nan, 0.0)
    return np.asarray(np.clip(raw / highest, 0.0, 1.0))


def fused(dense: Scores, lexical: Scores) -> Scores:
    """Weighted mean of the scaled lanes, 0 to 1. Where a row has no vector (-inf) words speak alone."""
    both = (DENSE_WEIGHT * dense + LEXICAL_WEIGHT * lexical) / (DENSE_WEIGHT + LEXICAL_WEIGHT)
    return np.where(np.isneginf(dense), lexical, both)


def _highest(lanes: Sequence[Scores], size: int) -> Scores:
    highest = np.full(size, -np.inf)
    for lane in lanes:
        np.fmax(highest, lane, out=highest)
    return highest


def _critical_slots(index: Index, lanes: _Lanes) -> Positions:
    """Rows of the most important memories that are nearest to the question; by words without vectors."""
    critical = np.flatnonzero(index.importance >= np.float32(CRITICAL_IMPORTANCE))
    keys = (index.created_at[critical], lanes.words.bm25[critical], lanes.cosine[critical])
    return critical[np.lexsort(keys)[::-1][:CRITICAL_SLOTS]]


def _best(relevance: Scores, passing: Positions, slots: Positions) -> Positions:
    """At most POOL of the passing rows, the most relevant and those with a slot."""
    if len(passing) <= POOL:
        return passing
    free = np.setdiff1d(passing, slots)
    most = np.argpartition(-relevance[free], POOL - len(slots) - 1)[: POOL - len(slots)]
    return np.union1d(free[most], slots)


def _looked_up(
    index: Index, pool: Positions, access: AccessLookup | None, policy: ScoringPolicy
) -> Mapping[int, Access]:
    if access is None or not policy.uses_access or not len(pool):
        return {}
    rows = {index.id_at(int(row)): int(row) for row in pool}
    found = access(list(rows))
    return {row: found[each] for each, row in rows.items() if each in found}


def _facts(
    index: Index, lanes: _Lanes, pool: Positions, now: datetime, accesses: Mapping[int, Access]
) -> Facts:
    created = index.created_at[pool]
    used = created.copy()
    counts = np.zeros(len(pool))
    for place, row in enumerate(pool.tolist()):
        if row in accesses:
            counts[place] = accesses[row].count
            used[place] = max(int(created[place]), to_microseconds(accesses[row].last_at))
    return Facts(
        relevance=lanes.relevance[pool],
        importance=index.importance[pool].astype(np.float64),
        confirmed=(index.flags[pool] & CONFIRMED > 0).astype(np.float64),
        age_days=_days_before(now, created),
        idle_days=_days_before(now, used),
        accesses=counts,
    )


def _days_before(now: datetime, moments: NDArray[np.int64]) -> Scores:
    """Days from each moment to now, float64[m]; a moment to come counts as now."""
    return np.asarray(np.maximum(to_microseconds(now) - moments, 0) / MICROSECONDS_A_DAY)


def _order(index: Index, pool: Positions, scores: Scores) -> Positions:
    """Places in the pool, best first; ties by the newer memory, then by row: the same every time."""
    return np.asarray(np.lexsort((pool, -index.created_at[pool], -np.round(scores, TIE_DECIMALS))))


@dataclass(frozen=True, slots=True)
class _Report:
    """Turns rows and places of the pool into Candidates."""

    index: Index
    lanes: _Lanes
    policy: ScoringPolicy
    slots: set[int]
    pool: Positions
    terms: Mapping[str, Scores]
    scores: Scores

    def scored(self, place: int, dropped: Dropped | None) -> Candidate:
        terms = {name: float(values[place]) for name, values in self.terms.items()}
        return self._candidate(int(self.pool[place]), float(self.scores[place]), terms, dropped)

    def left_out(self, order: Positions, kept: Sequence[int], passing: Mask) -> list[Candidate]:
        """The scored ones beyond the limit, then the most relevant of the rest, DROPPED_SHOWN in all."""
        beyond = [place for place in order.tolist() if place not in set(kept)][:DROPPED_SHOWN]
        shown = [self.scored(place, Dropped.BEYOND_LIMIT) for place in beyond]
        rest = np.setdiff1d(np.arange(len(self.index)), self.pool)
        rest = rest[np.argsort(-self.lanes.relevance[rest], kind="stable")]
        for row in rest[: DROPPED_SHOWN - len(shown)].tolist():
            reason = Dropped.BEYOND_POOL if passing[row] else Dropped.BELOW_FLOOR
            shown.append(self._candidate(row, None, {}, reason))
        return shown

    def _candidate(
        self, row: int, score: float | None, terms: Mapping[str, float], dropped: Dropped | None
    ) -> Candidate:
        explanation = Explanation(
            lanes=tuple(self._lane_scores(row)),
            coverage=float(self.lanes.words.coverage[row]),
            passed_by=tuple(self._passed_by(row)),
            relevance=float(self.lanes.relevance[row]),
            policy=self.policy.name,
            terms=terms,
            dropped=dropped,
        )
        return Candidate(self.index.id_at(row), row, score, row in self.slots, explanation)

    def _lane_scores(self, row: int) -> list[LaneScore]:
        words = np.where(self.lanes.words.bm25 > 0, self.lanes.words.bm25, np.nan)
        named = [*self.lanes.dense, ("lexical", words, self.lanes.words_scaled)]
        return [_lane_score(name, raw, scores, row) for name, raw, scores in named]

    def _passed_by(self, row: int) -> list[PassedBy]:
        reasons = {
            PassedBy.MEANING: bool(self.lanes.near[row]),
            PassedBy.WORDS: bool(self.lanes.worded[row]),
            PassedBy.CRITICAL: row in self.slots,
        }
        return [reason for reason, holds in reasons.items() if holds]


def _lane_score(name: str, raw: Scores, scores: Scores, row: int) -> LaneScore:
    if np.isnan(raw[row]):
        return LaneScore(name, None, None, None)
    return LaneScore(name, float(raw[row]), float(scores[row]), int((raw > raw[row]).sum()) + 1)
