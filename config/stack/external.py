"""Roles and databases on a PostgreSQL outside, and the environment that then uses them.

Relies on ADMIN_DATABASE_URL, and KEYS_ADMIN_DATABASE_URL where the keys live on a server of their own.
"""

import shlex
from collections.abc import Mapping

from config.stack.account import service_account
from config.stack.environment import database_urls, given_variables
from config.stack.errors import StackError
from config.stack.provisioning import ROLE_NAMES, provision
from config.stack.rootkey import require_root_key
from config.stack.state import StateFolder, ensure_root_key, ensure_secrets, write_private

SECRET_NAMES = (*ROLE_NAMES, "SECRET_KEY")


def provision_external(environ: Mapping[str, str], state: StateFolder) -> None:
    """Provision the named servers and write the resulting environment to a file only we can read."""
    given = given_variables(environ)
    admin = given.get("ADMIN_DATABASE_URL")
    if admin is None:
        raise StackError("ADMIN_DATABASE_URL must name a superuser's address on the PostgreSQL to provision.")
    keys_admin = given.get("KEYS_ADMIN_DATABASE_URL", admin)
    state.prepare(service_account())
    root_key = _root_key(given, state)
    require_root_key(given | root_key, state.external_root_fingerprint_file)
    known = ensure_secrets(state.external_secrets_file, SECRET_NAMES)
    provision(admin, keys_admin, known)
    secret_key = {"SECRET_KEY": known["SECRET_KEY"]}
    _write_environment(state, database_urls(admin, keys_admin, known) | secret_key | root_key)


def _root_key(given: Mapping[str, str], state: StateFolder) -> dict[str, str]:
    """A root key that the caller already has stays where it is and out of the file."""
    if "ROOT_KEY" in given or "ROOT_KEY_FILE" in given:
        return {}
    ensure_root_key(state.root_key_file, lost_if_missing=state.external_secrets_file.exists())
    return {"ROOT_KEY_FILE": str(state.root_key_file)}


def _write_environment(state: StateFolder, environment: Mapping[str, str]) -> None:
    file = state.external_environment_file
    lines = [f"{name}={shlex.quote(value)}\n" for name, value in environment.items()]
    write_private(file, "".join(lines).encode())
    print(f"Roles and databases are ready; their addresses are in {file}.")
    print(f"Use them with: set -a; . {shlex.quote(str(file))}; set +a; make run")
