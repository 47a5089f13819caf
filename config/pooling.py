"""How a pooled connection is checked when it is taken: one that has died takes all the idle ones with it.

After a restart of the database every idle connection is dead. The pool by itself tries two or three of them and then
answers that there is none, so a process with sixteen would refuse several requests more, each after three seconds.
"""

import select
from typing import Any

import psycopg
from django.db import connections
from psycopg_pool import ConnectionPool


def check_or_drain(alias: str, connection: "psycopg.Connection[Any]") -> None:
    """Raises psycopg's OperationalError for a dead connection; the pool then gives a new one.

    Between statements a server says nothing unless it ends the connection or has a notice, so a silent socket is a live
    one, as far as the machine knows, and costs no round trip; one with something to read is tried out.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLPRI)
    if not poll.poll(0):
        return
    try:
        ConnectionPool.check_connection(connection)
    except psycopg.OperationalError:
        pool = connections[alias].pool  # type: ignore[attr-defined]  # the PostgreSQL back end's
        pool.drain()
        raise
