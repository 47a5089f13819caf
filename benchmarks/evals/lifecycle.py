"""Playing lifecycle cases over REST: a fresh person for each case and user, stored, asked, scored.

Two ways of storing. `store_all` sends every statement as it was said: what the service does with it is its own affair.
`store_gold` does by hand what a perfect reader would: skips, supersedes, forgets, lets run out, marks as important.
It is the ceiling for whoever chooses what to store. Start at `play`.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.evals.cases import Case, Statement, distractors
from benchmarks.evals.scoring import Lifecycle
from benchmarks.stack import Rest, Tenant, require

LIMIT = 5
AT_ONCE = 2

# Memory ids by statement, for those that were stored.
type Stored = dict[str, str]
type Storing = Callable[[Rest, str, Sequence[Statement], Stored], None]


def play(tenant: Tenant, cases: Sequence[Case], storing: Storing, prefix: str, pool: Sequence[Case]) -> list[Lifecycle]:
    """The outcome of each case, in order; distractors come from `pool`."""
    with ThreadPoolExecutor(AT_ONCE) as playing:
        return list(playing.map(lambda case: _play(tenant, case, storing, prefix, pool), cases))


def _play(tenant: Tenant, case: Case, storing: Storing, prefix: str, pool: Sequence[Case]) -> Lifecycle:
    stored: Stored = {}
    paths = {user: tenant.welcome(f"{prefix}-{case.id}-{number}") for number, user in enumerate(case.users)}
    store(tenant.agent, paths[case.asked_by], distractors(case, pool))
    for user, path in paths.items():
        storing(tenant.agent, path, [each for each in case.statements if each.user == user], stored)
    shown = ask(tenant.agent, paths[case.asked_by], case.query, case.asked_at.isoformat(), LIMIT)
    names = {memory: statement for statement, memory in stored.items()}
    return case.outcome([names.get(memory, "") for memory in shown])


def store(agent: Rest, path: str, items: Sequence[dict[str, Any]]) -> list[str]:
    """Memory ids of the items, in order. Fails when any was stored without its vector."""
    if not items:
        return []
    answer = agent.post(f"{path}/memories", {"items": list(items), "infer": False})
    require(answer, 201)
    body = answer.json()
    if body["degraded"]:
        raise RuntimeError("stored without vectors: the quality of a busy machine is not what is measured")
    return [memory["id"] for memory in body["memories"]]


def ask(agent: Rest, path: str, query: str, as_of: str, limit: int) -> list[str]:
    """Memory ids, best first."""
    answer = agent.post(f"{path}/recall", {"query": query, "as_of": as_of, "limit": limit, "knowledge_limit": 0})
    require(answer, 200)
    body = answer.json()
    if body["personal"]["status"] != "answered" or body["degraded"]:
        raise RuntimeError(f"recall did not answer in full: {body['personal']}, {body['degraded']}")
    return [memory["id"] for memory in body["memories"]]


def store_all(agent: Rest, path: str, statements: Sequence[Statement], stored: Stored) -> None:
    ids = store(agent, path, [each.as_sent for each in statements])
    stored.update(zip([each.id for each in statements], ids, strict=True))


def store_gold(agent: Rest, path: str, statements: Sequence[Statement], stored: Stored) -> None:
    ended: set[str] = set()
    for each in statements:
        for forgotten in each.forgets:
            if forgotten in stored:
                require(agent.delete(f"{path}/memories/{stored[forgotten]}"), 200)
        if each.label in {"store", "supersede"}:
            replaced = [] if each.partial else [old for old in each.replaces if old in stored and old not in ended]
            stored[each.id] = _store_labelled(agent, path, each, [stored[old] for old in replaced])
            ended.update(replaced)


def _store_labelled(agent: Rest, path: str, statement: Statement, supersedes: Sequence[str]) -> str:
    labelled = statement.as_sent | {"kind": statement.kind, "importance": 1.0 if statement.important else 0.5}
    if statement.expires_at:
        labelled["expires_at"] = statement.expires_at.isoformat()
    return store(agent, path, [labelled | {"supersedes": list(supersedes)}])[0]
