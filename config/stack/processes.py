"""Which processes are ours: id and start time are recorded, so that a reused id is never taken for ours.

Relies on psutil. Start at `ProcessRecord`.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from config.stack.state import write_private

# psutil derives start times from the boot time, which clock changes can shift by a little.
START_TIME_TOLERANCE_SECONDS = 2.0
POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One process; `started` is its start in seconds since 1970."""

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """None when no such process lives."""
        try:
            return cls(pid, psutil.Process(pid).create_time())
        except psutil.NoSuchProcess:
            return None

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """None when there is no record, or only half of one."""
        try:
            return cls(**json.loads(path.read_bytes()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def write(self, path: Path) -> None:
        write_private(path, json.dumps({"pid": self.pid, "started": self.started}).encode())

    def process(self) -> psutil.Process | None:
        """The recorded process if it still lives; a dead one that nobody has collected does not."""
        try:
            found = psutil.Process(self.pid)
            same = abs(found.create_time() - self.started) < START_TIME_TOLERANCE_SECONDS
            return found if same and found.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None

    def is_alive(self) -> bool:
        return self.process() is not None


def this_process() -> ProcessRecord:
    return ProcessRecord(os.getpid(), psutil.Process().create_time())


def end(record: ProcessRecord, *signals: signal.Signals, patience_seconds: float) -> None:
    """Send the signals in turn, and SIGKILL last, each with the same patience, until it has ended."""
    for each in (*signals, signal.SIGKILL):
        process = record.process()
        if process is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(each)
        if _ended_within(record, patience_seconds):
            return


def _ended_within(record: ProcessRecord, seconds: float) -> bool:
    """Not psutil's wait: that also waits for somebody to collect the dead process."""
    deadline = time.monotonic() + seconds
    while record.is_alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def ending(process: subprocess.Popen[bytes] | None) -> str:
    """How a child ended, for a person; another process's child does not tell us."""
    status = process.poll() if process is not None else None
    if status is None:
        return "how is not known"
    return f"signal {-status}" if status < 0 else f"exit code {status}"
