"""What row security must hold, as functions that return leaks: one line for each row reached that should not be.

Said a second time here, not read from the product: which scope may see and change which row. The tests show that there
are no leaks, and their control that the same functions find one in every table once the wall is gone. `Truth` says
which rows there are, as the superuser sees them.
"""

from collections import Counter
from collections.abc import Iterable
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


@dataclass(frozen=True)
class Truth:
    """Of one table: how many rows there are of whom, and one stored row, as JSON, of each."""

    counts: Counter[Row]
    samples: dict[Row, str]


def truth_of(superuser: Connection, table: Guarded, tenants: Iterable[object]) -> Truth:
    """Only of these tenants: the suite leaves many others behind."""
    statement = (
        f"SELECT {table.identity}, count(*), (array_agg(to_jsonb(t)::text))[1] FROM {table.name} t"
        f" WHERE {table.tenant_column} = ANY(%s) GROUP BY 1, 2, 3, 4"
    )
    found = superuser.execute(statement, [list(tenants)]).fetchall()
    return Truth(Counter({Row(*each[:4]): each[4] for each in found}), {Row(*each[:4]): each[5] for each in found})


def visible(connection: Connection, table: Guarded) -> Counter[Row]:
    """What is shown, of all tenants; nothing where the role may not even ask."""
    try:
        with connection.transaction():
            found = connection.execute(f"SELECT {table.identity}, count(*) FROM {table.name} GROUP BY 1, 2, 3, 4")
            return Counter({Row(*each[:4]): each[4] for each in found})
    except errors.InsufficientPrivilege:
        return Counter()


def leaks_of_reading(app: Connection, table: Guarded, scope: Setting) -> list[str]:
    enter(app, scope)
    return [f"{table.name} shows {row}" for row in visible(app, table) if not may_see(table, row, scope)]


def blind_spots(app: Connection, table: Guarded, truth: Truth, scope: Setting) -> list[str]:
    """Rows this scope is entitled to and does not get: a wall that hides everything proves nothing."""
    enter(app, scope)
    entitled = Counter({row: count for row, count in truth.counts.items() if may_see(table, row, scope)})
    return [f"{table.name} hides {row}" for row in entitled - visible(app, table)]


def leaks_of_changing(app: Connection, table: Guarded, truth: Truth, scope: Setting) -> list[str]:
    """UPDATE and DELETE of every row that is not this scope's."""
    enter(app, scope)
    mine = any(may_change(table, row, scope) for row in truth.counts)
    attempts: list[tuple[str, list[object], str]] = []
    if not mine:
        attempts += [(statement, [], "any row") for statement in _changes(table, "true")]
    for row in truth.counts:
        if not may_change(table, row, scope):
            named = f"({table.identity}) IS NOT DISTINCT FROM (%s, %s, %s, %s)"
            whose = (row.tenant, row.subject, row.pseudonym, row.user)
            attempts += [(statement, list(whose), str(row)) for statement in _changes(table, named)]
    return [
        f"{table.name}: {statement[:6]} reaches {who}"
        for statement, values, who in attempts
        if _gets_through(app, statement, values)
    ]


def leaks_of_inserting(app: Connection, table: Guarded, truth: Truth, scope: Setting) -> list[str]:
    """Writing rows that are not this scope's."""
    enter(app, scope)
    columns = _insertable(app, table)
    if not columns:
        return []
    names = ", ".join(f'"{name}"' for name in columns)
    statement = f"INSERT INTO {table.name} ({names}) SELECT {names} FROM jsonb_populate_record(NULL::{table.name}, %s)"
    return [
        f"{table.name}: INSERT takes {row}"
        for row, sample in truth.samples.items()
        if not may_insert(table, row, scope) and _gets_through(app, statement, [sample])
    ]


def _changes(table: Guarded, condition: str) -> tuple[str, str]:
    same = f"{table.tenant_column} = {table.tenant_column}"
    return (f"UPDATE {table.name} SET {same} WHERE {condition}", f"DELETE FROM {table.name} WHERE {condition}")


def _gets_through(app: Connection, statement: str, values: list[object]) -> bool:
    """Whether a statement reaches a row: it changes one, or something behind the wall (a trigger, a key) stops it."""
    try:
        with app.transaction(force_rollback=True):
            return app.execute(statement, values).rowcount > 0
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
