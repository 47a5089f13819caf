"""An embedder that answers in time or says that it cannot.

Relies on one daemon thread for each DeadlineEmbedder. A hung model then costs a recall its dense lane and
not its answer. Start at DeadlineEmbedder.
"""

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future

from memory.embedding.contract import Embedder, EmbedderUnavailable
from memory.types import Floats


class DeadlineEmbedder:
    """Runs `inner.encode` on its own thread and waits at most `seconds` for it, queueing included.

    Once a call has missed its deadline the circuit is open: further calls fail at once, until that call
    returns (its result is thrown away). An exception of the inner embedder is the cause of the
    EmbedderUnavailable raised here.
    """

    def __init__(self, inner: Embedder, seconds: float) -> None:
        if seconds <= 0:
            raise ValueError("a deadline is more than 0 seconds")
        self._inner = inner
        self._seconds = seconds
        self._calls: queue.SimpleQueue[tuple[Future[Floats], Sequence[str]]] = queue.SimpleQueue()
        self._overdue: Future[Floats] | None = None
        self._worker: threading.Thread | None = None
        self._starting = threading.Lock()

    @property
    def model_id(self) -> str:
        return self._inner.model_id

    @property
    def model_number(self) -> int:
        return self._inner.model_number

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    @property
    def floor(self) -> float:
        return self._inner.floor

    def encode(self, texts: Sequence[str]) -> Floats:
        if self.circuit_open:
            raise EmbedderUnavailable(f"{self.model_id} is still busy with a call that missed its deadline")
        call: Future[Floats] = Future()
        self._start_worker()
        self._calls.put((call, texts))
        return self._result(call)

    @property
    def circuit_open(self) -> bool:
        return self._overdue is not None and not self._overdue.done()

    def _result(self, call: Future[Floats]) -> Floats:
        try:
            return call.result(timeout=self._seconds)
        except TimeoutError as late:
            if call.done():  # it came at the last moment, or the inner embedder itself raised TimeoutError
                return self._finished(call)
            if not call.cancel():  # running: it holds the thread. Merely queued calls are dropped.
                self._overdue = call
            raise EmbedderUnavailable(f"{self.model_id} took more than {self._seconds} seconds") from late
        except Exception as failure:
            raise EmbedderUnavailable(f"{self.model_id} failed") from failure

    def _finished(self, call: Future[Floats]) -> Floats:
        failure = call.exception()
        if failure is not None:
            raise EmbedderUnavailable(f"{self.model_id} failed") from failure
        return call.result()

    def _start_worker(self) -> None:
        """The thread starts with the first call, so it exists in each process after a fork."""
        with self._starting:
            if self._worker is None or not self._worker.is_alive():
                self._worker = threading.Thread(target=self._work, name="embedder", daemon=True)
                self._worker.start()

    def _work(self) -> None:
        while True:
            call, texts = self._calls.get()
            if call.set_running_or_notify_cancel():
                self._run(call, texts)

    def _run(self, call: Future[Floats], texts: Sequence[str]) -> None:
        try:
            call.set_result(self._inner.encode(texts))
        except BaseException as failure:  # noqa: BLE001 - whatever it was, it belongs to the caller
            call.set_exception(failure)
