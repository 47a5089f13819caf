"""System checks: the database's walls, as `manage.py check --database default` sees them."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Critical, Tags, register
from django.db import connections
from django.db.models.signals import post_migrate

from accounts.safety import grant_global_tables, unsafe_reasons


def check_walls(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """For connections that serve; the one that migrates acts as the owner on purpose."""
    serving = [
        alias for alias in ("default", "keys") if "assume_role" not in connections[alias].settings_dict["OPTIONS"]
    ]
    asked = [alias for alias in databases or () if alias in serving]
    return [Critical(reason, id="accounts.E001") for alias in asked for reason in unsafe_reasons(alias)]


def register_all() -> None:
    register(check_walls, Tags.database)
    post_migrate.connect(grant_global_tables, dispatch_uid="accounts.safety.grants")
