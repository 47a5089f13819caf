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

from memory.ranking.explanation import Candidate, Dropped, Explanation, PassedBy, Ranking
from memory.ranking.fusion import FusedLanes, Query
from memory.ranking.lanes import Scores
from memory.ranking.policies import Facts, ScoringPolicy
from memory.segments import Index
from memory.segments.index import CONFIRMED, to_microseconds
from memory.types import Mask, Positions

CRITICAL_IMPORTANCE = 0.9
CRITICAL_SLOTS = 2
POOL = 200  # candidates that are scored; access figures are looked up for no more than these
DROPPED_SHOWN = 50
TIE_DECIMALS = 3  # scores equal to this many decimals are a tie; the newer memory then goes first
MICROSECONDS_A_DAY = 86_400_000_000


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
    with_dropped: bool = True,
) -> Ranking:
    """The best `limit` entries for the query, each with its explanation, and the best of those left out.

    An entry appears only when it is related: cosine at or above its model's floor, or at least half of the
    question's content words by weight, or a critical slot. Nothing related gives an empty ranking. `access`
    is called once at most, and only for policies that use it; without it nothing was ever recalled. Who shows no
    figures of what was left out asks for none: they take longer than the ranking itself.
    """
    lanes = FusedLanes.of(index, query)
    slots = _critical_slots(index, lanes)
    passing = lanes.near | lanes.worded
    passing[slots] = True
    pool = _best(lanes.relevance, passing, slots)
    terms = policy.terms(_facts(index, lanes, pool, now, _looked_up(index, pool, access, policy)))
    scores = policy.score(terms)
    order = _order(index, pool, scores)
    kept = keep_slots(order, np.isin(pool[order], slots), limit)
    report = _Report(index, lanes, policy, set(slots.tolist()), pool, terms, scores)
    return Ranking(
        tuple(report.scored(place, None) for place in kept),
        tuple(report.left_out(order, kept, passing)) if with_dropped else (),
        degraded=not query.vectors,
    )


def keep_slots(order: Positions, critical: Mask, limit: int) -> list[int]:
    """The first `limit` of `order`, in order, of which critical ones (bool, like order) are always part."""
    others = max(limit - int(critical.sum()), 0)
    chosen = critical | (np.cumsum(~critical) <= others)
    return [int(place) for place in order[chosen][:limit]]


def _critical_slots(index: Index, lanes: FusedLanes) -> Positions:
    """Rows of the most important memories that are nearest to the question; by words without vectors."""
    critical = np.flatnonzero(index.importance >= np.float32(CRITICAL_IMPORTANCE))
    keys = (index.created_at[critical], lanes.bm25[critical], lanes.cosine[critical])
    return critical[np.lexsort(keys)[::-1][:CRITICAL_SLOTS]]


def _best(relevance: Scores, passing: Mask, slots: Positions) -> Positions:
    """At most POOL of the passing rows, the most relevant and those with a slot."""
    preferred = np.where(passing, relevance, -np.inf)
    preferred[slots] = np.inf
    return np.sort(_highest_rows(preferred, POOL))


def _highest_rows(scores: Scores, count: int) -> Positions:
    """The rows of the `count` highest scores, highest first; rows of -inf are none."""
    rows = np.argpartition(-scores, count)[:count] if count < len(scores) else np.arange(len(scores))
    rows = rows[scores[rows] > -np.inf]
    return rows[np.argsort(-scores[rows], kind="stable")]


def _looked_up(
    index: Index, pool: Positions, access: AccessLookup | None, policy: ScoringPolicy
) -> Mapping[int, Access]:
    if access is None or not policy.uses_access or not len(pool):
        return {}
    rows = {index.id_at(int(row)): int(row) for row in pool}
    found = access(list(rows))
    return {row: found[each] for each, row in rows.items() if each in found}


def _facts(index: Index, lanes: FusedLanes, pool: Positions, now: datetime, accesses: Mapping[int, Access]) -> Facts:
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
    lanes: FusedLanes
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
        among_kept = set(kept)
        beyond = [place for place in order.tolist() if place not in among_kept][:DROPPED_SHOWN]
        shown = [self.scored(place, Dropped.BEYOND_LIMIT) for place in beyond]
        rest = self.lanes.relevance.copy()
        rest[self.pool] = -np.inf
        for row in _highest_rows(rest, DROPPED_SHOWN - len(shown)).tolist():
            reason = Dropped.BEYOND_POOL if passing[row] else Dropped.BELOW_FLOOR
            shown.append(self._candidate(row, None, {}, reason))
        return shown

    def _candidate(
        self, row: int, score: float | None, terms: Mapping[str, float], dropped: Dropped | None
    ) -> Candidate:
        explanation = Explanation(
            lanes=tuple(lane.score_of(row) for lane in self.lanes.lanes),
            coverage=float(self.lanes.coverage[row]),
            passed_by=tuple(self._passed_by(row)),
            relevance=float(self.lanes.relevance[row]),
            policy=self.policy.name,
            terms=terms,
            dropped=dropped,
        )
        return Candidate(self.index.id_at(row), row, score, row in self.slots, explanation)

    def _passed_by(self, row: int) -> list[PassedBy]:
        reasons = {
            PassedBy.MEANING: bool(self.lanes.near[row]),
            PassedBy.WORDS: bool(self.lanes.worded[row]),
            PassedBy.CRITICAL: row in self.slots,
        }
        return [reason for reason, holds in reasons.items() if holds]
