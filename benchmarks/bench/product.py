"""What the product is timed at: recall, remember and knowledge search, each checked for the right number of results."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from benchmarks.bench.invented import questions, sentences
from benchmarks.bench.load import Call, Probe, WrongAnswer
from benchmarks.rest import Answer, Line
from benchmarks.stack import Served, Tenant

LIMIT = 5
SAME = "the same question each time; no encoding in the floor, since its vector can be kept"
NEW = "a new question each time, so its encoding is in the figure and in the floor"
HTTP, VECTOR, ENCODING = "floor_http", "floor_vector", "floor_encoding"


class Fresh:
    """Questions or sentences that nobody was given before, from any thread."""

    def __init__(self, source: Iterator[str]) -> None:
        self._source, self._turn = source, threading.Lock()

    def __call__(self) -> str:
        with self._turn:
            return next(self._source)


# Of the whole run: what one probe has asked is no new question for the next, a server may have kept its vector.
new_question = Fresh(questions(seed=2))


def recalls(served: Served, tenant: Tenant, path: str) -> list[Probe]:
    """Recall of one person: a question whose vector can be kept, and questions that have to be encoded."""
    return _both("recall", served, tenant, f"{path}/recall", check_recall)


def searches(served: Served, tenant: Tenant) -> list[Probe]:
    return _both("knowledge_search", served, tenant, "/v1/knowledge/search", _check_search)


def _both(name: str, served: Served, tenant: Tenant, address: str, check: Callable[[Any], None]) -> list[Probe]:
    same = new_question()
    return [
        Probe(name, _asking(served, tenant, address, lambda: same), check, (HTTP, VECTOR), SAME),
        Probe(
            f"{name}_encoding",
            _asking(served, tenant, address, new_question),
            check,
            (HTTP, VECTOR, ENCODING),
            NEW,
        ),
    ]


def remembering(served: Served, tenant: Tenant, path: str, seed: int) -> Probe:
    text = Fresh(iter(sentences(50_000, seed)))

    @contextmanager
    def client() -> Iterator[Call]:
        with Line(served.port, tenant.key) as line:
            yield lambda: line.post(f"{path}/memories", {"text": text()})

    note = "a new sentence each time, encoded; the person grows meanwhile"
    return Probe("remember", client, _check_stored, (HTTP, ENCODING), note)


def _asking(
    served: Served, tenant: Tenant, address: str, question: Callable[[], str]
) -> Callable[[], AbstractContextManager[Call]]:
    @contextmanager
    def client() -> Iterator[Call]:
        with Line(served.port, tenant.key) as line:
            yield lambda: line.post(address, {"query": question(), "limit": LIMIT})

    return client


def check_recall(answer: Answer) -> None:
    body = _body(answer, 200)
    _require_count("recall", len(body["memories"]), body["degraded"])


def _check_search(answer: Answer) -> None:
    body = _body(answer, 200)
    _require_count("knowledge search", len(body["knowledge"]), body["degraded"])


def _check_stored(answer: Answer) -> None:
    body = _body(answer, 201)
    if len(body["memories"]) != 1 or body["memories"][0]["vector"] != "stored":
        raise WrongAnswer(f"remember stored {body['memories']}")


def _require_count(what: str, found: int, degraded: list[str]) -> None:
    if found != LIMIT or degraded:
        raise WrongAnswer(f"{what} gave {found} results instead of {LIMIT} (degraded: {degraded})")


def _body(answer: Answer, status: int) -> Any:
    if answer.status != status:
        raise WrongAnswer(f"{status} was expected: {answer.status} {answer.content[:300]!r}")
    return answer.json()
