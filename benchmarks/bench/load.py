"""Timed calls from one or more clients at once, and what a probe is. Start at `run_round`.

Only the call itself is timed. What it gave is checked after the round, so that checking slows no client down.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

type Call = Callable[[], Any]


class WrongAnswer(Exception):
    """A timed call did not give what was asked for: its time says nothing."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Something to time. `open` gives one client's call; `check` raises WrongAnswer; `floors` name other probes."""

    name: str
    open: Callable[[], AbstractContextManager[Call]]
    check: Callable[[Any], None]
    floors: tuple[str, ...] = ()
    note: str = ""


@dataclass(slots=True)
class Sample:
    """The seconds of all calls, and the wall time in which they were made."""

    seconds: list[float] = field(default_factory=list)
    wall: float = 0.0

    def add(self, other: "Sample") -> None:
        self.seconds += other.seconds
        self.wall += other.wall

    @property
    def p50_ms(self) -> float:
        return float(np.percentile(self.seconds, 50)) * 1000

    @property
    def p95_ms(self) -> float:
        return float(np.percentile(self.seconds, 95)) * 1000

    @property
    def per_s(self) -> float:
        return len(self.seconds) / self.wall


def run_round(calls: Sequence[Call], repeats: int, check: Callable[[Any], None]) -> Sample:
    """Each client makes its call `repeats` times, all clients at once, one after another each.

    One call of each before that is not timed: connections may have been closed while others were measured.
    """
    for call in calls:
        check(call())
    start = threading.Barrier(len(calls) + 1)

    def work(call: Call) -> list[tuple[float, Any]]:
        start.wait()
        return [_timed(call) for _ in range(repeats)]

    with ThreadPoolExecutor(len(calls)) as clients:
        working = [clients.submit(work, call) for call in calls]
        start.wait()
        started = time.perf_counter()
        done = [made for each in working for made in each.result()]
        wall = time.perf_counter() - started
    for _, result in done:
        check(result)
    return Sample([seconds for seconds, _ in done], wall)


def _timed(call: Call) -> tuple[float, Any]:
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result
