"""Scores of ranked answers, 0 to 1. Pure functions. Start at `Retrieval` and `Lifecycle`."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass


def recall_at(limit: int, ranked: Sequence[str], wanted: Collection[str]) -> float:
    """The share of what is wanted among the first `limit`."""
    return len(set(ranked[:limit]) & set(wanted)) / len(set(wanted))


def reciprocal_rank(ranked: Sequence[str], wanted: Collection[str]) -> float:
    """1 over the place of the first that is wanted, counted from 1; 0 when there is none."""
    return next((1 / place for place, each in enumerate(ranked, 1) if each in wanted), 0.0)


def ndcg_at(limit: int, ranked: Sequence[str], wanted: Collection[str]) -> float:
    """Discounted gain over that of the best order, each wanted one counting 1 (Järvelin and Kekäläinen 2002)."""
    gain = sum(1 / math.log2(place + 1) for place, each in enumerate(ranked[:limit], 1) if each in wanted)
    return gain / sum(1 / math.log2(place + 1) for place in range(1, min(limit, len(set(wanted))) + 1))


@dataclass(frozen=True, slots=True)
class Score:
    """A measure's value over the n questions, statements or cases it is a share or mean of."""

    value: float
    n: int


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What one question brought up, and what answers it; `wanted` is never empty."""

    ranked: Sequence[str]
    wanted: frozenset[str]


def retrieval_scores(asked: Sequence[Retrieval], limits: Iterable[int]) -> dict[str, Score]:
    """Means over the questions."""
    scores = {f"recall_at_{limit}": [recall_at(limit, each.ranked, each.wanted) for each in asked] for limit in limits}
    scores["mrr"] = [reciprocal_rank(each.ranked, each.wanted) for each in asked]
    scores["ndcg_at_10"] = [ndcg_at(10, each.ranked, each.wanted) for each in asked]
    return {name: _mean(values) for name, values in scores.items() if values}


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """What one case brought up, in order, and what had to come up and must not have."""

    shown: Sequence[str]
    must: frozenset[str]
    must_not: frozenset[str]

    @property
    def leaked(self) -> bool:
        return not self.must_not.isdisjoint(self.shown)

    @property
    def passed(self) -> bool:
        return self.must <= set(self.shown) and not self.leaked


def lifecycle_scores(played: Sequence[Lifecycle]) -> Mapping[str, Score]:
    """must_at_5 is a share of statements, must_not_shown of the cases that name any, passed of all cases."""
    scores: dict[str, list[float]] = {
        "must_at_5": [each in case.shown for case in played for each in case.must],
        "must_not_shown": [case.leaked for case in played if case.must_not],
        "passed": [case.passed for case in played],
        "mrr": [reciprocal_rank(case.shown, case.must) for case in played if case.must],
    }
    return {name: _mean(values) for name, values in scores.items() if values}


def _mean(values: Sequence[float]) -> Score:
    return Score(sum(values) / len(values), len(values))
