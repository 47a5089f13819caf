"""The commands: `python -m config.stack run | services | stop | env | provision | clean`."""

import argparse
import os
import shlex
import signal
import sys
import time
from pathlib import Path

import psutil

from config.stack.children import end_orphans
from config.stack.cleaning import ask_person, clean
from config.stack.ending import exit_status
from config.stack.environment import serving
from config.stack.errors import StackError
from config.stack.external import provision_external
from config.stack.instance import Instance, running_instance
from config.stack.runner import run, run_lock, run_services, services_lock
from config.stack.services import EmbeddedServices
from config.stack.state import CHECKOUT, StateFolder, default_state

DEFAULT_PORT = 8000
STOP_SECONDS = 90.0


def main() -> int:
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] # a text stream at the command line
    arguments = _parser().parse_args()
    return exit_status(lambda: _execute(arguments, default_state(os.environ)))


def _execute(arguments: argparse.Namespace, state: StateFolder) -> int:
    services = EmbeddedServices(state.path, root_key_dir=state.root_key_file.parent, given=os.environ)
    match arguments.command:
        case "run":
            run(services, arguments.port)
        case "services":
            run_services(services)
        case "stop":
            _stop(services)
        case "env":
            _print_environment(services, everything=arguments.all)
        case "provision":
            provision_external(os.environ, state)
        case "clean":
            _clean(services, without_asking=arguments.yes)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m config.stack", description="The embedded stack.")
    commands = parser.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", help="serve in the foreground until Ctrl-C")
    run_parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    commands.add_parser("services", help="only database, broker and migrations, in the foreground")
    commands.add_parser("stop", help="stop the running stack of this checkout")
    env_parser = commands.add_parser("env", help="print the running stack's environment for a shell")
    env_parser.add_argument("--all", action="store_true", help="with migrate, admin and backup addresses")
    commands.add_parser("provision", help="make roles and databases on ADMIN_DATABASE_URL")
    clean_parser = commands.add_parser("clean", help="remove the environment and all stored data")
    clean_parser.add_argument("--yes", action="store_true", help="do not ask; the root key stays")
    return parser


def _stop(services: EmbeddedServices) -> None:
    """Ask the runners to stop, then end what killed ones have left."""
    locks = (run_lock(services.state), services_lock(services.state))
    found = [(lock, instance) for lock in locks if (instance := running_instance(lock))]
    for lock, instance in found:
        _stop_instance(lock, instance)
    if services.state.path.exists():
        end_orphans(services.state)
        services.end_leftovers()
    if not found:
        print("Nothing is running.")


def _stop_instance(lock: Path, instance: Instance) -> None:
    os.kill(instance.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while running_instance(lock) is not None:
        if time.monotonic() > deadline:
            raise StackError(f"Process {instance.pid} ({instance.address}) has not stopped.")
        time.sleep(0.1)
    print(f"Stopped {instance.address}.")


def _print_environment(services: EmbeddedServices, *, everything: bool) -> None:
    locks = (run_lock(services.state), services_lock(services.state))
    found = [instance for lock in locks if (instance := running_instance(lock))]
    if not found:
        raise StackError("Nothing is running; start it with `make run`.")
    environment = _as_started(services.state, found[0]).environment()
    for name, value in (environment if everything else serving(environment)).items():
        print(f"export {name}={shlex.quote(value)}")


def _as_started(state: StateFolder, instance: Instance) -> EmbeddedServices:
    """With the addresses that were given to the running stack; this shell may not have them."""
    given = psutil.Process(instance.pid).environ()
    return EmbeddedServices(state.path, root_key_dir=state.root_key_file.parent, given=given)


def _clean(services: EmbeddedServices, *, without_asking: bool) -> None:
    environment = CHECKOUT / ".venv"
    if without_asking:
        clean(services, environment, ask=lambda _question: True, ask_about_root_key=lambda _question: False)
    else:
        clean(services, environment, ask=ask_person, ask_about_root_key=ask_person)


if __name__ == "__main__":
    sys.exit(main())
