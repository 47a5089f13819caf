"""What is measured in which order: each probe in turn, round after round, so that a busy moment hits all alike."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product

from benchmarks.bench.floors import echo, floor_encoding, floor_http, floor_vector
from benchmarks.bench.load import Call, Probe, Sample, run_round
from benchmarks.bench.loading import load_knowledge, load_memories, open_neighbours, refresh_statistics
from benchmarks.bench.product import recalls, remembering, searches
from benchmarks.bench.rows import Row, rows_of
from benchmarks.stack import Served, Tenant

SUBJECTS = ("recall", "remember", "knowledge", "tenants")
BESIDE = 1000  # the size at which tenants beside are counted


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. `repeats`: calls a round with one client; several share two to three times as many."""

    subjects: frozenset[str]
    sizes: tuple[int, ...] = (100, 1_000, 10_000)
    clients: tuple[int, ...] = (1, 8)
    rounds: int = 5
    repeats: int = 20
    neighbours: int = 1000

    def calls(self, clients: int) -> int:
        """Of each client in each round."""
        return self.repeats if clients == 1 else max(2, self.repeats * 3 // clients)


@dataclass(frozen=True, slots=True)
class Bench:
    served: Served
    plan: Plan
    people: Tenant

    def rows(self) -> Iterator[Row]:
        """All rows of the plan, as they come."""
        with echo() as client:
            for clients in self.plan.clients:
                yield from self._measured([client], 0, clients)
        paths: dict[int, str] = {}
        for size in self.plan.sizes:
            probes = list(self._probes(size, paths))
            refresh_statistics(self.served)
            for clients in self.plan.clients:
                yield from self._measured([*probes, *self._floors(size)], size, clients)
        if "tenants" in self.plan.subjects:
            yield from self._beside(paths)

    def _probes(self, size: int, paths: dict[int, str]) -> Iterator[Probe]:
        if self.plan.subjects & {"recall", "tenants"}:
            paths[size] = self._person(f"recalled-{size}", size)
            yield from recalls(self.served, self.people, paths[size])
        if "knowledge" in self.plan.subjects:
            tenant = self.served.open_tenant(f"Knowledge {size}")
            _say(f"{size} chunks taken in by the worker in {load_knowledge(tenant, size, seed=1):.0f} s")
            yield from searches(self.served, tenant)
        if "remember" in self.plan.subjects:
            path = self._person(f"written-{size}", size)
            yield remembering(self.served, self.people, path, seed=2)

    def _person(self, name: str, size: int) -> str:
        path = self.people.welcome(name)
        seconds = load_memories(self.people, path, size, seed=1)
        _say(f"{size} memories stored over REST in {seconds:.0f} s")
        return path

    def _floors(self, size: int) -> list[Probe]:
        return [floor_http(self.served), floor_vector(self.served, size), floor_encoding()]

    def _beside(self, paths: dict[int, str]) -> Iterator[Row]:
        """The same recall again, with many other tenants in the database."""
        size = BESIDE if BESIDE in paths else min(paths)
        probes = [*recalls(self.served, self.people, paths[size]), *self._floors(size)]
        before = self._sampled(probes, 1)
        alone = {row.name: row for row in rows_of(before, probes, size, 1)}
        seconds = open_neighbours(self.served, self.plan.neighbours)
        _say(f"{self.plan.neighbours} further tenants made in {seconds:.0f} s")
        refresh_statistics(self.served)
        after = self._sampled(probes, 1)
        for row in rows_of(after, probes, size, 1):
            if row.name.startswith("recall"):
                yield _compared(row, alone[row.name], self.plan.neighbours)

    def _measured(self, probes: Sequence[Probe], size: int, clients: int) -> list[Row]:
        return rows_of(self._sampled(probes, clients), probes, size, clients)

    def _sampled(self, probes: Sequence[Probe], clients: int) -> dict[str, Sample]:
        samples = {probe.name: Sample() for probe in probes}
        with ExitStack() as opened:
            calls: dict[str, list[Call]] = {
                probe.name: [opened.enter_context(probe.open()) for _ in range(clients)] for probe in probes
            }
            for probe in probes:
                run_round(calls[probe.name], 2, probe.check)  # the first calls fill caches and make plans
            for _, probe in product(range(self.plan.rounds), probes):
                samples[probe.name].add(run_round(calls[probe.name], self.plan.calls(clients), probe.check))
        return samples


def _compared(row: Row, alone: Row, neighbours: int) -> Row:
    """The time alone and beside others differ by the machine's mood too; the ratios to the floor do not."""
    ratio = (row.ratio_p50 or 0) / (alone.ratio_p50 or 1)
    note = (
        f"beside {neighbours} further tenants; alone just before: p50 {alone.p50_ms:.2f} ms, "
        f"{row.p50_ms / alone.p50_ms:.2f} times; ratio to the floor {ratio:.2f} times the one alone"
    )
    return replace(row, name=f"{row.name}_beside_{neighbours}_tenants", note=note)


def _say(line: str) -> None:
    print(f"  {line}", flush=True)
