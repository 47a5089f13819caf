"""What only an operator can do for the story: open tenants, and dump the databases as a thief would find them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from config.stack.account import service_account
from config.stack.binaries import find_binaries
from config.stack.environment import KEYS_DATABASE, database_url
from config.stack.errors import StackError
from config.stack.state import CHECKOUT


class Operator:
    def __init__(self, serving: Mapping[str, str], everything: Mapping[str, str]) -> None:
        self._serving = dict(serving)
        self._backup_url = everything["BACKUP_DATABASE_URL"]
        self._keys_server = everything["KEYS_DATABASE_URL"]

    def open_tenant(self, name: str) -> dict[str, str]:
        """A fresh organisation with a sandbox tenant; its keys by name."""
        command = [sys.executable, "manage.py", "create_tenant", name]
        keys: dict[str, str] = json.loads(_output(command, self._serving))["keys"]
        return keys

    def dump_everything(self) -> str:
        """`pg_dump` of both databases as text, by the role that makes backups."""
        return "".join(self._dump(url) for url in (self._backup_url, self._keys_backup_url))

    @property
    def _keys_backup_url(self) -> str:
        """The same login on the server of the keys, which may be another one."""
        login = urlsplit(self._backup_url)
        user, password = unquote(login.username or ""), unquote(login.password or "")
        return database_url(self._keys_server, user=user, password=password, database=KEYS_DATABASE)

    def _dump(self, url: str) -> str:
        password = urlsplit(url).password or ""
        command = [str(_pg_dump()), "--no-password", url]
        environment = {"PATH": os.environ.get("PATH", ""), "PGPASSWORD": password}
        return _output(command, environment)


def _output(command: list[str], environment: Mapping[str, str]) -> str:
    """What the program prints; StackError with its last line if it fails, without its arguments."""
    done = subprocess.run(command, cwd=CHECKOUT, env=dict(environment), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise StackError(f"{Path(command[0]).name} failed: {reason}")
    return done.stdout


def _pg_dump() -> Path:
    """The embedded server's own, else the one on PATH."""
    embedded = find_binaries(service_account()).postgres / "pg_dump"
    found = shutil.which("pg_dump")
    return embedded if embedded.exists() or found is None else Path(found)
