"""From samples to the rows of bench.json and its table."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from benchmarks.bench.load import Probe, Sample

HEADS = ("", "size", "clients", "n", "p50 ms", "p95 ms", "per s", "floor p50", "ratio p50", "ratio per s")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure; `floor` names the rows it is compared with, added up; both ratios are against that sum.

    ratio_p50 above 1 is slower than the floor; ratio_per_s below 1 is slower.
    """

    name: str
    size: int
    clients: int
    n: int
    p50_ms: float
    p95_ms: float
    per_s: float
    floor: str
    ratio_p50: float | None
    ratio_per_s: float | None
    note: str

    @property
    def cells(self) -> list[str]:
        ratios = [("" if each is None else f"{each:.2f}") for each in (self.ratio_p50, self.ratio_per_s)]
        floor = f"{self.p50_ms / self.ratio_p50:.2f}" if self.ratio_p50 else ""
        times = [f"{self.p50_ms:.2f}", f"{self.p95_ms:.2f}", f"{self.per_s:.0f}", floor]
        return [self.name, str(self.size), str(self.clients), str(self.n), *times, *ratios]


def rows_of(samples: Mapping[str, Sample], probes: Sequence[Probe], size: int, clients: int) -> list[Row]:
    """A row for each probe. Floors that are passed through one after another add up, in seconds a call."""
    return [_row(probe, samples, size, clients) for probe in probes]


def _row(probe: Probe, samples: Mapping[str, Sample], size: int, clients: int) -> Row:
    sample = samples[probe.name]
    floors = [samples[name] for name in probe.floors]
    floor_p50 = sum(floor.p50_ms for floor in floors)
    floor_per_s = 1 / sum(1 / floor.per_s for floor in floors) if floors else 0.0
    return Row(
        name=probe.name,
        size=size,
        clients=clients,
        n=len(sample.seconds),
        p50_ms=round(sample.p50_ms, 3),
        p95_ms=round(sample.p95_ms, 3),
        per_s=round(sample.per_s, 1),
        floor="+".join(probe.floors),
        ratio_p50=round(sample.p50_ms / floor_p50, 3) if floors else None,
        ratio_per_s=round(sample.per_s / floor_per_s, 3) if floors else None,
        note=probe.note,
    )


def as_json(rows: Sequence[Row]) -> list[dict[str, object]]:
    return [asdict(row) for row in rows]
