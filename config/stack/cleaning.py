"""Removing what a checkout has made: environment and state; the root key only on a question of its own."""

import shutil
from collections.abc import Callable
from pathlib import Path

from config.stack.belongings import belongings, require_ours
from config.stack.children import end_orphans
from config.stack.errors import StackError
from config.stack.instance import running_instance
from config.stack.runner import run_lock, services_lock
from config.stack.services import EmbeddedServices
from config.stack.state import StateFolder

Ask = Callable[[str], bool]


def ask_person(question: str) -> bool:
    """Only a typed yes is a yes; no terminal means no."""
    try:
        return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def clean(services: EmbeddedServices, environment: Path, *, ask: Ask, ask_about_root_key: Ask) -> None:
    """Remove state, environment and root key as far as the questions are answered with yes."""
    state = services.state
    require_ours(state.path)
    _require_stopped(state)
    if not ask(f"Remove {state.path} with all stored data, and {environment}?"):
        print("Nothing was removed.")
        return
    if state.path.exists():
        end_orphans(state)
        services.end_leftovers()
        _require_unused(services)
        _remove_state(state.path)
    _remove_folders(state.sockets, environment)
    if state.root_key_file.exists():
        _remove_root_key(state.root_key_file, ask_about_root_key)


def _require_stopped(state: StateFolder) -> None:
    for lock in (run_lock(state), services_lock(state)):
        if running_instance(lock) is not None:
            raise StackError("It is running; stop it first (Ctrl-C, or `python -m config.stack stop`).")


def _require_unused(services: EmbeddedServices) -> None:
    """Servers still running now belong to a live process that is no runner, such as a test or a tool."""
    used = [server.name for server in services.embedded if server.is_running()]
    if used:
        raise StackError(f"{' and '.join(used)} are used by another process; end that first.")


def _remove_state(folder: Path) -> None:
    """Our own entries, and the folder unless somebody else keeps something there."""
    for each in belongings(folder):
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()
    if any(folder.iterdir()):
        print(f"Removed all of ours from {folder}; it stays, since other files are in it.")
    else:
        folder.rmdir()
        print(f"Removed {folder}")


def _remove_folders(*folders: Path) -> None:
    for folder in folders:
        if folder.exists():
            shutil.rmtree(folder)
            print(f"Removed {folder}")


def _remove_root_key(file: Path, ask: Ask) -> None:
    if ask(f"Remove the root key {file} too? Backups of the data cannot be opened without it."):
        file.unlink()
        print(f"Removed {file}")
    else:
        print(f"The root key stays: {file}")
