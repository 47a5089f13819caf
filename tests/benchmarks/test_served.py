"""A tiny bench and a few cases, against the processes that `make bench` and `make evals` start."""

import json
from datetime import date

import jsonschema_rs
import pytest

from benchmarks import results
from benchmarks.bench.__main__ import measured
from benchmarks.bench.measuring import Plan
from benchmarks.bench.rows import as_json as bench_rows
from benchmarks.evals.__main__ import SETS
from benchmarks.evals.cases import read_cases
from benchmarks.evals.lifecycle import play, store_all, store_gold
from benchmarks.evals.retrieval import ask_talks
from benchmarks.evals.rows import as_json as eval_rows
from benchmarks.evals.rows import lifecycle_rows, retrieval_rows, tables
from benchmarks.evals.talks import read_memorybank
from benchmarks.stack import served_from

PLAN = Plan(frozenset({"recall", "remember", "knowledge", "tenants"}), (10,), (2,), rounds=1, repeats=2, neighbours=1)
TEXT, COUNT, FIGURE = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "number", "exclusiveMinimum": 0}
SHARE = {"type": "number", "minimum": 0, "maximum": 1}
RATIO = FIGURE | {"type": ["number", "null"]}
BENCH = {"name": TEXT, "size": COUNT, "clients": COUNT, "n": COUNT, "p50_ms": FIGURE, "p95_ms": FIGURE, "per_s": FIGURE}
BENCH |= {"floor": TEXT, "ratio_p50": RATIO, "ratio_per_s": RATIO, "note": TEXT}
SPLIT = {"enum": ["all", "tune", "test"]}
EVALS = {
    "set": TEXT,
    "split": SPLIT,
    "lang": TEXT,
    "kind": TEXT,
    "provider": TEXT,
    "metric": TEXT,
    "value": SHARE,
    "n": COUNT,
}


def closed(properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def require_shape(file, row, **facts):
    """Exactly these fields: results of different days are laid side by side."""
    rows = {"type": "array", "items": closed(row), "minItems": 1}
    document = json.loads(file.read_text())
    jsonschema_rs.validate(closed({"at": TEXT, "commit": TEXT, "rows": rows} | facts), document)
    return document["rows"]


@pytest.fixture(scope="module")
def served(stack, connect_as):
    with served_from(stack.services.state, stack.environment) as running:
        yield running
    with connect_as("postgres", autocommit=True) as server:
        server.execute("DROP SCHEMA IF EXISTS benchmark CASCADE")


@pytest.fixture(scope="module")
def tenant(served):
    return served.open_tenant("Evaluation")


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    return results.write_results


def test_a_tiny_bench(served, written):
    rows = require_shape(written("bench", bench_rows(measured(served, PLAN)), machine="m"), BENCH, machine=TEXT)

    compared = {(row["name"], row["clients"]): row["floor"] for row in rows if row["floor"]}
    plain, encoding = "floor_http+floor_vector", "floor_http+floor_vector+floor_encoding"
    assert compared == {
        ("recall", 2): plain,
        ("knowledge_search", 2): plain,
        ("recall_encoding", 2): encoding,
        ("knowledge_search_encoding", 2): encoding,
        ("remember", 2): "floor_http+floor_encoding",
        ("recall_beside_1_tenants", 1): plain,
        ("recall_encoding_beside_1_tenants", 1): encoding,
    }
    assert all(row["ratio_p50"] > 0 for row in rows if row["floor"])


@pytest.fixture(scope="module")
def five_cases():
    cases = read_cases(SETS / "lifecycle.jsonl", date(2026, 6, 1))
    return [next(case for case in cases if case.kind == kind) for kind in FIVE]


FIVE = ("supersede", "forget", "expired", "other_user", "when")


def test_gold_labels_reach_what_storing_everything_does_not(tenant, five_cases, written):
    everything = play(tenant, five_cases, store_all, "all", five_cases)
    gold = play(tenant, five_cases, store_gold, "gold", five_cases)

    assert {case.kind for case, each in zip(five_cases, everything, strict=True) if each.leaked} >= {"supersede"}
    assert [each.leaked for each in gold] == [False] * 5
    assert all(each.passed for each in gold)
    rows = lifecycle_rows("lifecycle", five_cases, everything) + lifecycle_rows("lifecycle-gold", five_cases, gold)
    require_shape(written("evals", eval_rows(rows)), EVALS)
    assert [each.splitlines()[0] for each in tables(rows)] == ["lifecycle, per cent", "lifecycle-gold, per cent"]


def test_evidence_is_found_in_a_talk(tenant, written):
    talk = read_memorybank(SETS / "memorybank-en")[0]
    talk.turns = dict(list(talk.turns.items())[:40])
    talk.questions = [each for each in talk.questions if each.evidence <= talk.turns.keys()]

    asked = ask_talks(tenant, [talk], "talk")

    assert len(asked) == len(talk.questions) > 0
    rows = require_shape(written("evals", eval_rows(retrieval_rows("memorybank-en", asked))), EVALS)
    assert {row["metric"]: row["value"] for row in rows}["recall_at_20"] > 0
