"""The product's own processes: web server, two workers and scheduler.

Each is the head of a process group of its own, so that Ctrl-C reaches the runner alone, which then ends
them in order. Start at `product_children`.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from config.stack.environment import serving
from config.stack.logs import open_log, rotate
from config.stack.processes import ProcessRecord, end, ending
from config.stack.state import CHECKOUT, StateFolder

STOP_PATIENCE_SECONDS = 15.0
# Open pages hold WebSockets; the web server waits for them no longer than this.
GRACE_SECONDS = 5


class Child:
    def __init__(self, name: str, arguments: list[str], environment: Mapping[str, str], state: StateFolder) -> None:
        self.name = name
        self.log_file = state.logs / f"{name}.log"
        self._arguments = arguments
        self._environment = dict(environment)
        self._record_file = record_file(state, name)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        rotate(self.log_file)
        with open_log(self.log_file) as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=CHECKOUT,
                env=self._environment,
                start_new_session=True,
            )
        started = ProcessRecord.of(self._process.pid)
        if started is not None:
            started.write(self._record_file)

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def how_it_ended(self) -> str:
        return ending(self._process)

    def ask_to_stop(self) -> None:
        if self._process is not None and self.is_running():
            self._process.terminate()

    def stop(self) -> None:
        """Wait for its end, and end what is left of its group."""
        if self._process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_PATIENCE_SECONDS)
        _end_group(self._process.pid)
        self._process.wait()
        self._record_file.unlink(missing_ok=True)


CHILD_NAMES = ("web", "worker", "system", "beat")


def product_children(environment: Mapping[str, str], state: StateFolder, port: int) -> list[Child]:
    """The children, not yet started; they see the serving part of `environment` only."""
    seen = serving({**os.environ, **environment}) | {"PYTHONUNBUFFERED": "1"}
    web = [
        "uvicorn",
        "config.asgi:application",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--no-access-log",
    ]
    arguments = {
        "web": [*web, "--timeout-graceful-shutdown", str(GRACE_SECONDS)],
        "worker": [*_worker("work"), "--concurrency", "1"],
        # The short tasks, in one process that never loads the embedding model.
        "system": [*_worker("system"), "--pool", "solo"],
        "beat": ["celery", "-A", "config", "beat", "--schedule", str(state.path / "beat")],
    }
    return [Child(name, arguments[name], seen, state) for name in CHILD_NAMES]


def _worker(queue: str) -> list[str]:
    name = ["--queues", queue, "--hostname", f"{queue}@%h"]
    return ["celery", "-A", "config", "worker", *name, "--loglevel", "info"]


def stop_all(children: list[Child]) -> None:
    for child in children:
        child.ask_to_stop()
    for child in children:
        child.stop()


def end_orphans(state: StateFolder) -> None:
    """End what a runner that was killed has left; call it only while holding the runner's lock."""
    for name in CHILD_NAMES:
        record = ProcessRecord.read(record_file(state, name))
        if record is not None and record.is_alive():
            print(f"Ending {name} (process {record.pid}), left by a run that was killed.")
            end(record, signal.SIGTERM, patience_seconds=STOP_PATIENCE_SECONDS)
            _end_group(record.pid)
        record_file(state, name).unlink(missing_ok=True)


def record_file(state: StateFolder, name: str) -> Path:
    return state.records / f"{name}.json"


def _end_group(leader: int) -> None:
    """A group's number is not reused while it has members, so this reaches the leader's children only."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
