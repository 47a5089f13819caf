"""The product in the foreground: services, migrations, demo tenant, then web, worker and beat until Ctrl-C.

Whatever happens, it ends all it started and nothing else. Start at `run`.
"""

import http.client
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from config.stack.account import service_account
from config.stack.children import Child, end_orphans, product_children, stop_all
from config.stack.environment import migrating, serving
from config.stack.errors import StackError
from config.stack.instance import only_instance
from config.stack.logs import open_log, rotate, tail
from config.stack.services import EmbeddedServices
from config.stack.state import CHECKOUT, StateFolder

HOST = "127.0.0.1"
HIGHEST_PORT = 65535
READY_SECONDS = 60.0
WATCH_SECONDS = 0.2
ALLOWED_RESTARTS = 3
MIGRATIONS = tuple(["migrate", "--no-input", "--database", database] for database in ("default", "keys"))
ANNOUNCEMENT = "Forget-me-not is running at"
ANNOUNCEMENT_END = "Ctrl-C stops it."


class Watched(Protocol):
    name: str

    @property
    def log_file(self) -> Path: ...
    def start(self) -> object: ...
    def is_running(self) -> bool: ...
    def how_it_ended(self) -> str: ...


@dataclass(slots=True)
class StopRequest:
    """Set by a signal; looked at between steps, so that no step is torn in the middle."""

    asked: bool = False


@dataclass(slots=True)
class Watch:
    """Starts again what ended; StackError when one thing ends more often than allowed."""

    watched: list[Watched]
    restarts: dict[str, int] = field(default_factory=dict)

    def look(self) -> None:
        for each in self.watched:
            if not each.is_running():
                self._restart(each)

    def _restart(self, each: Watched) -> None:
        count = self.restarts[each.name] = self.restarts.get(each.name, 0) + 1
        if count > ALLOWED_RESTARTS:
            raise StackError(f"{each.name} ended {count} times. The end of {each.log_file}:\n{tail(each.log_file)}")
        end = f"{each.name} ended unexpectedly ({each.how_it_ended()})"
        print(f"{end}; starting it again ({count} of {ALLOWED_RESTARTS}).")
        each.start()


def run(services: EmbeddedServices, port: int) -> None:
    """Serve on `port` until SIGINT or SIGTERM; StackError says why it could not."""
    require_port(port)
    address = f"http://{HOST}:{port}"
    state = services.state
    state.prepare(service_account())
    with stop_on_signals() as stop, only_instance(run_lock(state), address):
        end_orphans(state)
        require_free_port(port)
        with running_services(services) as environment:
            if services.has_own_database:
                seed_demo(environment, state)
            children = product_children(environment, state, port)
            try:
                watch = Watch([*services.embedded, *children])
                _start(children, watch, stop, address, state)
                if not stop.asked:
                    _announce(address, state, with_demo=services.has_own_database)
                _watch_until_asked(watch, stop)
            finally:
                stop_all(children)
    print("Stopped.")


def run_services(services: EmbeddedServices) -> None:
    """Only the servers and the migrations, until SIGINT or SIGTERM."""
    state = services.state
    state.prepare(service_account())
    with (
        stop_on_signals() as stop,
        only_instance(services_lock(state), f"services in {state.path}"),
        running_services(services),
    ):
        print(f"Services are running; their state is in {state.path}. Ctrl-C stops them.")
        _watch_until_asked(Watch(list(services.embedded)), stop)
    print("Stopped.")


def run_lock(state: StateFolder) -> Path:
    return state.path / "run.lock"


def services_lock(state: StateFolder) -> Path:
    return state.path / "services.lock"


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    request = StopRequest()

    def ask(_number: int, _frame: object) -> None:
        request.asked = True

    before = {each: signal.signal(each, ask) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def running_services(services: EmbeddedServices) -> Iterator[dict[str, str]]:
    """The services, migrated; stopped at the end as far as this process started them."""
    is_first = services.is_new
    if is_first:
        print("Making databases …")
    try:
        environment = services.start()
        if is_first and services.makes_root_key:
            print(f"Root key: {services.state.root_key_file}: back it up; without it the data cannot be read.")
        if is_first:
            print("Migrating …")
        migrate(environment, services.state)
        yield environment
    finally:
        services.stop()


def require_port(port: int) -> None:
    if not 1 <= port <= HIGHEST_PORT:
        raise StackError(f"Port {port} does not exist; PORT must be between 1 and {HIGHEST_PORT}.")


def require_free_port(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise StackError(f"Port {port} cannot be used ({error.strerror}). Try: make run PORT={port + 1}") from error


def migrate(environment: Mapping[str, str], state: StateFolder) -> None:
    seen = migrating({**os.environ, **environment}) | {"DJANGO_SETTINGS_MODULE": "config.settings.migrate"}
    for arguments in MIGRATIONS:
        _manage(arguments, seen, state)


def seed_demo(environment: Mapping[str, str], state: StateFolder) -> None:
    seen = serving({**os.environ, **environment})
    _manage(["seed_demo", "--keys-file", str(state.demo_keys_file)], seen, state)


def _manage(arguments: list[str], environment: Mapping[str, str], state: StateFolder) -> None:
    """Run a management command to its end; StackError with the end of its output if it fails."""
    log_file = state.logs / f"{'-'.join(part for part in arguments if part.isidentifier())}.log"
    rotate(log_file)
    with open_log(log_file) as output:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=CHECKOUT,
            env=dict(environment),
            start_new_session=True,
            check=False,
        )
    if done.returncode != 0:
        raise StackError(f"`manage.py {' '.join(arguments)}` failed. The end of {log_file}:\n{tail(log_file)}")


def _start(children: list[Child], watch: Watch, stop: StopRequest, address: str, state: StateFolder) -> None:
    for child in children:
        if not stop.asked:
            child.start()
    deadline = time.monotonic() + READY_SECONDS
    while not stop.asked and not is_healthy(address):
        if time.monotonic() > deadline:
            raise StackError(f"{address}/healthz did not answer in {READY_SECONDS:.0f} s; see {state.logs}.")
        watch.look()
        time.sleep(WATCH_SECONDS)


def _watch_until_asked(watch: Watch, stop: StopRequest) -> None:
    while not stop.asked:
        watch.look()
        time.sleep(WATCH_SECONDS)
    print("Stopping …")


def is_healthy(address: str) -> bool:
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _tenant_command() -> str:
    """A line for a shell in the checkout; it finds the running stack where this process keeps its state."""
    chosen = os.environ.get("FMN_DATA")
    folder = f"FMN_DATA={shlex.quote(str(Path(chosen).resolve()))} " if chosen else ""
    return f'eval "$({folder}.venv/bin/python -m config.stack env)"; .venv/bin/python manage.py create_tenant NAME'


def _announce(address: str, state: StateFolder, *, with_demo: bool) -> None:
    print(f"{ANNOUNCEMENT} {address}")
    if not with_demo:
        print("  The database is not ours, so no demo tenant was made. To open one, in another terminal:")
        print(f"    {_tenant_command()}")
    for tenant in json.loads(state.demo_keys_file.read_bytes())["tenants"] if with_demo else ():
        print(f"  Keys of {tenant['organisation']}, {tenant['mode']}:")
        for name, key in tenant["keys"].items():
            print(f"    {name:<8} {key}")
        if "team" in tenant:
            print(f"  Sign in at {address}/console/ with the password {tenant['password']} as one of:")
            print(f"    {' '.join(tenant['team'])}")
    print(f"  Logs: {state.logs}")
    print(ANNOUNCEMENT_END)
