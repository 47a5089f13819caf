"""Timing and its arithmetic, the invented texts, and how results are written."""

import threading
from contextlib import contextmanager
from itertools import islice

import pytest

from benchmarks import results
from benchmarks.bench.__main__ import plan_for
from benchmarks.bench.invented import handbook, questions, sentences
from benchmarks.bench.load import Probe, Sample, WrongAnswer, run_round
from benchmarks.bench.measuring import SUBJECTS
from benchmarks.bench.product import check_recall
from benchmarks.bench.rows import rows_of
from benchmarks.rest import Answer
from config.stack.errors import StackError
from memory.chunking import chunk_markdown


@contextmanager
def nothing():
    yield lambda: None


def test_every_client_calls_as_often_as_asked_and_once_before():
    threads = []
    calls = [lambda: threads.append(threading.get_ident())] * 3

    sample = run_round(calls, 4, lambda _: None)

    assert len(sample.seconds) == 12
    assert len(threads) == 12 + 3
    assert len(set(threads)) == 3 + 1
    assert sample.wall >= max(sample.seconds)


def test_a_wrong_answer_stops_the_round():
    def refuse(_):
        raise WrongAnswer

    with pytest.raises(WrongAnswer):
        run_round([lambda: None], 1, refuse)


def test_an_empty_answer_is_a_wrong_one():
    with pytest.raises(WrongAnswer, match="0 results instead of 5"):
        check_recall(Answer(200, b'{"memories": [], "degraded": []}'))
    with pytest.raises(WrongAnswer, match="200 was expected: 403"):
        check_recall(Answer(403, b"{}"))


def test_floors_that_follow_each_other_add_up():
    probes = [
        Probe("recall", nothing, print, floors=("floor_http", "floor_vector")),
        Probe("floor_http", nothing, print),
        Probe("floor_vector", nothing, print),
    ]
    samples = {
        "recall": Sample([0.03, 0.03], wall=0.06),
        "floor_http": Sample([0.005, 0.005], wall=0.01),
        "floor_vector": Sample([0.01, 0.01], wall=0.02),
    }

    recall, http, _ = rows_of(samples, probes, 100, 1)

    assert (recall.p50_ms, recall.floor, recall.ratio_p50) == (30.0, "floor_http+floor_vector", 2.0)
    assert recall.per_s == pytest.approx(33.3)
    assert recall.ratio_per_s == 0.5  # the floor answers 1 / (1/200 + 1/100) a second
    assert (http.per_s, http.floor, http.ratio_p50, http.ratio_per_s) == (200.0, "", None, None)


def test_bench_picks_what_is_asked_for():
    assert plan_for("", quick=False).subjects == set(SUBJECTS)
    assert plan_for("recall, remember", quick=True).subjects == {"recall", "remember"}
    with pytest.raises(StackError, match="BENCH picks from"):
        plan_for("recal", quick=False)


def test_no_two_sentences_or_questions_are_alike():
    assert len(set(sentences(10_000, seed=1))) == 10_000
    assert len(set(islice(questions(seed=1), 10_000))) == 10_000


def test_the_same_seed_says_the_same():
    assert sentences(3, seed=7) == sentences(3, seed=7) != sentences(3, seed=8)


def test_a_section_of_the_handbook_is_a_chunk():
    assert len(chunk_markdown(handbook(12, seed=1), lambda text: len(text.split()))) == 12


def test_results_are_written_with_what_they_are_of(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")

    file = results.write_results("bench", [{"name": "recall"}], machine="a machine")

    assert file.read_text().startswith('{\n "at": "2')
    assert [each.name for each in file.parent.iterdir()] == ["bench.json"]


def test_tables_line_up():
    assert results.table(["", "n"], [["recall", "5"], ["x", "12"]]) == "         n\n------  --\nrecall   5\nx       12"
