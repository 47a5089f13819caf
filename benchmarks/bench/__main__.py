"""`make bench`: how fast it is over HTTP, as ratios to floors measured in the same minutes.

BENCH=recall,remember,knowledge,tenants picks; QUICK=1 takes less than two minutes. docs/measuring.md says how to
read it.
"""

import os
import sys
from dataclasses import replace

from benchmarks.bench.floors import make_tables
from benchmarks.bench.load import WrongAnswer
from benchmarks.bench.measuring import SUBJECTS, Bench, Plan
from benchmarks.bench.rows import HEADS, Row, as_json
from benchmarks.results import machine, table, write_results
from benchmarks.stack import Served, own_stack
from config.stack.ending import exit_status
from config.stack.errors import StackError


def main() -> int:
    return exit_status(lambda: _perform(plan_for(os.environ.get("BENCH", ""), quick=bool(os.environ.get("QUICK")))))


def plan_for(picked: str, *, quick: bool) -> Plan:
    """All subjects, or those picked, by commas. StackError for one there is not."""
    subjects = frozenset(name.strip() for name in picked.split(",") if name.strip()) or frozenset(SUBJECTS)
    if not subjects <= set(SUBJECTS):
        raise StackError(f"BENCH picks from {', '.join(SUBJECTS)}.")
    plan = Plan(subjects)
    return replace(plan, sizes=(1_000,), rounds=3, repeats=6, neighbours=50) if quick else plan


def _perform(plan: Plan) -> int:
    here = machine()
    try:
        with own_stack() as served:
            rows = measured(served, plan)
    except WrongAnswer as wrong:
        raise StackError(f"Not measured, since the answers are wrong: {wrong}") from wrong
    print(f"\n{table(HEADS, [row.cells for row in rows])}\n")
    for name, note in {row.name: row.note for row in rows}.items():
        print(f"{name}: {note}")
    print(f"\n{here}\nWritten to {write_results('bench', as_json(rows), machine=here)}")
    return 0


def measured(served: Served, plan: Plan) -> list[Row]:
    make_tables(served, plan.sizes)
    rows = []
    for row in Bench(served, plan, served.open_tenant("People")).rows():
        rows.append(row)
        print(f"{row.name} {row.size} by {row.clients}: {row.p50_ms:.2f} ms {row.ratio_p50 or ''}", flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
