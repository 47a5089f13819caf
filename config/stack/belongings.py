"""Which entries of a state folder are ours, so that nobody else's files are taken over or removed.

Start at `require_ours`; `belongings` is what may be removed.
"""

from fnmatch import fnmatchcase
from pathlib import Path

from config.stack.errors import StackError

MARKER = ".forget-me-not"
# The last ones are drafts of private files, and the scheduler's file with the endings its library gives it.
OWN_NAMES = (
    MARKER,
    *("postgres", "valkey", "logs", "run", "mail", "sockets", "beat"),
    *("secrets.json", "demo.json", "external.env", "external-secrets.json"),
    *("root.fingerprint", "external-root.fingerprint"),
    *("run.lock", "services.lock", "start.lock"),
    *(".*.json.*", ".external.env.*", ".*root.fingerprint.*", "beat.*", "beat-*"),
)


def require_ours(folder: Path) -> None:
    """StackError if `folder` is no folder, or has no marker and holds something that is not ours."""
    if not folder.exists():
        return
    try:
        foreign = strangers(folder)
    except OSError as error:
        raise StackError(f"{folder} cannot be used as the state folder: {error.strerror}.") from error
    if foreign and not (folder / MARKER).exists():
        raise StackError(
            f"{folder} is not ours: it holds {foreign[0].name}. Name an empty or a new folder with FMN_DATA."
        )


def mark(folder: Path) -> None:
    (folder / MARKER).touch(mode=0o600)


def belongings(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if _is_own(each.name))


def strangers(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not _is_own(each.name))


def _is_own(name: str) -> bool:
    return any(fnmatchcase(name, own) for own in OWN_NAMES)
