"""Rows of evals.json and its tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from benchmarks.evals.cases import Case
from benchmarks.evals.scoring import Lifecycle, Retrieval, Score, lifecycle_scores, retrieval_scores
from benchmarks.results import table

PROVIDER = "local"
ALL = "all"
LIMITS = (5, 10, 20)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure, 0 to 1; `n` is what it is a share or mean of."""

    set: str
    split: str
    lang: str
    kind: str
    provider: str
    metric: str
    value: float
    n: int


def lifecycle_rows(name: str, cases: Sequence[Case], outcomes: Sequence[Lifecycle]) -> list[Row]:
    """Of all cases, of each half, of each language and of each kind."""
    return [
        _row(name, (split, lang, kind), metric, score)
        for (split, lang, kind), chosen in _groups(cases, outcomes).items()
        for metric, score in lifecycle_scores(chosen).items()
    ]


def retrieval_rows(name: str, asked: Sequence[tuple[str, Retrieval]], lang: str = "en") -> list[Row]:
    """Of all questions, and of each category where there are several."""
    categories = sorted({category for category, _ in asked})
    groups = {ALL: [found for _, found in asked]}
    if len(categories) > 1:
        groups |= {each: [found for category, found in asked if category == each] for each in categories}
    return [
        _row(name, (ALL, lang, kind), metric, score)
        for kind, chosen in groups.items()
        for metric, score in retrieval_scores(chosen, LIMITS).items()
    ]


def _groups(cases: Sequence[Case], outcomes: Sequence[Lifecycle]) -> Mapping[tuple[str, str, str], Sequence[Lifecycle]]:
    def chosen(holds: Callable[[Case], bool]) -> list[Lifecycle]:
        return [outcome for case, outcome in zip(cases, outcomes, strict=True) if holds(case)]

    groups = {(ALL, ALL, ALL): list(outcomes)}
    groups |= {(each, ALL, ALL): chosen(lambda case, each=each: case.split == each) for each in ("tune", "test")}  # type: ignore[misc]
    for lang in sorted({case.lang for case in cases}):
        groups[ALL, lang, ALL] = chosen(lambda case, lang=lang: case.lang == lang)  # type: ignore[misc]
    for kind in sorted({case.kind for case in cases}):
        groups[ALL, ALL, kind] = chosen(lambda case, kind=kind: case.kind == kind)  # type: ignore[misc]
    return {group: found for group, found in groups.items() if found}


def _row(name: str, group: tuple[str, str, str], metric: str, score: Score) -> Row:
    split, lang, kind = group
    return Row(name, split, lang, kind, PROVIDER, metric, round(score.value, 4), score.n)


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """For people: one table a set, in per cent."""
    for name in dict.fromkeys(row.set for row in rows):
        chosen = [row for row in rows if row.set == name]
        metrics = list(dict.fromkeys(row.metric for row in chosen))
        groups = list(dict.fromkeys((row.split, row.lang, row.kind) for row in chosen))
        values = {(row.split, row.lang, row.kind, row.metric): row for row in chosen}
        body = []
        for group in groups:
            found = [values.get((*group, metric)) for metric in metrics]
            # Of cases where there are such: must_at_5 is of statements.
            size = next(row.n for row in reversed(found) if row and row.metric != "mrr")
            body.append([_label(group), str(size), *(f"{row.value * 100:.1f}" if row else "–" for row in found)])
        yield f"{name}, per cent\n{table(('', 'n', *metrics), body)}"


def _label(group: tuple[str, str, str]) -> str:
    return next((each for each in reversed(group) if each != ALL), ALL) if group[1:] != ("en", ALL) else ALL


def as_json(rows: Sequence[Row]) -> list[dict[str, object]]:
    return [asdict(row) for row in rows]
