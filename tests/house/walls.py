"""What row security must hold, as functions that return leaks: one line for each row that was reached and should not be.

Said a second time here, not read from the product: which scope may see and change which row. The tests show that there
are no leaks, and their control that the same functions find one in every table once the wall is gone.
"""

from collections import Counter
from dataclasses import dataclass, fields

from psycopg import Connection, Error, errors, sql
from psycopg.rows import tuple_row

# What a table's columns alone do not tell. Everything else is "person" with a subject_id and "tenant" without.
RULES = {
    "accounts_wrappedkey": "tenant",
    "accounts_membership": "membership",
    "consent_consentevent": "ledger",
    "audit_event": "log",
}


@dataclass(frozen=True)
class Setting:
    """The scope settings of a transaction; '' is what a setting reads once it was ever set and is not any more."""

    tenant_id: str = ""
    subject_id: str = ""
    user_id: str = ""
    subject_pseudonym: str = ""


@dataclass(frozen=True)
class Row:
    """Whose a row is: the only things about it that any wall looks at."""

    tenant: str
    subject: str | None
    pseudonym: str | None
    user: str | None


@dataclass(frozen=True)
class Guarded:
    """A table under row security; a partition of the log is one too, though nobody but its owner may name it."""

    name: str
    columns: frozenset[str]
    partition_of: str | None

    @property
    def tenant_column(self):
        return "tenant_id" if "tenant_id" in self.columns else "id"

    @property
    def rule(self):
        return RULES.get(self.partition_of or self.name, "person" if "subject_id" in self.columns else "tenant")

    @property
    def identity(self):
        """SQL of the four values of a Row."""
        people = [name if name in self.columns else "NULL" for name in ("subject_id", "subject_pseudonym", "user_id")]
        return ", ".join(f"{value}::text" for value in (self.tenant_column, *people))


def guarded_tables(superuser: Connection) -> list[Guarded]:
    """Every table of this database under forced row security, by walking the catalogue."""
    rows = superuser.execute(
        "SELECT c.relname, (SELECT array_agg(attname::text) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0),"
        " (SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = c.oid)"
        " FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')"
        " AND c.relrowsecurity AND c.relforcerowsecurity ORDER BY c.relname"
    )
    return [Guarded(name, frozenset(columns), parent) for name, columns, parent in rows]


def enter(connection: Connection, setting: Setting) -> None:
    for each in fields(setting):
        value = getattr(setting, each.name)
        connection.execute("SELECT set_config(%s, %s, true)", [f"app.{each.name}", value])


# --- who may what -----------------------------------------------------------------------------------------------------


def may_see(table: Guarded, row: Row, scope: Setting) -> bool:
    if table.rule == "membership" and scope.user_id and row.user == scope.user_id:
        return True
    return may_change(table, row, scope)


def may_change(table: Guarded, row: Row, scope: Setting) -> bool:
    if row.tenant != scope.tenant_id:
        return False
    if table.rule in ("tenant", "membership") or scope.subject_id == "*":
        return True
    if table.rule == "person":
        return row.subject == (scope.subject_id or None)
    if table.rule == "log" and not scope.subject_id:
        return True
    return bool(scope.subject_id) and bool(scope.subject_pseudonym) and row.pseudonym == scope.subject_pseudonym


def may_insert(table: Guarded, row: Row, scope: Setting) -> bool:
    """The log takes any event of the tenant: a key that acts in one person's scope may have to name another."""
    return row.tenant == scope.tenant_id if table.rule == "log" else may_change(table, row, scope)


# --- the checks -------------------------------------------------------------------------------------------------------


def rows_of(superuser: Connection, table: Guarded) -> Counter[Row]:
    """The truth: how many rows there are of whom."""
    found = superuser.execute(f"SELECT {table.identity}, count(*) FROM {table.name} GROUP BY 1, 2, 3, 4")
    return Counter({Row(*row[:4]): row[4] for row in found})


