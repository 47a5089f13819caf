"""The services the product needs, started for one state folder: PostgreSQL, Valkey, secrets, the root key.

What the caller already has (an external database, broker or root key) is used instead of an embedded one.
Start at `EmbeddedServices`.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from psycopg.conninfo import make_conninfo

from config.stack.account import service_account
from config.stack.binaries import Binaries, find_binaries
from config.stack.environment import (
    DATA_ADDRESSES,
    KEYS_ADDRESSES,
    OPERATOR_ADDRESSES,
    database_url,
    database_urls,
    given_variables,
)
from config.stack.errors import StackError
from config.stack.instance import turn
from config.stack.logs import rotate
from config.stack.postgres import SUPERUSER, EmbeddedPostgres, has_cluster
from config.stack.provisioning import ROLE_NAMES, provision
from config.stack.reachable import require_reachable
from config.stack.rootkey import require_root_key
from config.stack.state import StateFolder, ensure_root_key, ensure_secrets, read_secrets, state_folder
from config.stack.valkey import EmbeddedValkey

SECRET_NAMES = (SUPERUSER, *ROLE_NAMES, "SECRET_KEY")


class EmbeddedServices:
    """Services of the state in `data_dir`; a context manager that stops what it started.

    As root, every folder above `data_dir` must let the user `nobody` pass. `given` are environment variables
    the caller already has; DATABASE_URL, REDIS_URL and ROOT_KEY or ROOT_KEY_FILE among them switch off ours.
    """

    def __init__(
        self, data_dir: Path, *, root_key_dir: Path | None = None, given: Mapping[str, str] | None = None
    ) -> None:
        self.state: StateFolder = state_folder(data_dir, root_key_dir)
        self._given = given_variables(given or {})
        self._account = service_account()

    @cached_property
    def postgres(self) -> EmbeddedPostgres:
        return EmbeddedPostgres(self.state, self._account, self._binaries.postgres, lambda: self._secrets[SUPERUSER])

    @cached_property
    def valkey(self) -> EmbeddedValkey:
        return EmbeddedValkey(self.state, self._account, self._binaries.valkey_server)

    @property
    def has_own_database(self) -> bool:
        return "DATABASE_URL" not in self._given

    @property
    def is_new(self) -> bool:
        """Whether the next start has to make the databases."""
        return self.has_own_database and not has_cluster(self.state)

    @property
    def makes_root_key(self) -> bool:
        return not self._root_key_is_given

    @property
    def embedded(self) -> tuple[EmbeddedPostgres | EmbeddedValkey, ...]:
        """The servers that are ours to run, in the order they start."""
        postgres = (self.postgres,) if self.has_own_database else ()
        valkey = () if "REDIS_URL" in self._given else (self.valkey,)
        return (*postgres, *valkey)

    def start(self) -> dict[str, str]:
        """Start what is not running, attach to what is, and return the whole environment.

        StackError if a server does not start, the root key is lost or external addresses are missing.
        """
        self._require_complete_addresses()
        self.state.prepare(self._account)
        with turn(self.state.path / "start.lock"):
            self._ensure_keys()
            self._require_reachable_database()
            try:
                self._start_servers()
            except BaseException:
                self.stop()
                raise
        return self.environment()

    def stop(self) -> None:
        """Stop the servers this object started, and no others."""
        for server in reversed(self.embedded):
            server.stop()

    def end_leftovers(self) -> None:
        """End servers of this state whose owner was killed."""
        for server in self.embedded:
            server.end_leftover()

    def environment(self) -> dict[str, str]:
        """Every variable of the product, whether or not the servers run."""
        values = {"SECRET_KEY": self._secrets["SECRET_KEY"], "MAIL_FOLDER": str(self.state.mail)}
        if not self._root_key_is_given:
            values["ROOT_KEY_FILE"] = str(self.state.root_key_file)
        if "DATABASE_URL" not in self._given:
            values |= self._embedded_addresses()
        if "REDIS_URL" not in self._given:
            values["REDIS_URL"] = self.valkey.url
        return values | self._given

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start_servers(self) -> None:
        for server in self.embedded:
            if not server.is_running():
                rotate(server.log_file)
            if server.start() and server is self.postgres:
                self._provision()

    def _provision(self) -> None:
        provision(self._admin_url, self._admin_url, self._secrets)

    def _ensure_keys(self) -> None:
        if not self._root_key_is_given:
            used_before = self.state.secrets_file.exists() or has_cluster(self.state)
            ensure_root_key(self.state.root_key_file, lost_if_missing=used_before)
        if has_cluster(self.state) and not self.state.secrets_file.exists():
            raise StackError(f"{self.state.secrets_file} is missing; the database's passwords were in it.")
        ensure_secrets(self.state.secrets_file, SECRET_NAMES)
        own_key = {} if self._root_key_is_given else {"ROOT_KEY_FILE": str(self.state.root_key_file)}
        require_root_key(self._given | own_key, self._fingerprint_file)

    def _require_reachable_database(self) -> None:
        if not self.has_own_database:
            names = [name for name in (*DATA_ADDRESSES, *KEYS_ADDRESSES) if name not in OPERATOR_ADDRESSES]
            require_reachable({name: self._given[name] for name in names})

    def _require_complete_addresses(self) -> None:
        """Half of the roles on an outside server and half of them here would be two different stores."""
        if "DATABASE_URL" not in self._given:
            return
        missing = [name for name in (*DATA_ADDRESSES, *KEYS_ADDRESSES) if name not in self._given]
        if missing:
            raise StackError(f"DATABASE_URL is set, but not {', '.join(missing)}; `make provision` makes them all.")
        if not self._root_key_is_given:
            raise StackError("DATABASE_URL is set, but neither ROOT_KEY nor ROOT_KEY_FILE.")

    def _embedded_addresses(self) -> dict[str, str]:
        admin = {"ADMIN_DATABASE_URL": self._admin_url, "KEYS_ADMIN_DATABASE_URL": self._admin_url}
        return database_urls(self._admin_url, self._admin_url, self._secrets) | admin

    @property
    def _admin_url(self) -> str:
        return database_url(
            make_conninfo(host=str(self.state.sockets)),
            user=SUPERUSER,
            password=self._secrets[SUPERUSER],
            database="postgres",
        )

    @property
    def _fingerprint_file(self) -> Path:
        state = self.state
        return state.root_fingerprint_file if self.has_own_database else state.external_root_fingerprint_file

    @property
    def _root_key_is_given(self) -> bool:
        return not {"ROOT_KEY", "ROOT_KEY_FILE"}.isdisjoint(self._given)

    @property
    def _secrets(self) -> dict[str, str]:
        """Read, never drawn: new ones in the place of lost ones would hide the loss."""
        return read_secrets(self.state.secrets_file)

    @cached_property
    def _binaries(self) -> Binaries:
        return find_binaries(self._account)
