"""Ranking: what passes the floor, what leads, which slots are kept, each formula by its literal value."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.analysis import hash_query, hash_terms, terms
from memory.embedding import quantise
from memory.ranking import (
    Access,
    DecayPolicy,
    Dropped,
    EvidencePolicy,
    PassedBy,
    PolicyInvalid,
    Query,
    QueryVector,
    RecencyPolicy,
    WeightedPolicy,
    keep_slots,
    policy_named,
    rank,
)
from memory.ranking.fusion import fused, scaled
from memory.ranking.lanes import dense_scores, match_words
from memory.ranking.policies import Facts
from memory.segments import Entry, Index
from memory.types import Audience, Kind, SourceClass, State, StoredVector

KEY = b"k" * 32
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def at_cosine(cosine: float) -> list[float]:
    """A vector of length 1 with this cosine to the first axis."""
    return [cosine, math.sqrt(1 - cosine * cosine), 0.0]


def stored(values: list[float]) -> StoredVector:
    rounded, scale = quantise(np.array([values], np.float32))
    return StoredVector(rounded[0], float(scale[0]))


def made(number: int, text: str = "", cosine: float | None = None, *, days_old: float = 0, **changes) -> Entry:
    facts: dict[str, Any] = {
        "id": UUID(int=number),
        "kind": Kind.SEMANTIC,
        "state": State.ACTIVE,
        "source_class": SourceClass.PERSON,
        "purpose": 1,
        "audience": Audience.PRIVATE,
        "importance": 0.0,
        "confidence": 1.0,
        "created_at": NOW - timedelta(days=days_old),
        "content_version": 1,
        "token_count": 5,
        "terms": hash_terms(terms(text), KEY),
        "vectors": {} if cosine is None else {1: stored(at_cosine(cosine))},
    }
    return Entry(**(facts | changes))


def asked(text: str = "", *, floor: float = 0.2, vector: bool = True) -> Query:
    axis = QueryVector(1, np.array([1, 0, 0], np.float32), floor)
    return Query(hash_query(text, KEY), (axis,) if vector else ())


def ranked(entries, query, **options):
    options = {"policy": EvidencePolicy(), "now": NOW, "limit": 5} | options
    return rank(Index.of(entries), query, **options)


def numbers(ranking) -> list[int]:
    return [each.id.int for each in ranking.candidates]


def test_cosines_are_those_of_the_vectors_and_unknown_where_there_is_none():
    index = Index.of([made(1, cosine=0.6), made(2), made(3, cosine=-0.5)])

    cosines = dense_scores(index, asked().vectors[0])

    assert cosines[[0, 2]] == pytest.approx([0.6, -0.5], abs=0.005)
    assert np.isnan(cosines[1])


def test_many_rows_give_the_same_cosines_as_plain_float_arithmetic():
    vectors = np.random.default_rng(3).normal(size=(2500, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    values, scales = quantise(vectors)
    index = Index.of([made(n, vectors={1: StoredVector(values[n], float(scales[n]))}) for n in range(1, 2500)])

    cosines = dense_scores(index, QueryVector(1, vectors[0], 0.2))

    assert np.abs(cosines - vectors[1:] @ vectors[0]).max() < 0.01


def test_a_question_of_another_dimension_is_refused():
    index = Index.of([made(1, cosine=0.6)])

    with pytest.raises(ValueError, match="3 dimensions"):
        dense_scores(index, QueryVector(1, np.ones(4, np.float32), 0.2))


def bm25_by_hand(texts: list[str], query: str) -> list[float]:
    documents = [terms(text) for text in texts]
    average = sum(map(len, documents)) / len(documents)
    scores = [0.0] * len(texts)
    for term in terms(query):
        holding = sum(term in document for document in documents)
        weight = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        for place, document in enumerate(documents):
            count = document.count(term)
            slowed = count + 1.2 * (1 - 0.75 + 0.75 * len(document) / average)
            scores[place] += weight * count * 2.2 / slowed
    return scores


def test_bm25_is_the_textbook_formula():
    texts = ["red apple red", "green apple tree", "blue sky", "running red runner in a red coat", ""]
    index = Index.of([made(place, text) for place, text in enumerate(texts)])

    scores = match_words(index, hash_query("red runner apple", KEY)).bm25

    assert scores == pytest.approx(bm25_by_hand(texts, "red runner apple"))
    assert scores[4] == 0


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.text(alphabet="ab ", max_size=12), min_size=1, max_size=6),
    st.text(alphabet="abc ", max_size=6),
)
def test_words_are_found_in_exactly_the_texts_that_hold_them(texts, word):
    index = Index.of([made(place, text) for place, text in enumerate(texts)])
    query = hash_query(word, KEY)

    found = match_words(index, query).bm25 > 0

    searched = set(query.terms.hashes.tolist())
    assert found.tolist() == [bool(searched & set(hash_terms(terms(text), KEY).hashes.tolist())) for text in texts]


def test_coverage_is_the_share_of_content_words_whatever_their_form():
    index = Index.of([made(1, "my dog runs"), made(2, "a dog"), made(3, "a cat")])

    covered = match_words(index, hash_query("Does the dog run?", KEY)).coverage

    assert covered[0] == pytest.approx(1)
    assert 0.4 < covered[1] < 0.5
    assert covered[2] == 0


def test_nothing_related_gives_an_empty_answer():
    ranking = ranked([made(1, "I like sailing", 0.1), made(2, "We bake on Sundays", 0.19)], asked("licence plate"))

    assert ranking.candidates == ()
    assert {each.explanation.dropped for each in ranking.dropped} == {Dropped.BELOW_FLOOR}


def test_an_empty_index_gives_an_empty_answer():
    ranking = ranked([], asked("anything"))

    assert (ranking.candidates, ranking.dropped) == ((), ())


def test_near_meaning_or_enough_words_pass_the_floor():
    entries = [made(1, "near", 0.3), made(2, "error TS2345 in build", 0.0), made(3, "far", 0.0)]

    ranking = ranked(entries, asked("TS2345 error"))

    passed = {each.id.int: each.explanation.passed_by for each in ranking.candidates}
    assert passed == {1: (PassedBy.MEANING,), 2: (PassedBy.WORDS,)}


def test_without_a_vector_words_alone_answer_and_it_says_so():
    ranking = ranked([made(1, "my sister Kim lives in Oslo", 0.9), made(2, "cake", 0.9)], asked("Oslo", vector=False))

    assert ranking.degraded
    assert numbers(ranking) == [1]


def test_an_entry_whose_vector_is_pending_is_found_by_its_words():
    entries = [made(1, "the boat is called Aurora"), made(2, "boats", 0.3)]

    assert numbers(ranked(entries, asked("boat Aurora"))) == [1, 2]


def test_each_model_has_its_own_floor_and_counts_as_one_lane():
    other = QueryVector(2, np.array([0, 1], np.float32), 0.7)
    query = Query(hash_query("", KEY), (asked().vectors[0], other))
    entries = [
        made(1, cosine=0.3),
        made(2, vectors={2: stored([0.8, 0.6])}),
        made(3, vectors={2: stored([0.6, 0.8])}),
    ]

    ranking = ranked(entries, query)

    assert sorted(numbers(ranking)) == [1, 3]
    lanes = {lane.lane: lane.raw for lane in ranking.candidates[0].explanation.lanes}
    assert set(lanes) == {"dense:1", "dense:2", "lexical"}


def test_critical_memories_keep_two_slots_nearest_first():
    critical = [made(n, f"allergy {n}", cosine, importance=0.95) for n, cosine in ((1, 0.05), (2, 0.1), (3, -0.2))]
    others = [made(10 + n, "dinner", 0.9 - n / 100) for n in range(8)]

    ranking = ranked([*critical, *others], asked("dinner tonight"), limit=5)

    assert numbers(ranking) == [10, 11, 12, 2, 1]
    assert [each.critical for each in ranking.candidates] == [False, False, False, True, True]
    assert ranking.candidates[3].explanation.passed_by == (PassedBy.CRITICAL,)


def test_a_critical_memory_keeps_its_slot_among_hundreds_of_related_ones():
    entries = [made(n, "tea", 0.9) for n in range(1, 301)]

    ranking = ranked([made(999, "allergy", 0.0, importance=1.0), *entries], asked("tea"), limit=3)

    assert numbers(ranking)[2] == 999
    assert len(ranking.candidates) == 3


def test_importance_just_below_critical_keeps_no_slot():
    assert numbers(ranked([made(1, "x", 0.0, importance=0.89)], asked("dinner"))) == []
    assert numbers(ranked([made(1, "x", 0.0, importance=0.9)], asked("dinner"))) == [1]


def test_kept_slots_never_exceed_the_limit():
    order = np.array([4, 3, 2, 1, 0])
    critical = np.array([False, False, False, True, True])

    assert keep_slots(order, critical, 3) == [4, 1, 0]
    assert keep_slots(order, critical, 1) == [1]
    assert keep_slots(order, ~critical & critical, 2) == [4, 3]
    assert keep_slots(order, critical, 0) == []


def test_scaling_is_defined_for_one_row_equal_rows_and_silence():
    assert scaled(np.array([0.4])).tolist() == [1.0]
    assert scaled(np.array([0.4, 0.4])).tolist() == [1.0, 1.0]
    assert scaled(np.array([-0.1, -0.3])).tolist() == [0.0, 0.0]
    assert scaled(np.array([])).tolist() == []
    assert scaled(np.array([0.5, 0.25, -0.5])).tolist() == [1.0, 0.5, 0.0]
    assert np.isnan(scaled(np.array([np.nan, np.nan]))).all()
    assert scaled(np.array([np.nan, 2.0]))[1] == 1.0


def test_fusion_is_the_weighted_mean_and_words_alone_without_a_vector():
    result = fused(np.array([1.0, 0.0, -np.inf]), np.array([0.0, 1.0, 0.5]))

    assert result == pytest.approx([1 / 1.7, 0.7 / 1.7, 0.5])


def test_the_newer_memory_wins_a_tie_and_only_a_tie():
    entries = [
        made(1, "tea", 0.5, days_old=30),
        made(2, "tea", 0.5, days_old=1),
        made(3, "tea", 0.6, days_old=900),
    ]

    assert numbers(ranked(entries, asked("tea"))) == [3, 2, 1]


def test_boosts_of_evidence_do_not_lift_a_weak_match_over_a_strong_one():
    entries = [made(1, "tea", 0.6), made(2, "tea", 0.4, importance=0.89, confirmed=True)]

    assert numbers(ranked(entries, asked("tea"))) == [1, 2]


def facts(**changes) -> Facts:
    one = {
        "relevance": 0.5,
        "importance": 0.8,
        "confirmed": 1.0,
        "age_days": 30.0,
        "idle_days": 7.0,
        "accesses": 4.0,
    }
    return Facts(**{name: np.array([value]) for name, value in (one | changes).items()})


@pytest.mark.parametrize(
    ("policy", "changes", "expected"),
    [
        (EvidencePolicy(), {}, 0.5 + 0.05 * 0.8 + 0.05),
        (EvidencePolicy(), {"confirmed": 0.0, "age_days": 9999.0}, 0.54),
        (WeightedPolicy(), {}, 0.6 * 0.5 + 0.2 * math.exp(-1) + 0.2 * 0.8),
        (WeightedPolicy(similarity_weight=1, recency_weight=0, importance_weight=0), {}, 0.5),
        (RecencyPolicy(), {}, 0.8 * 0.5 + 0.2 * math.exp(-1)),
        (RecencyPolicy(recency_weight=0.5, recency_days=60), {}, 0.25 + 0.5 * math.exp(-0.5)),
        (DecayPolicy(), {}, 0.5 * 0.5 * 1.4 * 2),
        (DecayPolicy(), {"accesses": 5000.0, "confirmed": 0.0}, 0.5 * 0.5 * 2.0),
    ],
)
def test_policies_score_by_their_formula(policy, changes, expected):
    assert policy.score(policy.terms(facts(**changes))).tolist() == pytest.approx([expected])


def test_policies_are_made_by_name_with_parameters():
    assert policy_named("evidence") == EvidencePolicy()
    assert policy_named("recency", {"recency_weight": 0.4}) == RecencyPolicy(recency_weight=0.4)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("newest", {}),
        ("evidence", {"weight": 1.0}),
        ("evidence", {"importance_boost": 0.06}),
        ("weighted", {"recency_days": 0.0}),
        ("weighted", {"similarity_weight": math.nan}),
        ("decay", {"access_cap": "2"}),
        ("decay", {"confirmation_factor": True}),
    ],
)
def test_wrong_policies_are_refused(name, parameters):
    with pytest.raises(PolicyInvalid):
        policy_named(name, parameters)


def test_access_is_looked_up_once_for_at_most_200_and_moves_the_ranking():
    entries = [made(n, "tea", 0.5, days_old=100) for n in range(1, 301)]
    asked_for: list[list[UUID]] = []

    def access(ids):
        asked_for.append(list(ids))
        return {ids[-1]: Access(3, NOW)}

    ranking = ranked(entries, asked("tea"), policy=WeightedPolicy(), access=access)

    assert [len(ids) for ids in asked_for] == [200]
    assert ranking.candidates[0].id == asked_for[0][-1]
    assert ranking.candidates[0].explanation.terms["recency"] == pytest.approx(0.2)


def test_access_is_not_looked_up_for_policies_that_do_not_use_it():
    def access(ids):
        raise AssertionError("looked up")

    assert numbers(ranked([made(1, "tea", 0.5)], asked("tea"), access=access)) == [1]


def test_explanation_names_every_figure():
    entries = [
        made(1, "green tea", 0.8, importance=0.4, confirmed=True),
        made(2, "tea", 0.5),
        made(3, "soup", 0.1),
    ]

    ranking = ranked(entries, asked("green tea"), limit=1)
    first, (second, third) = ranking.candidates[0], ranking.dropped

    dense, lexical = first.explanation.lanes
    assert (dense.lane, dense.rank, dense.scaled) == ("dense:1", 1, 1.0)
    assert dense.raw == pytest.approx(0.8, abs=0.01)
    assert (lexical.lane, lexical.rank, lexical.scaled) == ("lexical", 1, 1.0)
    assert first.explanation.passed_by == (PassedBy.MEANING, PassedBy.WORDS)
    assert first.explanation.relevance == pytest.approx(1)
    assert first.explanation.terms == pytest.approx({"relevance": 1, "importance": 0.02, "confirmation": 0.05})
    assert first.score == pytest.approx(1.07)
    assert first.explanation.policy == "evidence"
    assert first.explanation.dropped is None
    assert (second.id.int, second.explanation.dropped) == (2, Dropped.BEYOND_LIMIT)
    assert second.explanation.lanes[0].rank == 2
    assert (third.id.int, third.explanation.dropped, third.score) == (3, Dropped.BELOW_FLOOR, None)
    assert third.explanation.lanes[1].raw is None


def test_no_more_than_fifty_dropped_are_told():
    assert len(ranked([made(n, "tea", 0.5) for n in range(1, 101)], asked("tea")).dropped) == 50


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.floats(-1, 1), st.sampled_from([0.0, 0.5, 0.95])), max_size=12),
    st.integers(0, 6),
    st.booleans(),
)
def test_a_ranking_is_within_its_limit_in_order_and_the_same_twice(drawn, limit, vector):
    entries = [made(n, "tea" * (n % 2), cosine, importance=each) for n, (cosine, each) in enumerate(drawn)]

    ranking = ranked(entries, asked("tea", vector=vector), limit=limit)

    scores = [round(each.score, 3) for each in ranking.candidates]
    assert len(scores) <= limit
    assert scores == sorted(scores, reverse=True)
    assert ranking == ranked(entries, asked("tea", vector=vector), limit=limit)
    shown = [each.id for each in (*ranking.candidates, *ranking.dropped)]
    assert sorted(shown) == sorted(each.id for each in entries)
