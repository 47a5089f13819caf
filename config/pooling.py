"""Whether a pooled connection still lives, asked of the socket: no round trip to the database for each request."""

import select
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool


def check_when_spoken_to(connection: "psycopg.Connection[Any]") -> None:
    """Raises psycopg's OperationalError for a connection that has died.

    Between statements a server says nothing unless it ends the connection or has a notice, so a silent socket is a live
    one, as far as the machine knows; one with something to read is tried out.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLPRI)
    if poll.poll(0):
        ConnectionPool.check_connection(connection)
