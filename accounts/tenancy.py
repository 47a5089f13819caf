"""The scope: which tenant, and which person of it, a transaction may see. Start at `scope`.

Three walls. The database's row security reads the transaction-local settings made here and fails to nothing; the
managers add the same ids as literals, so that the planner knows them; the guard raises when SQL names a tenant's table
outside a scope. Sync only: a scope is never held across an await.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, ClassVar, Final, Self
from uuid import UUID

from django.apps import apps
from django.db import connection, models, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from uuid_utils.compat import uuid7

from accounts.constraints import RowSecurity


class Reach(Enum):
    """Whose rows a scope reaches when it is not one person's."""

    NONE = ""
    ALL = "*"


NONE: Final = Reach.NONE
ALL: Final = Reach.ALL


class ScopeMissing(Exception):
    """A tenant's table was named outside a scope."""


class ScopeConflict(Exception):
    """A scope was entered inside another that does not allow it: only NONE → one person is a step inward."""


@dataclass(frozen=True, slots=True)
class Scope:
    tenant_id: UUID
    subject: UUID | Reach
    user_id: UUID | None = None

    @property
    def subject_setting(self) -> str:
        return self.subject.value if isinstance(self.subject, Reach) else str(self.subject)


# No tenant has it: ids are UUIDv7.
_NO_TENANT = UUID(int=0)

_current: ContextVar[Scope | None] = ContextVar("accounts.tenancy.scope", default=None)


def current_scope() -> Scope:
    found = _current.get()
    if found is None:
        raise ScopeMissing("No scope: enter accounts.tenancy.scope(tenant_id, …) first.")
    return found


@contextmanager
def scope(tenant_id: UUID, subject: UUID | Reach = NONE, *, user_id: UUID | None = None) -> Iterator[Scope]:
    """Open the transaction and set whose rows it sees, for that transaction only.

    Raises ScopeConflict inside another scope and inside a transaction that nobody scoped: on the release of a savepoint
    the inner settings would stay in force for the outer block.
    """
    if _current.get() is not None or connection.in_atomic_block:
        raise ScopeConflict("A scope opens its own transaction; use narrow() to step from the tenant to one person.")
    entered = Scope(tenant_id, subject, user_id)
    with transaction.atomic():
        _set_local(tenant_id=str(tenant_id), subject_id=entered.subject_setting, user_id=str(user_id or ""))
        token = _current.set(entered)
        try:
            yield entered
        finally:
            _current.reset(token)


@contextmanager
def user_scope(user_id: UUID) -> Iterator[Scope]:
    """A user's own memberships, in whichever tenants, and no row of any tenant beside them."""
    with scope(_NO_TENANT, user_id=user_id) as entered:
        yield entered


@contextmanager
def narrow(subject_id: UUID, *, to_the_end: bool = False) -> Iterator[Scope]:
    """Step from the tenant's own rows to one person's, inside the same transaction, and back.

    With `to_the_end` there is no way back: what is left of the transaction is its end, and no table can be named.
    An exception that passes through dooms the transaction: nothing more can be read or written in it.
    """
    outer = current_scope()
    if outer.subject is not NONE:
        raise ScopeConflict("Only a scope without a person can narrow to one.")
    _set_local(subject_id=str(subject_id))
    inner = replace(outer, subject=subject_id)
    token = _current.set(inner)
    try:
        yield inner
        if not to_the_end:
            _set_local(subject_id=NONE.value, subject_pseudonym="")
    except BaseException:
        transaction.set_rollback(True)
        raise
    finally:
        _current.reset(token)
        if to_the_end:
            _current.set(None)


def reveal_pseudonym(pseudonym: str) -> None:
    """Let this person's scope read the events and ledger entries that carry the person's pseudonym."""
    if isinstance(current_scope().subject, Reach):
        raise ScopeConflict("A pseudonym belongs to one person's scope.")
    _set_local(subject_pseudonym=pseudonym)


def lock_person(subject_id: UUID, *, exclusive: bool = False) -> None:
    """Advisory lock of a person until the transaction ends: shared to use their data, exclusive to withdraw it."""
    ask(person_lock(subject_id, exclusive=exclusive))


def person_lock(subject_id: UUID, *, exclusive: bool = False) -> "Question":
    function = "pg_advisory_xact_lock" if exclusive else "pg_advisory_xact_lock_shared"
    return Question(f"SELECT {function}(%s)", (int.from_bytes(subject_id.bytes[8:], "big", signed=True),))


def _set_local(**values: str) -> None:
    ask(_settings(**values))


