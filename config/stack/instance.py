"""Locks that the system releases when their holder ends, however it ends.

`only_instance` keeps a second runner out, `running_instance` tells who runs, `turn` makes starts wait for
each other.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from config.stack.errors import StackError


@dataclass(frozen=True, slots=True)
class Instance:
    pid: int
    address: str


@contextmanager
def only_instance(lock_file: Path, address: str) -> Iterator[None]:
    """Hold the lock; StackError naming the holder's address if another process does."""
    with lock_file.open("a+") as lock:
        if not _try_lock(lock):
            raise StackError(f"Already running: {_described(lock_file)}.")
        lock.truncate(0)
        lock.write(json.dumps(asdict(Instance(os.getpid(), address))))
        lock.flush()
        yield


@contextmanager
def turn(lock_file: Path) -> Iterator[None]:
    """Wait until no other holder is inside, then hold the lock."""
    with lock_file.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def running_instance(lock_file: Path) -> Instance | None:
    """Who holds the lock now; None if nobody does."""
    if not lock_file.exists():
        return None
    with lock_file.open("r") as lock:
        return None if _try_lock(lock) else _read(lock_file)


def _try_lock(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _described(lock_file: Path) -> str:
    holder = _read(lock_file)
    return f"{holder.address} (process {holder.pid})" if holder else "it is just starting"


def _read(lock_file: Path) -> Instance | None:
    try:
        return Instance(**json.loads(lock_file.read_text()))
    except (ValueError, TypeError):  # its holder is about to write it
        return None
