"""Scores on examples worked out by hand."""

import math

import pytest

from benchmarks.evals.scoring import (
    Lifecycle,
    Retrieval,
    Score,
    lifecycle_scores,
    ndcg_at,
    recall_at,
    reciprocal_rank,
    retrieval_scores,
)


def test_recall_is_the_share_of_what_is_wanted_among_the_first():
    ranked = ["a", "x", "b", "y"]

    assert recall_at(1, ranked, {"a", "b"}) == 0.5
    assert recall_at(3, ranked, {"a", "b"}) == 1.0
    assert recall_at(4, ranked, {"c"}) == 0.0


def test_reciprocal_rank_is_of_the_first_that_is_wanted():
    assert reciprocal_rank(["x", "a", "b"], {"a", "b"}) == 0.5
    assert reciprocal_rank(["x"], {"a"}) == 0.0
    assert reciprocal_rank([], {"a"}) == 0.0


def test_ndcg_is_one_for_the_best_order_and_less_the_later():
    assert ndcg_at(10, ["a", "b", "x"], {"a", "b"}) == 1.0
    assert ndcg_at(10, ["x", "a"], {"a"}) == pytest.approx(1 / math.log2(3))
    assert ndcg_at(1, ["x", "a"], {"a"}) == 0.0


def test_ndcg_expects_no_more_than_fits():
    assert ndcg_at(1, ["a", "b"], {"a", "b"}) == 1.0


def test_retrieval_scores_are_means_over_questions():
    asked = [Retrieval(["a", "b"], frozenset("a")), Retrieval(["x", "b"], frozenset("bc"))]

    scores = retrieval_scores(asked, (1, 2))

    assert scores["recall_at_1"] == Score(0.5, 2)
    assert scores["recall_at_2"] == Score(0.75, 2)
    assert scores["mrr"] == Score(0.75, 2)


def outcome(shown, must="", must_not=""):
    return Lifecycle(list(shown), frozenset(must), frozenset(must_not))


def test_a_case_passes_with_all_it_needs_and_nothing_it_must_not():
    assert outcome("ab", must="ab", must_not="c").passed
    assert not outcome("a", must="ab").passed
    assert not outcome("abc", must="ab", must_not="c").passed


def test_a_case_that_needs_nothing_passes_with_nothing():
    assert outcome("", must_not="c").passed


def test_lifecycle_scores_say_what_each_is_a_share_of():
    played = [outcome("a", must="ab"), outcome("xb", must="b", must_not="x"), outcome("", must_not="y")]

    scores = lifecycle_scores(played)

    assert scores["must_at_5"] == Score(pytest.approx(2 / 3), 3)  # statements
    assert scores["must_not_shown"] == Score(0.5, 2)  # cases that name any
    assert scores["passed"] == Score(pytest.approx(1 / 3), 3)  # cases
    assert scores["mrr"] == Score(0.75, 2)  # cases that need any


def test_lifecycle_scores_leave_out_what_no_case_asks_for():
    assert set(lifecycle_scores([outcome("a", must="a")])) == {"must_at_5", "passed", "mrr"}
