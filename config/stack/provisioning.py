"""Roles, databases and grants on a PostgreSQL cluster; the tables themselves are the migrations' business.

Needs a superuser's address on PostgreSQL 17 or later with pgvector installed. Start at `provision`; repeating
it is harmless and puts back what was changed by hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import psycopg
from psycopg import sql

from config.stack.environment import DATA_DATABASE, KEYS_DATABASE
from config.stack.errors import StackError
from config.stack.reachable import legible_failures

OWNER = "fmn_owner"
MIGRATE = "fmn_migrate"
BACKUP = "fmn_backup"
MINIMUM_SERVER_VERSION = 170000
MINIMUM_VECTOR_VERSION = (0, 8, 6)
PROVISIONING_LOCK = 0x666D6E  # "fmn"

SERVING_SETTINGS = {
    "statement_timeout": "30s",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "60s",
    "transaction_timeout": "60s",
}


@dataclass(frozen=True, slots=True)
class Role:
    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    inherits: bool = True
    bypasses_row_security: bool = False


APP = Role("fmn_app", SERVING_SETTINGS)
AUDIT = Role("fmn_audit", SERVING_SETTINGS)
RELAY = Role("fmn_relay", SERVING_SETTINGS)
SEALER = Role("fmn_sealer")
KEYS = Role("fmn_keys", SERVING_SETTINGS)
MIGRATOR = Role(MIGRATE, inherits=False)
BACKUPS = Role(BACKUP, {"default_transaction_read_only": "on"}, bypasses_row_security=True)

LOGIN_ROLES = (APP, AUDIT, RELAY, SEALER, KEYS, MIGRATOR, BACKUPS)
ROLE_NAMES = tuple(role.name for role in LOGIN_ROLES)


@dataclass(frozen=True, slots=True)
class Database:
    name: str
    roles: tuple[Role, ...]
    extensions: tuple[str, ...] = ()


DATABASES = (
    Database(DATA_DATABASE, (APP, AUDIT, RELAY, SEALER, MIGRATOR, BACKUPS), ("vector",)),
    Database(KEYS_DATABASE, (KEYS, MIGRATOR, BACKUPS)),
)


def provision(admin_url: str, keys_admin_url: str, passwords: Mapping[str, str]) -> None:
    """Make both databases and their roles; `passwords` are by role name (ROLE_NAMES)."""
    names = ("ADMIN_DATABASE_URL", "KEYS_ADMIN_DATABASE_URL")
    for name, database, url in zip(names, DATABASES, (admin_url, keys_admin_url), strict=True):
        with legible_failures(name, url):
            _provision_database(url, database, passwords)


def _provision_database(url: str, database: Database, passwords: Mapping[str, str]) -> None:
    with psycopg.connect(url, autocommit=True) as server:
        _require_version(server)
        server.execute("SELECT pg_advisory_lock(%s)", [PROVISIONING_LOCK])
        _ensure_roles(server, database, passwords)
        _ensure_database(server, database)
        with psycopg.connect(url, dbname=database.name, autocommit=True) as inside:
            _ensure_contents(inside, database)


def _require_version(server: psycopg.Connection) -> None:
    if server.info.server_version < MINIMUM_SERVER_VERSION:
        raise StackError(f"PostgreSQL 17 or later is needed; this server is {server.info.server_version // 10000}.")


def _ensure_roles(server: psycopg.Connection, database: Database, passwords: Mapping[str, str]) -> None:
    _ensure_role_exists(server, OWNER)
    server.execute(
        _compose("ALTER ROLE {} NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS", OWNER)
    )
    for role in database.roles:
        _ensure_role_exists(server, role.name)
        _set_attributes(server, role, passwords[role.name])
        for name, value in role.settings.items():
            server.execute(_compose("ALTER ROLE {} SET {} = {}", role.name, name, sql.Literal(value)))
    server.execute(_compose("GRANT {} TO {} WITH INHERIT FALSE, SET TRUE", OWNER, MIGRATE))
    server.execute(_compose("GRANT pg_read_all_data TO {}", BACKUP))


def _ensure_role_exists(server: psycopg.Connection, name: str) -> None:
    if not _exists(server, "SELECT 1 FROM pg_roles WHERE rolname = %s", name):
        server.execute(_compose("CREATE ROLE {}", name))


def _set_attributes(server: psycopg.Connection, role: Role, password: str) -> None:
    """The password is hashed here, so that it can reach no log of the server."""
    verifier = server.pgconn.encrypt_password(password.encode(), role.name.encode(), b"scram-sha-256")
    server.execute(
        _compose(
            "ALTER ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION {} {} PASSWORD {}",
            role.name,
            sql.SQL("BYPASSRLS" if role.bypasses_row_security else "NOBYPASSRLS"),
            sql.SQL("INHERIT" if role.inherits else "NOINHERIT"),
            sql.Literal(verifier.decode()),
        )
    )


def _ensure_database(server: psycopg.Connection, database: Database) -> None:
    if not _exists(server, "SELECT 1 FROM pg_database WHERE datname = %s", database.name):
        server.execute(_compose("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'", database.name))
    server.execute(_compose("REVOKE ALL ON DATABASE {} FROM PUBLIC", database.name))
    for role in database.roles:
        server.execute(_compose("GRANT CONNECT ON DATABASE {} TO {}", database.name, role.name))


def _ensure_contents(inside: psycopg.Connection, database: Database) -> None:
    for extension in database.extensions:
        inside.execute(_compose("CREATE EXTENSION IF NOT EXISTS {}", extension))
        inside.execute(_compose("ALTER EXTENSION {} UPDATE", extension))
        _require_extension_version(inside, extension)
    inside.execute(_compose("ALTER SCHEMA public OWNER TO {}", OWNER))
    inside.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    for role in database.roles:
        inside.execute(_compose("GRANT USAGE ON SCHEMA public TO {}", role.name))


def _require_extension_version(inside: psycopg.Connection, extension: str) -> None:
    row = inside.execute("SELECT extversion FROM pg_extension WHERE extname = %s", [extension]).fetchone()
    found = str(row[0]) if row else "absent"
    if row is None or tuple(int(part) for part in found.split(".")) < MINIMUM_VECTOR_VERSION:
        raise StackError(f"pgvector 0.8.6 or later is needed; this server has {found}.")


def _exists(server: psycopg.Connection, question: str, name: str) -> bool:
    return server.execute(question, [name]).fetchone() is not None


def _compose(statement: str, *parts: str | sql.Composable) -> sql.Composed:
    """Plain strings are identifiers; anything else is put in as it is."""
    return sql.SQL(statement).format(*(sql.Identifier(part) if isinstance(part, str) else part for part in parts))
