"""The whole product as one process group, the way a person starts it."""

import os
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest

from config.stack.processes import ProcessRecord
from config.stack.runner import is_healthy
from config.stack.state import CHECKOUT, digest_of, state_folder


class Run:
    """`python -m config.stack run` on a free port, with all state in one folder."""

    def __init__(self, folder):
        self.state = folder / "state"
        self.root_key = state_folder(self.state, folder / "forget-me-not" / digest_of(self.state)).root_key_file
        self.environment = {
            "PATH": os.environ["PATH"],
            "FMN_DATA": str(self.state),
            "XDG_CONFIG_HOME": str(folder),
        }
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "config.stack", "run", "--port", str(self.port)],
            cwd=CHECKOUT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout

    def lines_until(self, ending):
        """What it prints up to a line with that ending; it fails if the output ends before."""
        lines = []
        for line in self.output:
            lines.append(line.rstrip("\n"))
            if lines[-1].endswith(ending):
                return lines
        pytest.fail("\n".join(lines))

    def records(self):
        names = ("web", "worker", "system", "beat", "postgres", "valkey-server")
        return {name: ProcessRecord.read(self.state / "run" / f"{name}.json") for name in names}

    def wait_until_healthy(self):
        deadline = time.monotonic() + 20
        while not is_healthy(self.address):
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        rest = self.output.read().splitlines()
        self.output.close()
        return self.process.wait(), rest


@pytest.fixture
def run(folder):
    started = Run(folder)
    started.start()
    yield started
    if not started.output.closed:
        started.stop()


def test_life_of_a_run(run):
    first = run.lines_until("Ctrl-C stops it.")
    assert first[:4] == [
        "Making databases …",
        f"Root key: {run.root_key}: back it up; without it the data cannot be read.",
        "Migrating …",
        f"Forget-me-not is running at {run.address}",
    ]
    assert is_healthy(run.address)
    started = run.records()

    serving = psutil.Process(started["web"].pid).environ()
    assert "DATABASE_URL" in serving
    assert [name for name in serving if "MIGRATE" in name or "ADMIN" in name or "BACKUP" in name] == []

    os.kill(started["web"].pid, signal.SIGKILL)
    run.lines_until("web ended unexpectedly (signal 9); starting it again (1 of 3).")
    run.wait_until_healthy()

    run.process.kill()
    run.process.wait()
    run.output.close()
    left = run.records()
    run.start()
    second = run.lines_until("Ctrl-C stops it.")
    assert f"Ending web (process {left['web'].pid}), left by a run that was killed." in second
    assert is_healthy(run.address)

    own = run.records()
    status, rest = run.stop()

    assert (status, rest) == (0, ["Stopping …", "Stopped."])
    assert [name for name, record in {**own, **left}.items() if record.is_alive()] == []
    assert not is_healthy(run.address)
