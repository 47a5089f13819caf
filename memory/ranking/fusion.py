"""The lanes brought together: what passes the floor, and one relevance for what does.

Relies on lanes for the raw scores. The weights were chosen on lifecycle.jsonl (English, 20 other statements in
the store, 5 shown) and memorybank-en: lexical weights of 0.3 to 1.0 and three ways of scaling gave MRR 87.5 to
89.2 on the one and 59.4 to 63.0 on the other, R@10 94.5 to 95.9. Start at FusedLanes.of.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory.analysis import QueryTerms
from memory.ranking.explanation import LaneScore
from memory.ranking.lanes import QueryVector, Scores, dense_scores, match_words
from memory.segments import Index
from memory.types import Mask

DENSE_WEIGHT = 1.0
LEXICAL_WEIGHT = 0.7
COVERAGE_FLOOR = 0.5
# Where no vector speaks. On lifecycle.jsonl without vectors 0.15 brings up 71 % of what is needed with 0.3
# needless statements a question, 0.5 brings up 28 %.
COVERAGE_FLOOR_WORDS_ONLY = 0.15


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked: its words, and a vector for each model in the index (none when the embedder failed)."""

    terms: QueryTerms
    vectors: tuple[QueryVector, ...] = ()


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane over all rows: raw, scaled float64[n], NaN where it says nothing; ascending: raw, sorted."""

    name: str
    raw: Scores
    scaled: Scores
    ascending: Scores

    @classmethod
    def of(cls, name: str, raw: Scores) -> "Lane":
        return cls(name, raw, scaled(raw), np.sort(raw[~np.isnan(raw)]))

    def score_of(self, row: int) -> LaneScore:
        raw = float(self.raw[row])
        if np.isnan(raw):
            return LaneScore(self.name, None, None, None)
        better = len(self.ascending) - int(np.searchsorted(self.ascending, raw, side="right"))
        return LaneScore(self.name, raw, float(self.scaled[row]), better + 1)


@dataclass(frozen=True, slots=True)
class FusedLanes:
    """What the lanes say together, arrays over all rows.

    cosine: the best over models, -inf without a vector; near and worded: what passes the floor by meaning and
    by words; relevance: the fused lanes, 0 to 1.
    """

    lanes: tuple[Lane, ...]
    bm25: Scores
    coverage: Scores
    cosine: Scores
    near: Mask
    worded: Mask
    relevance: Scores

    @classmethod
    def of(cls, index: Index, query: Query) -> "FusedLanes":
        words = match_words(index, query.terms)
        dense = [Lane.of(f"dense:{each.model_number}", dense_scores(index, each)) for each in query.vectors]
        lexical = Lane.of("lexical", np.where(words.bm25 > 0, words.bm25, np.nan))
        cosine = _highest([lane.raw for lane in dense], len(index))
        near = np.zeros(len(index), np.bool_)
        for lane, vector in zip(dense, query.vectors, strict=True):
            near |= lane.raw >= vector.floor
        return cls(
            lanes=(*dense, lexical),
            bm25=words.bm25,
            coverage=words.coverage,
            cosine=cosine,
            near=near,
            worded=words.coverage >= np.where(np.isneginf(cosine), COVERAGE_FLOOR_WORDS_ONLY, COVERAGE_FLOOR),
            relevance=fused(
                _highest([lane.scaled for lane in dense], len(index)), np.nan_to_num(lexical.scaled, nan=0.0)
            ),
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
