"""`make evals`: how good what is recalled is, over REST. docs/measuring.md says how to read it.

LOCOMO=path/to/locomo10.json asks that set too; EVALS=lifecycle,memorybank,locomo picks.
"""

import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks.evals.cases import read_cases
from benchmarks.evals.lifecycle import Storing, play, store_all, store_gold
from benchmarks.evals.retrieval import ask_talks
from benchmarks.evals.rows import Row, as_json, lifecycle_rows, retrieval_rows, tables
from benchmarks.evals.talks import Talk, read_locomo, read_memorybank
from benchmarks.results import write_results
from benchmarks.stack import Tenant, own_stack
from config.stack.ending import exit_status
from config.stack.errors import StackError

SETS = Path(__file__).parents[1] / "sets"

type Eval = Callable[[Tenant], list[Row]]


def main() -> int:
    return exit_status(lambda: _perform(chosen_evals(os.environ)))


def chosen_evals(environ: Mapping[str, str]) -> list[Eval]:
    evals: dict[str, list[Eval]] = {
        "lifecycle": [
            partial(_lifecycle, name="lifecycle", storing=store_all),
            partial(_lifecycle, name="lifecycle-gold", storing=store_gold),
        ],
        "memorybank": [partial(_talks, name="memorybank-en", talks=read_memorybank(SETS / "memorybank-en"))],
    }
    if environ.get("LOCOMO"):
        evals["locomo"] = [partial(_talks, name="locomo", talks=_locomo(Path(environ["LOCOMO"])))]
    picked = [name.strip() for name in environ.get("EVALS", "").split(",") if name.strip()] or list(evals)
    if not evals.keys() >= set(picked):
        raise StackError(f"EVALS picks from {', '.join(evals)} (locomo needs LOCOMO=path).")
    return [each for name in picked for each in evals[name]]


def _perform(evals: list[Eval]) -> int:
    rows: list[Row] = []
    with own_stack() as served:
        tenant = served.open_tenant("Evaluation")
        for each in evals:
            found = each(tenant)
            print("\n" + "\n".join(tables(found)), flush=True)
            rows += found
    print(f"\nWritten to {write_results('evals', as_json(rows))}")
    return 0


def _lifecycle(tenant: Tenant, *, name: str, storing: Storing) -> list[Row]:
    cases = read_cases(SETS / "lifecycle.jsonl", datetime.now(UTC).date())
    return lifecycle_rows(name, cases, play(tenant, cases, storing, name, cases))


def _talks(tenant: Tenant, *, name: str, talks: list[Talk]) -> list[Row]:
    return retrieval_rows(name, ask_talks(tenant, talks, name))


def _locomo(file: Path) -> list[Talk]:
    try:
        return read_locomo(file)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StackError(f"{file} is not a LoCoMo file as snap-research publishes it: {error!r}") from error


if __name__ == "__main__":
    sys.exit(main())
