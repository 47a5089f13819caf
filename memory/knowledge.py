"""Searching shared knowledge: exact vectors in pgvector and BM25 over the postings table, fused as recall fuses them.

The tenant stands in every statement as a literal: row security is the net, the literal is the plan. The distances of
all of the tenant's rows are taken in a materialised query and sorted outside it, so that no index chooses rows first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection
from pgvector import HalfVector

from accounts.keys import Grant, NotGranted
from accounts.tenancy import current_scope
from memory.analysis import AnalysedQuery, QueryTerms, hash_query
from memory.encoding import Encoded
from memory.knowledge_terms import posting_key, signed, unsigned
from memory.ranking.fusion import COVERAGE_FLOOR, COVERAGE_FLOOR_WORDS_ONLY, fused, scaled
from memory.ranking.lanes import K1, B, rarity
from memory.types import Floats

LANE_LIMIT = 50

# What stands behind the columns of a statement over the chunks that may be searched.
_SCOPED = """
    FROM memory_chunk c JOIN memory_document d ON d.tenant_id = c.tenant_id AND d.id = c.document_id
    WHERE c.tenant_id = %(tenant)s AND d.tenant_id = %(tenant)s AND (d.project_id IS NULL OR d.project_id = %(project)s)
      AND (%(tags)s::text[] IS NULL OR d.tags && %(tags)s::varchar[])
      AND (%(since)s::timestamptz IS NULL OR d.created_at > %(since)s::timestamptz)
"""
_DENSE = f"""
    WITH scoped AS MATERIALIZED (
        SELECT c.id, c.embedding <=> %(vector)s::halfvec AS distance {_SCOPED} AND c.model_number = %(model)s)
    SELECT id, 1 - distance FROM scoped ORDER BY distance LIMIT {LANE_LIMIT}
"""  # noqa: S608  constants
# Okapi BM25 with Lucene's idf, the constants of memory.ranking.lanes; the arrays let the application weigh coverage.
_LEXICAL = f"""
    WITH scoped AS MATERIALIZED (SELECT c.id, c.length {_SCOPED}),
         size AS (SELECT count(*)::float8 AS n, greatest(avg(length), 1)::float8 AS average FROM scoped),
         hits AS (SELECT p.term, p.chunk_id, p.frequency::float8 AS f, s.length::float8 AS length
                  FROM memory_posting p JOIN scoped s ON s.id = p.chunk_id
                  WHERE p.tenant_id = %(tenant)s AND p.term = ANY(%(terms)s)),
         frequency AS (SELECT term, count(*)::float8 AS df FROM hits GROUP BY term)
    SELECT h.chunk_id,
           sum(ln(1 + (size.n - q.df + 0.5) / (q.df + 0.5)) * h.f * ({K1} + 1)
               / (h.f + {K1} * (1 - {B} + {B} * h.length / size.average))) AS score,
           array_agg(h.term), max(size.n)
    FROM hits h JOIN frequency q ON q.term = h.term CROSS JOIN size
    GROUP BY h.chunk_id ORDER BY score DESC, h.chunk_id LIMIT {LANE_LIMIT}
"""  # noqa: S608  constants
_CONTENT = """
    SELECT c.id, c.document_id, c.heading, c.text, d.title, d.source, d.chunked_version, d.created_at
    FROM memory_chunk c JOIN memory_document d ON d.tenant_id = c.tenant_id AND d.id = c.document_id
    WHERE c.tenant_id = %(tenant)s AND c.id = ANY(%(ids)s)
