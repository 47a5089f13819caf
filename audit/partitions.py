"""The months of the log: a partition holds the UUIDv7 ids of one (UTC), the default one what is left.

The work is done by `audit_create_partitions` in the database (see the migration), which only the tables'
owner may call; so this runs with migration settings, after `migrate` and as `manage.py audit_partitions`,
never in a serving process.
"""

from typing import Any

from django.db import connections

MONTHS_AHEAD = 12

_OWNS_LOG = """
    SELECT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass(%s)
                   AND pg_get_userbyid(relowner) = current_user)
"""


def may_create_partitions(using: str) -> bool:
    """Whether this connection acts as the owner of the log (and the log exists there at all)."""
    connection = connections[using]
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute(_OWNS_LOG, ["public.audit_event"])  # a value: the guard asks who names it in the text
        return bool(cursor.fetchone()[0])


def create_partitions(*, using: str = "default", months_ahead: int = MONTHS_AHEAD) -> list[str]:
    """Make this month's and the next ones, each guarded from birth; their names. Again: none, and no harm."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT audit_create_partitions(%s)", [months_ahead])
        return [name for (name,) in cursor.fetchall()]


def after_migrate(*, using: str, **_: Any) -> None:
    if may_create_partitions(using):
        create_partitions(using=using)
