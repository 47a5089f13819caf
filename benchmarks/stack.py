"""A stack of the benchmark's own: the processes `make run` starts, on fresh databases that are removed at the end.

Not the running one: its server has no floor to compare with, and thousands of invented people do not belong into
anybody's data. Start at `own_stack`.
"""

import io
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil

from config.demo.operator import Operator
from config.demo.people import Client
from config.stack.children import Child, end_orphans, product_children, stop_all
from config.stack.environment import serving
from config.stack.errors import StackError
from config.stack.logs import tail
from config.stack.runner import is_healthy, running_services
from config.stack.services import EmbeddedServices
from config.stack.state import StateFolder

FOLDERS = "fmn-bench-"
SETTINGS = "benchmarks.settings"
START_SECONDS = 120.0
PURPOSES = ("memory.store", "memory.personalise", "memory.sensitive", "memory.share")
# Everything is to have its vector, however busy the machine; what waits for it longer shows in the figures.
PATIENCE = {"EMBEDDER_TIMEOUT_SECONDS": "60"}


class Rest(Client):
    """What the story does not need: deleting, and an end."""

    def delete(self, path: str) -> httpx2.Response:
        return self._http.delete(path)

    def close(self) -> None:
        self._http.close()


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant's clients by what their keys may, and the agent's key itself."""

    agent: Rest
    consent: Rest
    admin: Rest
    key: str

    def close(self) -> None:
        for client in (self.agent, self.consent, self.admin):
            client.close()

    def welcome(self, person: str) -> str:
        """Make a person known who allows everything; gives the path of what is theirs."""
        path = f"/v1/subjects/{person}"
        require(self.agent.put(path, {}), 201)
        said = {"event": "given", "purposes": list(PURPOSES), "evidence": "invented for a measurement"}
        require(self.consent.post(f"{path}/consents", said), 201)
        return path


@dataclass(frozen=True, slots=True)
class Served:
    """The running stack: its address, and its environment with the administrator's addresses."""

    port: int
    environment: Mapping[str, str]
    _ending: ExitStack

    def open_tenant(self, name: str) -> Tenant:
        """A new tenant, whose clients are closed when the stack ends."""
        operator = Operator(serving({**os.environ, **self.environment}), self.environment)
        tenant = self.tenant(operator.open_tenant(name))
        self._ending.callback(tenant.close)
        return tenant

    def tenant(self, keys: Mapping[str, str]) -> Tenant:
        address = f"http://127.0.0.1:{self.port}"
        agent, consent, admin = (Rest(address, keys[each]) for each in ("agent", "consent", "admin"))
        return Tenant(agent, consent, admin, keys["agent"])


def require(answer: httpx2.Response, status: int) -> None:
    """StackError with the body, unless the answer has this status."""
    if answer.status_code != status:
        raise StackError(f"{status} was expected: {answer.status_code} {answer.text[:500]}")


@contextmanager
def own_stack() -> Iterator[Served]:
    """The processes of `make run` on fresh databases in a temporary folder; all of it is gone afterwards."""
    _remove_what_killed_runs_left()
    folder = Path(tempfile.mkdtemp(prefix=FOLDERS))
    folder.chmod(0o711)  # the database's user has to pass
    (folder / "owner").write_text(str(os.getpid()))
    services = _services_in(folder)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # asked to end, it still tidies up
    try:
        with ExitStack() as started:
            with redirect_stdout(io.StringIO()):  # its notices are about data that is to be kept
                environment = started.enter_context(running_services(services))
            yield started.enter_context(served_from(services.state, environment))
    finally:
        signal.signal(signal.SIGTERM, before)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def served_from(state: StateFolder, environment: Mapping[str, str]) -> Iterator[Served]:
    """Web, workers and beat on services that run; stopped at the end."""
    port = free_port()
    seen = {**environment, **PATIENCE, "DJANGO_SETTINGS_MODULE": SETTINGS}
    children = product_children(seen, state, port)
    try:
        for child in children:
            child.start()
        _wait_until_healthy(children[0], f"http://127.0.0.1:{port}")
        with ExitStack() as ending:
            yield Served(port, seen, ending)
    finally:
        stop_all(children)


def _wait_until_healthy(web: Child, address: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not is_healthy(address):
        if not web.is_running() or time.monotonic() > deadline:
            raise StackError(f"The server did not start:\n{tail(web.log_file)}")
        time.sleep(0.2)


def _services_in(folder: Path) -> EmbeddedServices:
    return EmbeddedServices(folder / "state", root_key_dir=folder / "key")


def _remove_what_killed_runs_left() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDERS}*"):
        owner = folder / "owner"
        if owner.exists() and not psutil.pid_exists(int(owner.read_text() or 0)):
            services = _services_in(folder)
            end_orphans(services.state)
            services.end_leftovers()
            shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
