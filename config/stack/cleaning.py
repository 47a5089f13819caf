"""Removing what a checkout has made: environment and state; the root key only on a question of its own."""

import shutil
from collections.abc import Callable
from pathlib import Path

from config.stack.children import end_orphans
from config.stack.errors import StackError
from config.stack.instance import running_instance
from config.stack.runner import run_lock, services_lock
from config.stack.services import EmbeddedServices
from config.stack.state import CHECKOUT

Ask = Callable[[str], bool]


def ask_person(question: str) -> bool:
    """Only a typed yes is a yes; no terminal means no."""
    try:
        return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def clean(services: EmbeddedServices, *, ask: Ask, ask_about_root_key: Ask) -> None:
    """Remove state, environment and root key as far as the questions are answered with yes."""
    state = services.state
    for lock in (run_lock(state), services_lock(state)):
        if running_instance(lock) is not None:
            raise StackError("It is running; stop it first (Ctrl-C, or `python -m config.stack stop`).")
    environment = CHECKOUT / ".venv"
    if not ask(f"Remove {state.path} with all stored data, and {environment}?"):
        print("Nothing was removed.")
        return
    if state.path.exists():
        end_orphans(state)
        services.end_leftovers()
    _remove_folders(state.path, state.sockets, environment)
    if state.root_key_file.exists() and ask_about_root_key(f"Remove the root key {state.root_key_file} too?"):
        _remove_root_key(state.root_key_file)


def _remove_folders(*folders: Path) -> None:
    for folder in folders:
        if folder.exists():
            shutil.rmtree(folder)
            print(f"Removed {folder}")


def _remove_root_key(file: Path) -> None:
    file.unlink()
    print(f"Removed {file}")