"""


@dataclass(frozen=True, slots=True)
class KnowledgeQuery:
    """A question to the shared knowledge. Without a project only unscoped documents are searched."""

    text: str | AnalysedQuery
    encoded: Encoded | None
    project_id: UUID | None = None
    tags: tuple[str, ...] = ()
    created_after: datetime | None = None
    limit: int = 5


@dataclass(frozen=True, slots=True)
class Found:
    """A chunk by id with its figures; `cosine` and `bm25` are None where that lane did not see it."""

    id: UUID
    score: float
    cosine: float | None
    bm25: float | None
    coverage: float


@dataclass(frozen=True, slots=True)
class Passage:
    """An opened chunk with what to cite."""

    id: UUID
    document_id: UUID
    title: str
    heading: str
    text: str
    source: str
    document_version: int
    created_at: datetime
    score: float
    explanation: Found


def find_chunks(query: KnowledgeQuery) -> list[Found]:
    """The best chunks over the floor, best first: ids and figures, no text. With a limit of 0 nothing is asked."""
    if query.limit == 0:
        return []
    terms = hash_query(query.text, posting_key(current_scope().tenant_id))
    cosines, words = _asked(query, terms)
    ids = list(dict.fromkeys([*cosines, *words]))
    if not ids:
        return []
    coverage = _coverage(ids, terms, words)
    cosine = np.array([cosines.get(each, np.nan) for each in ids])
    bm25 = np.array([words[each].score if each in words else 0.0 for each in ids])
    relevance = fused(np.where(np.isnan(cosine), 0.0, scaled(cosine)), scaled(bm25)) if cosines else scaled(bm25)
    near = cosine >= query.encoded.floor if query.encoded else np.zeros(len(ids), np.bool_)
    passing = near | (coverage >= (COVERAGE_FLOOR if cosines else COVERAGE_FLOOR_WORDS_ONLY))
    order = [place for place in np.argsort(-relevance, kind="stable").tolist() if passing[place]]
    return [
        Found(
            id=ids[place],
            score=float(relevance[place]),
            cosine=cosines.get(ids[place]),
            bm25=float(bm25[place]) or None,
            coverage=float(coverage[place]),
        )
        for place in order[: query.limit]
    ]


def open_chunks(found: Sequence[Found], grant: Grant) -> list[Passage]:
    """The texts of the chunks found. Raises NotGranted when the grant, a read on record, does not name them all."""
    if not grant.ids.issuperset(each.id for each in found):
        raise NotGranted(grant.decision.action)
    if not found:
        return []
    rows = {
        row[0]: row
        for row in _rows(_CONTENT, {"tenant": current_scope().tenant_id, "ids": [each.id for each in found]})
    }
    return [
        Passage(
            id=each.id,
            document_id=row[1],
            heading=row[2],
            text=row[3],
            title=row[4],
            source=row[5],
            document_version=row[6],
            created_at=row[7],
            score=each.score,
            explanation=each,
        )
        for each in found
        if (row := rows.get(each.id)) is not None
    ]


@dataclass(frozen=True, slots=True)
class _Words:
    score: float
    terms: frozenset[int]
    size: float


def _asked(query: KnowledgeQuery, terms: QueryTerms) -> tuple[dict[UUID, float], dict[UUID, _Words]]:
    """Both lanes in one message."""
    searched = [signed(term) for term in terms.terms.hashes.tolist()]
    values = _filters(query) | {"terms": searched}
    statements = [_LEXICAL]
    if query.encoded is not None:
        values |= {"vector": _text_of(query.encoded.vectors[0]), "model": query.encoded.model_number}
        statements.append(_DENSE)
    with connection.cursor() as cursor:
        cursor.execute(";".join(statements), values)
        words = {row[0]: _Words(float(row[1]), frozenset(map(unsigned, row[2])), float(row[3])) for row in cursor}
        cosines = {row[0]: float(row[1]) for row in cursor} if cursor.nextset() else {}
    return cosines, words


def _text_of(vector: Floats) -> str:
    return HalfVector(vector).to_text()


def _coverage(ids: Sequence[UUID], terms: QueryTerms, words: Mapping[UUID, _Words]) -> np.ndarray[Any, Any]:
    """float64[n]: the share of the question's content words a chunk holds, weighed by rarity among the chunks found."""
    size = int(next((found.size for found in words.values()), 0))
    covered, total = np.zeros(len(ids)), 0.0
    for forms in terms.content:
        wanted = set(forms.tolist())
        holds = np.array([each in words and not wanted.isdisjoint(words[each].terms) for each in ids])
        weight = float(rarity(size, np.intp(holds.sum())))
        covered += weight * holds
        total += weight
    return covered / total if total else covered


def _filters(query: KnowledgeQuery) -> dict[str, Any]:
    return {
        "tenant": current_scope().tenant_id,
        "project": query.project_id,
        "tags": list(query.tags) or None,
        "since": query.created_after,
    }


def _rows(sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())
