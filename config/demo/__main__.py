"""Find a running stack or start one, tell the story, say how it ended: exit 0 only if every step came out right."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from config.demo.narrator import Narrator
from config.demo.operator import Operator
from config.demo.story import tell
from config.stack.environment import serving
from config.stack.errors import StackError
from config.stack.instance import running_instance
from config.stack.runner import is_healthy, run_lock
from config.stack.services import EmbeddedServices
from config.stack.state import CHECKOUT, default_state

START_SECONDS = 240.0
STOP_SECONDS = 90.0


def main() -> int:
    state = default_state(os.environ)
    services = EmbeddedServices(state.path, root_key_dir=state.root_key_file.parent, given=os.environ)
    narrator = Narrator()
    try:
        with running_stack(services) as address:
            environment = {**os.environ, **services.environment()}
            tell(narrator, address, Operator(serving(environment), environment))
    except StackError as error:
        print(error, file=sys.stderr)
        return 1
    return narrator.conclude()


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
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait_until_healthy(process, address)
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS)


def _wait_until_healthy(process: subprocess.Popen[bytes], address: str) -> None:
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
