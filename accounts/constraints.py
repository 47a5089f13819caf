"""Database walls declared on models, so that migrations find them and a drift check sees them missing.

`RowSecurity` is a table's row policy and grants; `CompositeForeignKey` makes a reference carry tenant and person.
Django has neither (relations to composite keys are refused); both are plain constraints to its autodetector.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from django.db import DEFAULT_DB_ALIAS, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.ddl_references import Statement, Table

# A setting made local to an earlier transaction reads '' afterwards, not NULL: hence nullif (privacy research M1).
TENANT_SETTING = "(SELECT nullif(current_setting('app.tenant_id', true), '')::uuid)"
USER_SETTING = "(SELECT nullif(current_setting('app.user_id', true), '')::uuid)"
PSEUDONYM_SETTING = "(SELECT nullif(current_setting('app.subject_pseudonym', true), ''))"
SUBJECT_SETTING = "(SELECT coalesce(current_setting('app.subject_id', true), ''))"
ONE_SUBJECT = "(SELECT nullif(nullif(current_setting('app.subject_id', true), ''), '*')::uuid)"


class RowRule(StrEnum):
    """Which rows a scope shows and takes."""

    TENANT = "tenant"
    TENANT_ITSELF = "tenant_itself"
    PERSON = "person"
    PSEUDONYM = "pseudonym"
    MEMBERSHIP = "membership"


_OF_TENANT = f"tenant_id = {TENANT_SETTING}"
CONDITIONS = {
    RowRule.TENANT: _OF_TENANT,
    RowRule.TENANT_ITSELF: f"id = {TENANT_SETTING}",
    RowRule.PERSON: (
        f"{_OF_TENANT} AND CASE {SUBJECT_SETTING} WHEN '*' THEN true WHEN '' THEN subject_id IS NULL "
        f"ELSE subject_id = {ONE_SUBJECT} END"
    ),
    RowRule.PSEUDONYM: (
        f"{_OF_TENANT} AND CASE {SUBJECT_SETTING} WHEN '*' THEN true WHEN '' THEN false "
        f"ELSE subject_pseudonym = {PSEUDONYM_SETTING} END"
    ),
    RowRule.MEMBERSHIP: f"{_OF_TENANT} OR user_id = {USER_SETTING}",
}
# Reading memberships of one's own in other tenants must not allow writing there.
CHECKS = CONDITIONS | {RowRule.MEMBERSHIP: _OF_TENANT}


class _DatabaseOnly(models.BaseConstraint):
    """A constraint that the database alone holds; Django's own validation has nothing to add."""

    def validate(
        self,
        model: type[models.Model],
        instance: models.Model,
        exclude: Any = None,
        using: str = DEFAULT_DB_ALIAS,
    ) -> None:
        return None

    def constraint_sql(self, model: Any, schema_editor: Any) -> Any:
        """Nothing inside CREATE TABLE; what `create_sql` gives runs at the migration's end."""
        statement = self.create_sql(model, schema_editor)
        if statement is not None:
            schema_editor.deferred_sql.append(statement)
        return None

    def _statement(
        self, model: type[models.Model], editor: BaseDatabaseSchemaEditor, template: str, **parts: Any
    ) -> Statement:
        return Statement(template, table=Table(model._meta.db_table, editor.quote_name), **parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _DatabaseOnly):
            return NotImplemented
        return self.deconstruct() == other.deconstruct()

    def __hash__(self) -> int:
        return hash(self.name)