def leaks_of_reading(app: Connection, table: Guarded, scope: Setting) -> list[str]:
    enter(app, scope)
    return [f"{table.name} shows {row}" for row in _visible(app, table) if not may_see(table, row, scope)]


def blind_spots(app: Connection, table: Guarded, truth: Counter[Row], scope: Setting) -> list[str]:
    """Rows this scope is entitled to and does not get: a wall that hides everything proves nothing."""
    enter(app, scope)
    entitled = Counter({row: count for row, count in truth.items() if may_see(table, row, scope)})
    return [f"{table.name} hides {row}" for row in entitled - _visible(app, table)]


def leaks_of_changing(app: Connection, table: Guarded, truth: Counter[Row], scope: Setting) -> list[str]:
    """UPDATE and DELETE of every row that is not this scope's."""
    enter(app, scope)
    mine = any(may_change(table, row, scope) for row in truth)
    attempts = [] if mine else [(statement, [], "any row") for statement in _changes(table, "true")]
    for row in truth:
        if not may_change(table, row, scope):
            named = f"({table.identity}) IS NOT DISTINCT FROM (%s, %s, %s, %s)"
            whose = [row.tenant, row.subject, row.pseudonym, row.user]
            attempts += [(statement, whose, str(row)) for statement in _changes(table, named)]
    return [
        f"{table.name}: {statement[:6]} reaches {who}"
        for statement, values, who in attempts
        if _gets_through(app, statement, values)
    ]


def leaks_of_inserting(app: Connection, table: Guarded, samples: dict[Row, str], scope: Setting) -> list[str]:
    """Writing rows that are not this scope's; `samples` holds one stored row, as JSON, for each Row."""
    enter(app, scope)
    columns = _insertable(app, table)
    if not columns:
        return []
    names = ", ".join(f'"{name}"' for name in columns)
    statement = f"INSERT INTO {table.name} ({names}) SELECT {names} FROM jsonb_populate_record(NULL::{table.name}, %s)"
    return [
        f"{table.name}: INSERT takes {row}"
        for row, sample in samples.items()
        if not may_insert(table, row, scope) and _gets_through(app, statement, [sample])
    ]


def samples_of(superuser: Connection, table: Guarded) -> dict[Row, str]:
    found = superuser.execute(
        f"SELECT DISTINCT ON (1, 2, 3, 4) {table.identity}, to_jsonb(t)::text FROM {table.name} t ORDER BY 1, 2, 3, 4"
    )
    return {Row(*row[:4]): row[4] for row in found}


def _visible(app: Connection, table: Guarded) -> Counter[Row]:
    try:
        with app.transaction():
            return rows_of(app, table)
    except errors.InsufficientPrivilege:
        return Counter()


def _changes(table: Guarded, condition: str) -> tuple[str, str]:
    same = f"{table.tenant_column} = {table.tenant_column}"
    return (f"UPDATE {table.name} SET {same} WHERE {condition}", f"DELETE FROM {table.name} WHERE {condition}")


class _Undo(Exception):
    """Nothing that got through is kept."""


def _gets_through(app: Connection, statement: str, values: list[object]) -> bool:
    """Whether a statement reaches a row: it changes one, or something behind the wall (a trigger, a key) stops it."""
    reached = False
    try:
        with app.transaction():
            reached = app.execute(statement, values).rowcount > 0
            raise _Undo
    except _Undo:
        return reached
    except errors.InsufficientPrivilege as refused:
        message = refused.diag.message_primary or ""
        return not message.startswith(("permission denied", "new row violates row-level security policy"))
    except Error:
        return True


def _insertable(app: Connection, table: Guarded) -> list[str]:
    cursor = app.cursor(row_factory=tuple_row)
    cursor.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
        " AND has_column_privilege(attrelid, attnum, 'INSERT') ORDER BY attnum",
        [f"public.{table.name}"],
    )
    return [name for (name,) in cursor]


# --- for the control --------------------------------------------------------------------------------------------------


def become(superuser: Connection, role: str) -> None:
    superuser.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
