"""Which operating system user the embedded servers run as, and starting programs as that user.

PostgreSQL refuses to run as root, so root hands its servers to `nobody`; anybody else runs them as
themselves. Start at `service_account`.
"""

import os
import pwd
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from config.stack.errors import StackError

UNPRIVILEGED_USER = "nobody"
# Nothing of the caller's environment may reach a server: neither secrets nor PG* or LC_* settings.
SERVER_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    uid: int
    gid: int
    drops_privileges: bool

    def spawn(self, arguments: Sequence[str], *, output: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a server that outlives signals sent to our terminal; both its streams go to `output`."""
        return subprocess.Popen(
            list(arguments),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=SERVER_ENVIRONMENT,
            start_new_session=True,
            user=self._user,
            group=self._group,
            extra_groups=self._extra_groups,
        )

    def run(self, arguments: Sequence[str]) -> None:
        """Run a program to its end; a failure becomes a StackError with what it printed."""
        done = subprocess.run(
            list(arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=SERVER_ENVIRONMENT,
            start_new_session=True,
            check=False,
            user=self._user,
            group=self._group,
            extra_groups=self._extra_groups,
        )
        if done.returncode != 0:
            printed = done.stdout.decode(errors="replace").strip()
            raise StackError(f"{Path(arguments[0]).name} failed: {printed}")

    def make_private_folder(self, path: Path) -> None:
        """Make `path` a 0700 folder of this account; refuse one that somebody else put there."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {self.uid, os.geteuid()}:
            raise StackError(f"{path} belongs to somebody else; remove it and start again.")
        path.chmod(0o700)
        self.give(path)

    def give(self, path: Path) -> None:
        if self.drops_privileges:
            os.chown(path, self.uid, self.gid)

    def can_enter(self, folder: Path) -> bool:
        """Whether this account may pass through `folder` and all folders above it."""
        return all(self._may_search(each.stat()) for each in (folder, *folder.parents))

    def _may_search(self, found: os.stat_result) -> bool:
        if not self.drops_privileges or found.st_uid == self.uid:
            return True
        return bool(found.st_mode & (stat.S_IXGRP if found.st_gid == self.gid else stat.S_IXOTH))

    @property
    def _user(self) -> int | None:
        return self.uid if self.drops_privileges else None

    @property
    def _group(self) -> int | None:
        return self.gid if self.drops_privileges else None

    @property
    def _extra_groups(self) -> list[int] | None:
        return [] if self.drops_privileges else None


def service_account() -> ServiceAccount:
    if os.geteuid() != 0:
        return ServiceAccount(os.geteuid(), os.getegid(), drops_privileges=False)
    entry = pwd.getpwnam(UNPRIVILEGED_USER)
    return ServiceAccount(entry.pw_uid, entry.pw_gid, drops_privileges=True)
