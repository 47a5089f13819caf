"""The lanes of recall: how near an entry is in meaning, and how much of the question's words it holds.

Relies on an opened Index. Everything is an array over all its rows. Start at dense_scores and match_words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.analysis import QueryTerms
from memory.segments import Index
from memory.types import Floats, Hashes, Positions, TermVector

type Scores = NDArray[np.float64]

K1, B = 1.2, 0.75  # the usual constants of BM25 (Robertson and Zaragoza 2009, section 3.3)
ROWS_AT_ONCE = 1024  # converted int8 rows that stay in the processor's cache: 1.5 MB at 384 dimensions

# Added to the number of entries where words are weighed for coverage. In an index of three memories one match
# would make a word look common; a person's language does not get that small.
IMAGINED_ENTRIES = 50


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A question under one model: values float32[d] of length 1, floor the lowest cosine that is related."""

    model_number: int
    values: Floats
    floor: float


@dataclass(frozen=True, slots=True)
class WordScores:
    """What each row holds of the question's words.

    bm25 float64[n], 0 without a match; coverage float64[n], 0 to 1: the share of the question's content words
    that occurs, weighed by how rare each is.
    """

    bm25: Scores
    coverage: Scores


def dense_scores(index: Index, vector: QueryVector) -> Scores:
    """Cosine of the question with each row, float64[n]; NaN for a row without a vector of this model."""
    cosines = np.full(len(index), np.nan)
    lane = index.lanes.get(vector.model_number)
    if lane is None:
        return cosines
    if lane.values.shape[1] != len(vector.values):
        raise ValueError(f"model {vector.model_number} has {lane.values.shape[1]} dimensions in this index")
    products = np.empty(len(lane.rows), np.float32)
    for start in range(0, len(lane.rows), ROWS_AT_ONCE):
        span = slice(start, start + ROWS_AT_ONCE)
        products[span] = lane.values[span].astype(np.float32) @ vector.values
    cosines[lane.rows] = products * lane.scales
    return cosines


def match_words(index: Index, query: QueryTerms) -> WordScores:
    matches = _find_matches(index, query.terms.hashes)
    return WordScores(
        _bm25(index, query.terms, matches),
        _coverage(len(index), query.content, query.terms.hashes, matches),
    )


@dataclass(frozen=True, slots=True)
class _Matches:
    """Where query hash which[i] occurs: in row rows[i], counts[i] times. Ordered by which."""

    rows: Positions
    which: Positions
    counts: NDArray[np.uint16]

    def rows_of(self, place: int) -> Positions:
        start, end = np.searchsorted(self.which, (place, place + 1))
        return self.rows[start:end]


def _find_matches(index: Index, hashes: Hashes) -> _Matches:
    """`hashes` ascending. A table of their lowest 16 bits first: its cost does not grow with the question."""
    wanted = np.zeros(1 << 16, np.bool_)
    wanted[hashes.astype(np.uint16)] = True
    items = np.flatnonzero(wanted[index.terms.hashes.astype(np.uint16)])
    found = index.terms.hashes[items]
    which = np.searchsorted(hashes, found)
    exact = hashes[np.minimum(which, len(hashes) - 1)] == found if len(hashes) else np.zeros(0, np.bool_)
    items, which = items[exact], which[exact]
    order = np.argsort(which, kind="stable")
    items, which = items[order], which[order]
    rows = np.searchsorted(index.terms.offsets, items, side="right") - 1
    return _Matches(rows, which, index.terms.counts[items])


def _bm25(index: Index, query: TermVector, matches: _Matches) -> Scores:
    """Okapi BM25; the idf is Lucene's, which is never negative."""
    size = len(index)
    lengths = index.terms.lengths.astype(np.float64)
    average = max(float(lengths.mean()), 1.0) if size else 1.0
    frequency = np.bincount(matches.which, minlength=len(query.hashes))
    weight = (rarity(size, frequency) * query.counts)[matches.which]
    counts = matches.counts.astype(np.float64)
    slowed = counts + K1 * (1 - B + B * lengths[matches.rows] / average)
    return np.bincount(matches.rows, weight * counts * (K1 + 1) / slowed, minlength=size)


def _coverage(size: int, content: Sequence[Hashes], hashes: Hashes, matches: _Matches) -> Scores:
    covered, total = np.zeros(size), 0.0
    for forms in content:
        holds = np.zeros(size, np.bool_)
        for place in np.searchsorted(hashes, forms):
            holds[matches.rows_of(int(place))] = True
        weight = float(rarity(size + IMAGINED_ENTRIES, holds.sum()))
        covered += weight * holds
        total += weight
    return covered / total if total else covered


def rarity(size: int, frequency: NDArray[np.intp] | np.intp) -> Scores:
    """ln(1 + (N - df + 0.5) / (df + 0.5)): the inverse document frequency of BM25 in Lucene."""
    return np.asarray(np.log1p((size - frequency + 0.5) / (frequency + 0.5)))