class RowSecurity(_DatabaseOnly):
    """ENABLE and FORCE row security, one policy and one grant a role.

    `grants` maps a role to its privileges; `open_to` names roles that may see every row (the outbox relay).
    """

    def __init__(
        self,
        *,
        name: str,
        rule: RowRule | str,
        grants: Sequence[tuple[str, str]] = (("fmn_app", "SELECT, INSERT, UPDATE, DELETE"),),
        open_to: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(name=name)
        self.rule = RowRule(rule)
        self.grants = tuple(tuple(grant) for grant in grants)
        self.open_to = tuple(tuple(grant) for grant in open_to)

    def create_sql(self, model: Any, schema_editor: Any) -> Any:
        shown, taken = CONDITIONS[self.rule], CHECKS[self.rule]
        policies = [
            f'CREATE POLICY "{self.name}_{role}" ON %(table)s TO {role} USING ({taken}) WITH CHECK ({taken})'
            for role, _ in self.grants
        ]
        if shown != taken:  # USING of a policy for all commands would let DELETE reach what is only to be read
            policies += [
                f'CREATE POLICY "{self.name}_{role}_reads" ON %(table)s FOR SELECT TO {role} USING ({shown})'
                for role, _ in self.grants
            ]
        policies += [
            f'CREATE POLICY "{self.name}_{role}" ON %(table)s TO {role} USING (true)' for role, _ in self.open_to
        ]
        grants = [f"GRANT {privileges} ON %(table)s TO {role}" for role, privileges in (*self.grants, *self.open_to)]
        security = [f"ALTER TABLE %(table)s {verb} ROW LEVEL SECURITY" for verb in ("ENABLE", "FORCE")]
        return self._statement(model, schema_editor, "; ".join(security + policies + grants))

    def remove_sql(self, model: Any, schema_editor: Any) -> Any:
        """Takes the grants with it; the table stays locked (security on, no policy) until another rule is put on it."""
        statements = [
            f'DROP POLICY "{self.name}_{role}" ON %(table)s; '
            f'DROP POLICY IF EXISTS "{self.name}_{role}_reads" ON %(table)s; REVOKE ALL ON %(table)s FROM {role}'
            for role, _ in (*self.grants, *self.open_to)
        ]
        return self._statement(model, schema_editor, "; ".join(statements))

    def deconstruct(self) -> Any:
        path, args, kwargs = super().deconstruct()
        kwargs["rule"] = self.rule.value
        kwargs["grants"] = self.grants
        if self.open_to:
            kwargs["open_to"] = self.open_to
        return path, args, kwargs


class AppendOnly(_DatabaseOnly):
    """Triggers that refuse UPDATE, DELETE and TRUNCATE, beside grants that never gave them."""

    def create_sql(self, model: Any, schema_editor: Any) -> Any:
        body = (
            'CREATE FUNCTION "%(name)s_refuse"() RETURNS trigger LANGUAGE plpgsql AS '
            "$$ BEGIN RAISE EXCEPTION '%% is append-only: %% refused', TG_TABLE_NAME, TG_OP; END $$; "
            'CREATE TRIGGER "%(name)s_rows" BEFORE UPDATE OR DELETE ON %(table)s '
            'FOR EACH ROW EXECUTE FUNCTION "%(name)s_refuse"(); '
            'CREATE TRIGGER "%(name)s_truncate" BEFORE TRUNCATE ON %(table)s '
            'FOR EACH STATEMENT EXECUTE FUNCTION "%(name)s_refuse"()'
        )
        return self._statement(model, schema_editor, body, name=self.name)

    def remove_sql(self, model: Any, schema_editor: Any) -> Any:
        triggers = 'DROP TRIGGER "%(name)s_rows" ON %(table)s; DROP TRIGGER "%(name)s_truncate" ON %(table)s; '
        body = f'{triggers}DROP FUNCTION "%(name)s_refuse"()'
        return self._statement(model, schema_editor, body, name=self.name)


class CompositeForeignKey(_DatabaseOnly):
    """FOREIGN KEY (columns) REFERENCES to (columns): the reference carries tenant and person with the id.

    `to` is "app.Model"; the target needs a unique constraint on `to_columns`. When the target goes: nothing given, it
    cannot while it is referred to; "cascade", this row goes too; a column's name, that column is emptied.
    """

    def __init__(
        self, *, name: str, columns: Sequence[str], to: str, to_columns: Sequence[str], on_delete: str = ""
    ) -> None:
        super().__init__(name=name)
        self.columns, self.to, self.to_columns = tuple(columns), to, tuple(to_columns)
        self.on_delete = on_delete

    @property
    def _action(self) -> str:
        if self.on_delete in ("", "cascade"):
            return " ON DELETE CASCADE" if self.on_delete else ""
        return f' ON DELETE SET NULL ("{self.on_delete}")'

    def create_sql(self, model: Any, schema_editor: Any) -> Any:
        """Put off to the migration's end: the unique key it points to may be created after it."""
        target = model._meta.apps.get_model(self.to)
        statement = self._statement(
            model,
            schema_editor,
            'ALTER TABLE %(table)s ADD CONSTRAINT "%(name)s" FOREIGN KEY (%(columns)s) '
            "REFERENCES %(target)s (%(to_columns)s)%(action)s",
            name=self.name,
            columns=_column_list(self.columns),
            target=Table(target._meta.db_table, schema_editor.quote_name),
            to_columns=_column_list(self.to_columns),
            action=self._action,
        )
        schema_editor.deferred_sql.append(statement)
        return None

    def remove_sql(self, model: Any, schema_editor: Any) -> Any:
        return self._statement(model, schema_editor, 'ALTER TABLE %(table)s DROP CONSTRAINT "%(name)s"', name=self.name)

    def deconstruct(self) -> Any:
        path, args, kwargs = super().deconstruct()
        kwargs |= {"columns": self.columns, "to": self.to, "to_columns": self.to_columns}
        if self.on_delete:
            kwargs["on_delete"] = self.on_delete
        return path, args, kwargs


def _column_list(columns: Sequence[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def tenant_keys(*, person: bool = False, rule: RowRule | None = None, **rows: Any) -> list[models.BaseConstraint]:
    """The constraints every tenant table has: row security, and the unique key composite references point to."""
    rule = rule or (RowRule.PERSON if person else RowRule.TENANT)
    keys: list[models.BaseConstraint] = [
        RowSecurity(name="%(app_label)s_%(class)s_rows", rule=rule, **rows),
        models.UniqueConstraint(fields=["tenant", "id"], name="%(app_label)s_%(class)s_tenant_id"),
    ]
    if person:
        keys += [
            models.UniqueConstraint(fields=["tenant", "subject", "id"], name="%(app_label)s_%(class)s_person_id"),
            CompositeForeignKey(
                name="%(app_label)s_%(class)s_subject",
                columns=["tenant_id", "subject_id"],
                to="accounts.Subject",
                to_columns=["tenant_id", "id"],
            ),
        ]
    return keys
