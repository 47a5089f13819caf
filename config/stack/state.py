"""Where a checkout keeps its state: databases, secrets, logs, process records; and, apart, the root key.

Relies on nothing but the file system. Start at `StateFolder`; `default_state` picks a checkout's folder.
"""

import base64
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from config.stack.account import ServiceAccount
from config.stack.belongings import mark, require_ours
from config.stack.errors import StackError

CHECKOUT = Path(__file__).resolve().parents[2]
ROOT_STATE = Path("/var/lib/forget-me-not")
ROOT_KEY_BYTES = 32
# sun_path holds 107 bytes on Linux and 103 on macOS; PostgreSQL's longest name there is this one.
SOCKET_PATH_LIMIT = 103
LONGEST_SOCKET_NAME = "/.s.PGSQL.5432.lock"


@dataclass(frozen=True, slots=True)
class StateFolder:
    path: Path
    root_key_file: Path

    @property
    def postgres(self) -> Path:
        return self.path / "postgres"

    @property
    def valkey(self) -> Path:
        return self.path / "valkey"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def records(self) -> Path:
        return self.path / "run"

    @property
    def mail(self) -> Path:
        """Where mails are put that no server takes."""
        return self.path / "mail"

    @property
    def secrets_file(self) -> Path:
        return self.path / "secrets.json"

    @property
    def demo_keys_file(self) -> Path:
        return self.path / "demo.json"

    @property
    def external_environment_file(self) -> Path:
        return self.path / "external.env"

    @property
    def external_secrets_file(self) -> Path:
        return self.path / "external-secrets.json"

    @property
    def root_fingerprint_file(self) -> Path:
        return self.path / "root.fingerprint"

    @property
    def external_root_fingerprint_file(self) -> Path:
        """A database outside may have been made with another root key than the embedded one."""
        return self.path / "external-root.fingerprint"

    @property
    def sockets(self) -> Path:
        """A folder whose sockets fit into a socket address, the same for every process of this state."""
        inside = self.path / "sockets"
        if len(f"{inside}{LONGEST_SOCKET_NAME}".encode()) <= SOCKET_PATH_LIMIT:
            return inside
        # Not TMPDIR, which differs between shells that must find the same sockets. Its owner is checked.
        return Path("/tmp") / f"fmn-{digest_of(self.path)}"  # noqa: S108

    def prepare(self, account: ServiceAccount) -> None:
        """Make the folders; the servers' own ones belong to the account that runs them.

        StackError if the folder is somebody else's or cannot be made.
        """
        require_ours(self.path)
        try:
            self._claim(0o711 if account.drops_privileges else 0o700)
        except OSError as error:
            raise StackError(f"{self.path} cannot be used as the state folder: {error.strerror}.") from error
        if not account.can_enter(self.path):
            raise StackError(f"The database user cannot enter {self.path}: choose another folder with FMN_DATA.")
        for private in (self.logs, self.records, self.mail):
            private.mkdir(mode=0o700, exist_ok=True)
        for served in (self.postgres, self.valkey, self.sockets):
            account.make_private_folder(served)

    def _claim(self, mode: int) -> None:
        _make_folders(self.path, mode)
        self.path.chmod(mode)
        mark(self.path)


def digest_of(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def state_folder(path: Path, root_key_dir: Path | None = None) -> StateFolder:
    """The state in `path`; its root key is in `root_key_dir`, by default among the person's settings."""
    resolved = path.resolve()
    key_folder = root_key_dir or _configuration_home() / "forget-me-not" / digest_of(resolved)
    return StateFolder(resolved, key_folder.resolve() / "root.key")


def default_state(environ: Mapping[str, str]) -> StateFolder:
    """FMN_DATA if set; else `.data` in the checkout, or for root, whose home is closed, a system folder."""
    if environ.get("FMN_DATA"):
        return state_folder(Path(environ["FMN_DATA"]))
    if os.geteuid() == 0:
        return state_folder(ROOT_STATE / digest_of(CHECKOUT))
    return state_folder(CHECKOUT / ".data")


def write_private(path: Path, content: bytes) -> None:
    """Write a 0600 file that is whole or absent, whatever happens on the way."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    _sync_folder(path.parent)


def ensure_root_key(path: Path, *, lost_if_missing: bool) -> None:
    """Make the root key unless there is one; `lost_if_missing` says that data is sealed under it already."""
    if path.exists():
        return
    if lost_if_missing:
        raise StackError(
            f"The root key {path} is missing, and without it the stored data cannot be opened. "
            "Put it back from your copy, or name it with ROOT_KEY_FILE; no new one is made."
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, base64.b64encode(secrets.token_bytes(ROOT_KEY_BYTES)) + b"\n")


def read_secrets(path: Path) -> dict[str, str]:
    try:
        known = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise StackError(f"{path} is missing: it was never started, or its secrets are lost.") from error
    except (OSError, ValueError) as error:
        raise StackError(f"{path} cannot be read; the database's passwords were in it.") from error
    if not isinstance(known, dict):
        raise StackError(f"{path} is broken: it holds no names with secrets.")
    return known


def ensure_secrets(path: Path, names: tuple[str, ...]) -> dict[str, str]:
    """The secrets kept in `path`, one for each of `names`; those not there yet are drawn and kept."""
    known = read_secrets(path) if path.exists() else {}
    drawn = {name: secrets.token_urlsafe(32) for name in names if name not in known}
    if drawn:
        known |= drawn
        write_private(path, json.dumps(known, indent=1).encode())
    return known


def _make_folders(path: Path, mode: int) -> None:
    """Make `path` and what is missing above it with this mode, whatever the umask; what exists is left."""
    if not path.exists():
        _make_folders(path.parent, mode)
        path.mkdir(exist_ok=True)
        path.chmod(mode)


def _configuration_home() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
