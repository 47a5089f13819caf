"""Where an embedder's floor belongs: cosines of questions with what answers them, and with what does not.

Run it as `python -m benchmarks.calibrate_floor path/to/lifecycle.jsonl`; another embedder's dotted path may
follow. The file holds one case a line: lang, query, must (ids), statements (id, text). The floor chosen is
where the share of related pairs kept exceeds the share of unrelated ones let through the most (Youden's
index), down to the next 0.05: such sets are small, and a memory lost costs more than one too many.
"""

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.embedding import Embedder

FLOOR_STEP = 5  # hundredths
PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)

type Cosines = NDArray[np.float32]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("embedder", nargs="?", default="memory.embedding.minilm.MiniLM")
    parser.add_argument("--lang", default="en")
    options = parser.parse_args(arguments)
    module, _, name = options.embedder.rpartition(".")
    embedder: Embedder = getattr(importlib.import_module(module), name)()
    lines = options.cases.read_text(encoding="utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if case["lang"] == options.lang]
    report(embedder, *related_and_unrelated(embedder, cases))


def related_and_unrelated(embedder: Embedder, cases: Sequence[dict[str, Any]]) -> tuple[Cosines, Cosines]:
    """Cosines of each question with its must statements, and with all statements of all other cases."""
    statements = [(case["id"], each["id"], each["text"]) for case in cases for each in case["statements"]]
    cosines = (
        embedder.encode([case["query"] for case in cases]) @ embedder.encode([text for _, _, text in statements]).T
    )
    owners = np.array([owner for owner, _, _ in statements])
    unrelated = owners[None, :] != np.array([case["id"] for case in cases])[:, None]
    needed = np.array(
        [[owner == case["id"] and name in case["must"] for owner, name, _ in statements] for case in cases]
    )
    return cosines[needed], cosines[unrelated]


def best_floor(related: Cosines, unrelated: Cosines) -> float:
    thresholds = np.arange(0, 100) / 100
    kept = (related[None, :] >= thresholds[:, None]).mean(axis=1)
    let_through = (unrelated[None, :] >= thresholds[:, None]).mean(axis=1)
    best = int(np.argmax(kept - let_through))
    return (best - best % FLOOR_STEP) / 100


def report(embedder: Embedder, related: Cosines, unrelated: Cosines) -> None:
    floor = best_floor(related, unrelated)
    print(f"model        {embedder.model_id} (floor in use {embedder.floor})")
    print("percentile  " + "".join(f"{each:>8}" for each in PERCENTILES))
    for name, cosines in (("related", related), ("unrelated", unrelated)):
        print(f"{name:<12}" + "".join(f"{value:8.3f}" for value in np.percentile(cosines, PERCENTILES)))
    for threshold in (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4):
        print(
            f"floor {threshold:.2f}:  related kept {np.mean(related >= threshold):6.1%}"
            f"   unrelated let through {np.mean(unrelated >= threshold):6.2%}"
        )
    print(f"chosen floor {floor:.2f}  ({len(related)} related pairs, {len(unrelated)} unrelated)")


if __name__ == "__main__":
    main(sys.argv[1:])
