"""What must be true of the database before anything is served, and the closed list of tables that are nobody's.

`unsafe_reasons` is asked at start-up (the process exits with them) and by the system check; the grants of the global
tables are given after each migration. A table that is neither global nor under forced row security is a reason.
"""

import sys
from typing import Any

from django.db import Error, connections

_ALL = "SELECT, INSERT, UPDATE, DELETE"

# Tables without a tenant, and what the application's role may do there. Growing this list is a decision of its own.
GLOBAL_TABLES = {
    "django_migrations": "SELECT",
    "django_content_type": "SELECT",
    "django_session": _ALL,
    "accounts_user": _ALL,
    # Sign-in: addresses of users, and confirmations of them (unused, but their app brings the table).
    "account_emailaddress": _ALL,
    "account_emailconfirmation": "",
    "accounts_organisation": "SELECT, INSERT, UPDATE",
    "accounts_directory": "SELECT, INSERT",
    # Django's own permissions are not used, but its app brings the tables.
    "auth_permission": "",
    "auth_group": "",
    "auth_group_permissions": "",
    "audit_epoch": "SELECT",
}

_ROLE_IS_UNSAFE = """
    SELECT rolname, rolsuper, rolbypassrls,
           EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                   WHERE n.nspname = 'public' AND pg_has_role(current_user, c.relowner, 'MEMBER'))
    FROM pg_roles WHERE rolname = current_user
"""
_TABLES_WITHOUT_FORCED_SECURITY = """
    SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p', 'm', 'f')
      AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY c.relname
"""
_VIEWS_OF_THEIR_OWNER = """
    SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND c.relkind = 'v'
      AND NOT coalesce(c.reloptions && ARRAY['security_invoker=true', 'security_invoker=on'], false) ORDER BY c.relname
"""


def unsafe_reasons(alias: str = "default") -> list[str]:
    """Why this database must not be served from, in sentences; empty when it may."""
    with connections[alias].cursor() as cursor:
        cursor.execute(_ROLE_IS_UNSAFE)
        role, superuser, bypasses, owns = cursor.fetchone()
        cursor.execute(_TABLES_WITHOUT_FORCED_SECURITY)
        open_tables = [name for (name,) in cursor.fetchall() if name not in GLOBAL_TABLES]
        cursor.execute(_VIEWS_OF_THEIR_OWNER)
        views = [name for (name,) in cursor.fetchall()]
    faults = {
        f"The role {role} is a superuser: row security does not bind it.": superuser,
        f"The role {role} has BYPASSRLS.": bypasses,
        f"The role {role} owns tables, or may act as their owner.": owns,
    }
    return (
        [reason for reason, present in faults.items() if present]
        + [
            f"The table {name} has no forced row security and is not on the list of global tables."
            for name in open_tables
        ]
        + [f"The view {name} runs with its owner's rights; it needs security_invoker." for name in views]
    )


def refuse_to_start_unsafe() -> None:
    """Exit with the reasons when the database is not safe to serve from, or cannot be asked."""
    try:
        reasons = [f"{alias}: {reason}" for alias in ("default", "keys") for reason in unsafe_reasons(alias)]
    except Error as error:
        reasons = [f"The database cannot be reached, so its walls cannot be checked: {type(error).__name__}."]
    if reasons:
        sys.exit("Refusing to start.\n" + "\n".join(f"- {reason}" for reason in reasons))


def grant_global_tables(*, using: str, **_: Any) -> None:
    """After a migration by the owner: give the application's role what GLOBAL_TABLES says, and nothing more."""
    connection = connections[using]
    if connection.settings_dict["OPTIONS"].get("assume_role") is None or using != "default":
        return
    existing = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        for table, privileges in GLOBAL_TABLES.items():
            if table in existing:
                name = connection.ops.quote_name(table)
                cursor.execute(f"REVOKE ALL ON {name} FROM fmn_app")
                if privileges:
                    cursor.execute(f"GRANT {privileges} ON {name} TO fmn_app")
