"""Find a running stack or start one, tell the story, say how it ended: exit 0 only if every step came out right."""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from config.demo.narrator import Narrator
from config.demo.operator import Operator
from config.demo.story import tell
from config.stack.ending import exit_status
from config.stack.environment import serving
from config.stack.errors import StackError
from config.stack.instance import running_instance
from config.stack.runner import ANNOUNCEMENT, ANNOUNCEMENT_END, is_healthy, run_lock
from config.stack.services import EmbeddedServices
from config.stack.state import CHECKOUT, default_state

START_SECONDS = 240.0
STOP_SECONDS = 90.0


def main() -> int:
    return exit_status(lambda: _perform(_parser().parse_args()))


def _perform(arguments: argparse.Namespace) -> int:
    state = default_state(os.environ)
    services = EmbeddedServices(state.path, root_key_dir=state.root_key_file.parent, given=os.environ)
    if not services.has_own_database and not arguments.own_database:
        raise StackError(
            "DATABASE_URL names a database of yours, and the demo writes its tenants there; "
            "if that is meant: .venv/bin/python -m config.demo --own-database"
        )
    narrator = Narrator()
    with running_stack(services) as address:
        environment = {**os.environ, **services.environment()}
        tell(narrator, address, Operator(serving(environment), environment))
    return narrator.conclude()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m config.demo", description="The story, told and checked.")
    parser.add_argument("--own-database", action="store_true", help="write the demo's tenants into DATABASE_URL")
    return parser


@contextmanager
def running_stack(services: EmbeddedServices) -> Iterator[str]:
    """The address of this checkout's running stack, or of one started for the story and stopped after it."""
    running = running_instance(run_lock(services.state))
    if running is not None:
        print(f"Using the stack that runs at {running.address}.")
        yield running.address
        return
    address = f"http://127.0.0.1:{_free_port()}"
    print("Starting a stack for the demo …")
    process = subprocess.Popen(
        [sys.executable, "-m", "config.stack", "run", "--port", address.rpartition(":")[2]],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
    )
    notices = threading.Thread(target=pass_on, args=(process.stdout or (),), daemon=True)
    notices.start()
    try:
        _wait_until_healthy(process, address)
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS)
        notices.join(STOP_SECONDS)


def pass_on(lines: Iterable[str]) -> None:
    """Print the stack's notices, without the announcement of an address and keys that nobody will use."""
    is_announcing = False
    for line in lines:
        is_announcing = is_announcing or line.startswith(ANNOUNCEMENT)
        if not is_announcing:
            with contextlib.suppress(BrokenPipeError):  # the story ends for the same reason; the pipe is still read
                print(line, end="", flush=True)
        is_announcing = is_announcing and not line.startswith(ANNOUNCEMENT_END)


def _wait_until_healthy(process: subprocess.Popen[str], address: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not is_healthy(address):
        if process.poll() is not None or time.monotonic() > deadline:
            raise StackError("The stack did not start; `make run` says why.")
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
