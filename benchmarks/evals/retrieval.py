"""Asking talks over REST: every turn is a memory of one person, every question a recall. Start at `ask_talks`."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import batched
from typing import Any

from benchmarks.evals.lifecycle import AT_ONCE, ask, store
from benchmarks.evals.scoring import Retrieval
from benchmarks.evals.talks import Talk
from benchmarks.stack import Tenant

SHOWN = 20
BATCH_CHARACTERS = 6_000  # more would exceed what the server encodes while somebody waits
LONGEST = 8_000  # of a memory; a longer turn is cut


def ask_talks(tenant: Tenant, talks: Sequence[Talk], prefix: str) -> list[tuple[str, Retrieval]]:
    """What each question brought up, with its category."""
    with ThreadPoolExecutor(AT_ONCE) as asking:
        return [each for found in asking.map(lambda talk: _ask(tenant, talk, prefix), talks) for each in found]


def _ask(tenant: Tenant, talk: Talk, prefix: str) -> list[tuple[str, Retrieval]]:
    path = tenant.welcome(f"{prefix}-{talk.id}")
    turns: dict[str, str] = {}
    for batch in fitting(list(talk.turns.items())):
        ids = store(tenant.agent, path, [memory for _, memory in batch])
        turns |= zip(ids, [turn for turn, _ in batch], strict=True)
    return [
        (each.category, Retrieval([turns[memory] for memory in found], each.evidence))
        for each in talk.questions
        if (found := ask(tenant.agent, path, each.text, each.asked_at.isoformat(), SHOWN)) is not None
    ]


def fitting(turns: Sequence[tuple[str, dict[str, Any]]]) -> list[list[tuple[str, dict[str, Any]]]]:
    """In batches that are encoded at once."""
    batches: list[list[tuple[str, dict[str, Any]]]] = [[]]
    size = 0
    for turn, memory in turns:
        cut = memory | {"text": memory["text"][:LONGEST]}
        if batches[-1] and size + len(cut["text"]) > BATCH_CHARACTERS:
            batches.append([])
            size = 0
        batches[-1].append((turn, cut))
        size += len(cut["text"])
    return [part for batch in batches for part in map(list, batched(batch, 100))]