def _settings(**values: str) -> "Question":
    calls = ", ".join("set_config(%s, %s, true)" for _ in values)
    return Question(f"SELECT {calls}", tuple(part for name, value in values.items() for part in (f"app.{name}", value)))


# --- statements -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """A SELECT written out, with its values. It names the scope's ids itself, as the managers would have."""

    sql: str
    values: tuple[Any, ...] = ()


type Rows = list[tuple[Any, ...]]


def ask(*questions: Question) -> list[Rows]:
    """The rows of each, in one message to the database. Each still begins when the one before it has ended."""
    with connection.cursor() as cursor:
        cursor.execute(
            "; ".join(each.sql for each in questions), [value for each in questions for value in each.values]
        )
        answers = [cursor.fetchall()]
        while cursor.nextset():
            answers.append(cursor.fetchall())
        return answers


def ask_alone(tenant_id: UUID, question: Question) -> Rows:
    """One question in a tenant's scope and in a transaction of its own, which the message itself is.

    PostgreSQL takes the statements of one message as one transaction when none is open, so the settings, which come
    first, are in force for the question and gone with it. Raises ScopeConflict inside another scope or transaction.
    """
    if _current.get() is not None or connection.in_atomic_block:
        raise ScopeConflict("A question by itself has a transaction of its own.")
    token = _current.set(Scope(tenant_id, NONE))
    try:
        settings = _settings(tenant_id=str(tenant_id), subject_id=NONE.value, user_id="")
        return ask(settings, question)[1]
    finally:
        _current.reset(token)


# --- models -----------------------------------------------------------------------------------------------------------


class TenantManager[M: models.Model](models.Manager[M]):
    """Adds the scope's ids as literals to every query; without a scope it raises ScopeMissing."""

    def get_queryset(self) -> models.QuerySet[M]:
        return super().get_queryset().filter(tenant_id=current_scope().tenant_id)


class PersonManager[M: models.Model](TenantManager[M]):
    def get_queryset(self) -> models.QuerySet[M]:
        rows, subject = super().get_queryset(), current_scope().subject
        if subject is ALL:
            return rows
        return rows.filter(subject_id=None if subject is NONE else subject)


class TenantModel(models.Model):
    """A tenant's row: a time-ordered id made by us, and the tenant. Its walls stand in Meta.constraints."""

    # Stable for ever, part of the associated data of sealed fields; 0 where nothing is sealed.
    table_number: ClassVar[int] = 0

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey("accounts.Tenant", on_delete=models.PROTECT, related_name="+", db_index=False)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        abstract = True
        base_manager_name = "objects"

    def save(self, *args: Any, **kwargs: Any) -> None:
        current_scope()
        super().save(*args, **kwargs)


class OptionalPersonModel(TenantModel):
    """A row that may be about a person: without one it belongs to the tenant alone."""

    subject = models.ForeignKey(
        "accounts.Subject", null=True, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )

    objects: ClassVar[PersonManager[Self]] = PersonManager()

    class Meta(TenantModel.Meta):
        abstract = True


class PersonModel(TenantModel):
    """A row about one person; see PersonManager for what a scope shows of it."""

    subject = models.ForeignKey(
        "accounts.Subject", on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )

    objects: ClassVar[PersonManager[Self]] = PersonManager()

    class Meta(TenantModel.Meta):
        abstract = True


# --- the guard --------------------------------------------------------------------------------------------------------

# Not a model's own: the log's policies are plain SQL, and a wrapped key lives in another database.
_LOG_TABLE = "audit_event"


def tenant_tables() -> frozenset[str]:
    """Every table of this database under a row policy."""
    return frozenset({_LOG_TABLE}) | {
        model._meta.db_table
        for model in apps.get_models()
        if router.db_for_write(model) == "default"
        and any(isinstance(each, RowSecurity) for each in model._meta.constraints)
    }


@cache
def _names_tenant_table() -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(map(re.escape, sorted(tenant_tables()))) + r")\b", re.IGNORECASE)


def refuse_unscoped(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """An execute wrapper: rows of a tenant are asked for inside a scope, or not at all."""
    if _current.get() is None:
        text = sql if isinstance(sql, str) else str(sql)
        if _names_tenant_table().search(text):
            raise ScopeMissing("This statement names a tenant's table outside a scope.")
    return execute(sql, params, many, context)


def guard_connection(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Put the guard on the application's own connection. The owner, who migrates, is under forced row security."""
    is_owner = "assume_role" in connection.settings_dict["OPTIONS"]
    if connection.alias == "default" and not is_owner and refuse_unscoped not in connection.execute_wrappers:
        connection.execute_wrappers.insert(0, refuse_unscoped)
