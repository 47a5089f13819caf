"""What the embedded servers have in common: starting once per state folder, attaching, ending.

A server belongs to the process that started it. While that lives, others attach and leave the server alone
when they stop; a server whose owner died is ended and started anew. Start at `EmbeddedServer`.
"""

import signal
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path

import psutil

from config.stack.account import ServiceAccount
from config.stack.errors import StackError
from config.stack.instance import turn
from config.stack.logs import open_log, tail
from config.stack.processes import ProcessRecord, end, ending, this_process
from config.stack.state import StateFolder

# After a kill the old server's remains hold its locks for a moment; and a crash recovery may take its time.
RETRY_SECONDS = 15.0
READY_SECONDS = 120.0
STOP_PATIENCE_SECONDS = 30.0
POLL_SECONDS = 0.02


class EmbeddedServer(ABC):
    name: str
    program: str
    stop_signals: tuple[signal.Signals, ...]

    def __init__(self, state: StateFolder, account: ServiceAccount) -> None:
        self._state = state
        self._account = account
        self._process: subprocess.Popen[bytes] | None = None
        self._started: ProcessRecord | None = None

    @abstractmethod
    def _arguments(self) -> list[str]: ...

    @abstractmethod
    def _is_ready(self, pid: int) -> bool: ...

    @abstractmethod
    def _prepare(self) -> None:
        """Make what must exist, and remove what a killed server left behind."""

    def start(self) -> bool:
        """Start the server, or attach to the running one; True if this call started it."""
        self._collect()
        with turn(self._state.records / f"{self.program}.lock"):
            self.end_leftover()
            if self.is_running():
                return False
            self._start_anew()
            return True

    @property
    def is_owned(self) -> bool:
        """Whether the running server is the one this object started."""
        return self._started is not None and self._running() == self._started

    def end_leftover(self) -> None:
        """End the server if the process that started it is gone."""
        running = self._running()
        if running is not None and not self._owner_lives():
            print(f"Ending {self.name} (process {running.pid}), left by a run that was killed.")
            end(running, *self.stop_signals, patience_seconds=STOP_PATIENCE_SECONDS)

    def stop(self) -> None:
        """End the server if this object started it; calling twice is harmless."""
        if self._started is not None:
            end(self._started, *self.stop_signals, patience_seconds=STOP_PATIENCE_SECONDS)
        self._collect()
        self._started = None

    def kill(self) -> None:
        """End it as a crash would, whoever started it; the next start recovers."""
        running = self._running()
        if running is not None:
            end(running, patience_seconds=STOP_PATIENCE_SECONDS)
        self._collect()

    def is_running(self) -> bool:
        return self._running() is not None

    def how_it_ended(self) -> str:
        return ending(self._process)

    def _start_anew(self) -> None:
        self._prepare()
        deadline = time.monotonic() + RETRY_SECONDS
        while not self._launch():
            if time.monotonic() > deadline:
                raise StackError(f"{self.name} does not start. The end of {self.log_file}:\n{tail(self.log_file)}")
            time.sleep(0.2)
            self._prepare()

    def _launch(self) -> bool:
        """One attempt; False if the server ended before it was ready."""
        with open_log(self.log_file) as output:
            self._process = self._account.spawn(self._arguments(), output=output)
        self._record_start(self._process.pid)
        deadline = time.monotonic() + READY_SECONDS
        while self._process.poll() is None:
            if self._is_ready(self._process.pid):
                return True
            if time.monotonic() > deadline:
                raise StackError(f"{self.name} is not ready after {READY_SECONDS:.0f} s; see {self.log_file}.")
            time.sleep(POLL_SECONDS)
        return False

    def _record_start(self, pid: int) -> None:
        this_process().write(self._owner_file)
        self._started = ProcessRecord.of(pid)
        if self._started is not None:
            self._started.write(self._record_file)

    def _running(self) -> ProcessRecord | None:
        record = ProcessRecord.read(self._record_file)
        process = record.process() if record else None
        return record if process is not None and self._is_our_program(process) else None

    def _is_our_program(self, process: psutil.Process) -> bool:
        return process.name().startswith(self.program)

    def _owner_lives(self) -> bool:
        owner = ProcessRecord.read(self._owner_file)
        return owner is not None and owner.is_alive()

    def _collect(self) -> None:
        """A killed child stays a zombie, and looks alive to others, until its parent asks."""
        if self._process is not None and not self.is_running():
            self._process.wait()
            self._process = None

    @property
    def log_file(self) -> Path:
        return self._state.logs / f"{self.program}.log"

    @property
    def _record_file(self) -> Path:
        return self._state.records / f"{self.program}.json"

    @property
    def _owner_file(self) -> Path:
        return self._state.records / f"{self.program}-owner.json"
