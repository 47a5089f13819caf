"""Log files of the stack's processes: private, and rotated when a process starts."""

import os
from pathlib import Path
from typing import IO

KEPT_LOGS = 5
TAIL_LINES = 15


def rotate(path: Path) -> None:
    """Move `x.log` to `x.1.log`, that to `x.2.log`, and so on; the oldest is dropped."""
    for number in range(KEPT_LOGS - 1, 0, -1):
        older = _numbered(path, number)
        if older.exists():
            older.replace(_numbered(path, number + 1))
    if path.exists():
        path.replace(_numbered(path, 1))


def open_log(path: Path) -> IO[bytes]:
    """Open for appending, unbuffered, readable by us only."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab", buffering=0)


def tail(path: Path) -> str:
    if not path.exists():
        return "(empty)"
    return "\n".join(path.read_text(errors="replace").splitlines()[-TAIL_LINES:])


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}.{number}{path.suffix}")
