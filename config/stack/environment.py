"""The environment variables the stack knows: which process gets which, and the databases' addresses.

Start at `database_urls`; `serving` and `migrating` hold what a process of that kind may see.
"""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlencode

from psycopg.conninfo import conninfo_to_dict

from config.stack.errors import StackError

DATA_DATABASE = "forgetmenot"
KEYS_DATABASE = "forgetmenot_keys"

DATA_ADDRESSES = {
    "DATABASE_URL": "fmn_app",
    "DATABASE_MIGRATE_URL": "fmn_migrate",
    "AUDIT_DATABASE_URL": "fmn_audit",
    "RELAY_DATABASE_URL": "fmn_relay",
    "SEALER_DATABASE_URL": "fmn_sealer",
    "BACKUP_DATABASE_URL": "fmn_backup",
}
KEYS_ADDRESSES = {"KEYS_DATABASE_URL": "fmn_keys", "KEYS_DATABASE_MIGRATE_URL": "fmn_migrate"}
MIGRATE_ADDRESSES = ("DATABASE_MIGRATE_URL", "KEYS_DATABASE_MIGRATE_URL")
OPERATOR_ADDRESSES = ("ADMIN_DATABASE_URL", "KEYS_ADMIN_DATABASE_URL", "BACKUP_DATABASE_URL")
ADDRESSES = (*DATA_ADDRESSES, *KEYS_ADDRESSES, *OPERATOR_ADDRESSES, "REDIS_URL")
OTHERS = (
    "ROOT_KEY_PROVIDER",
    "ROOT_KEY",
    "ROOT_KEY_FILE",
    "SECRET_KEY",
    "SECRET_KEY_FILE",
    "ALLOWED_HOSTS",
    "EMBEDDER",
    "MAIL_FOLDER",
)


def given_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The non-empty variables the stack knows; an address in a file (NAME_FILE) is read here."""
    given = {name: environ[name] for name in (*ADDRESSES, *OTHERS) if environ.get(name)}
    files = {name: environ[f"{name}_FILE"] for name in ADDRESSES if environ.get(f"{name}_FILE")}
    return given | {name: _read_address(name, Path(file)) for name, file in files.items()}


def database_url(admin_url: str, *, user: str, password: str, database: str) -> str:
    """The address of `database` for `user` on the server of `admin_url`, with its other options kept."""
    options = {name: str(value) for name, value in conninfo_to_dict(admin_url).items()}
    for replaced in ("user", "password", "dbname"):
        options.pop(replaced, None)
    host = quote(options.pop("host", ""), safe="")
    port = f":{options.pop('port')}" if "port" in options else ""
    query = f"?{urlencode(options)}" if options else ""
    login = f"{quote(user, safe='')}:{quote(password, safe='')}"
    return f"postgresql://{login}@{host}{port}/{quote(database, safe='')}{query}"


def database_urls(admin_url: str, keys_admin_url: str, passwords: Mapping[str, str]) -> dict[str, str]:
    """Every address but the administrators'; `passwords` are by role."""
    data = {
        name: database_url(admin_url, user=role, password=passwords[role], database=DATA_DATABASE)
        for name, role in DATA_ADDRESSES.items()
    }
    keys = {
        name: database_url(keys_admin_url, user=role, password=passwords[role], database=KEYS_DATABASE)
        for name, role in KEYS_ADDRESSES.items()
    }
    return data | keys


def serving(environment: Mapping[str, str]) -> dict[str, str]:
    """What web, worker and beat may see: nothing that changes the schema, administers or reads everything."""
    return _without(environment, (*MIGRATE_ADDRESSES, *OPERATOR_ADDRESSES, "SEALER_DATABASE_URL"))


def migrating(environment: Mapping[str, str]) -> dict[str, str]:
    """What migrations may see; their settings extend the serving ones, so they need those addresses too."""
    return _without(environment, OPERATOR_ADDRESSES)


def _without(environment: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    hidden = {*names, *(f"{name}_FILE" for name in names)}
    return {name: value for name, value in environment.items() if name not in hidden}


def _read_address(name: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise StackError(f"{name}_FILE cannot be read: {error.strerror}.") from error
