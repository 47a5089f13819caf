"""Failing connections to PostgreSQL as one line that names the server and never the password.

Relies on libpq's messages, which repeat parts of an address only if it is malformed. Start at `legible_failures`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict

from config.stack.errors import StackError

CONNECT_SECONDS = 10


def require_reachable(addresses: Mapping[str, str]) -> None:
    """Log in once at each address; StackError names the variable and the server of the first that fails."""
    for name, url in addresses.items():
        with legible_failures(name, url), psycopg.connect(url, connect_timeout=CONNECT_SECONDS):
            pass


@contextmanager
def legible_failures(name: str, url: str) -> Iterator[None]:
    """Turn an error of psycopg inside the block into a StackError about `url`, which is called `name`."""
    server = _server(name, url)
    try:
        yield
    except psycopg.Error as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise StackError(f"{name}: PostgreSQL at {server} failed: {reason}") from None


def _server(name: str, url: str) -> str:
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        parts = {"port": "malformed"}
    host, port = (str(parts.get(part) or default) for part, default in (("host", "localhost"), ("port", "5432")))
    # An unescaped password can end up as the port, so nothing of such an address may be shown.
    if not port.replace(",", "").isdigit():
        raise StackError(f"{name} is no PostgreSQL address: postgresql://USER:PASSWORD@HOST:PORT/DATABASE is.")
    return f"{host}, port {port},"
