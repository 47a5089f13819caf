"""Nothing is served from a database without its walls, and no table, view, function or model escapes the rules."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import dj_database_url
import pytest
from django.apps import apps
from django.conf import settings
from django.core.checks import run_checks
from django.db import connections

from accounts.constraints import RowSecurity
from accounts.safety import GLOBAL_TABLES, unsafe_reasons
from accounts.tenancy import TenantModel, tenant_tables
from consent.holdings import covered_models, holders

ROOT = Path(__file__).parents[2]
# Functions that run with their owner's rights, whoever calls them. None so far; each would need its reason here.
SECURITY_DEFINERS: set[str] = set()


@contextmanager
def committed(connect_as, make, undo, database=""):
    """Something in the database that everybody sees, for as long as the block runs."""
    with connect_as("postgres", database, autocommit=True) as superuser:
        superuser.execute(make)
        try:
            yield
        finally:
            superuser.execute(undo)


@contextmanager
def alias_for(url, **options):
    """A connection of Django's own to this address, under a name of its own."""
    connections.settings["asked"] = settings.DATABASES["default"] | dj_database_url.parse(url) | {"OPTIONS": options}
    try:
        yield "asked"
    finally:
        connections["asked"].close()
        del connections["asked"], connections.settings["asked"]


def start(entry, **environment):
    """Import an entry point in a process of its own."""
    code, environment = f"import {entry}; print('serving')", os.environ | {"DATABASE_POOL_SECONDS": "0.5"} | environment
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


# --- what is found ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alias", ["default", "keys"])
def test_serving_role_has_no_unsafe_reason(alias):
    assert unsafe_reasons(alias) == []


def test_superuser_is_unsafe(stack):
    with alias_for(stack.url("postgres")) as superuser:
        found = unsafe_reasons(superuser)

    assert found == [
        "The role postgres is a superuser: row security does not bind it.",
        "The role postgres has BYPASSRLS.",
        "The role postgres owns tables, or may act as their owner.",
    ]


def test_role_that_bypasses_row_security_is_unsafe(stack):
    with alias_for(stack.url("fmn_backup")) as backup:
        assert unsafe_reasons(backup) == ["The role fmn_backup has BYPASSRLS."]


def test_role_that_migrates_is_unsafe(stack):
    """It has not yet become the owner, but one statement would do it."""
    with alias_for(stack.url("fmn_migrate")) as migrating:
        assert unsafe_reasons(migrating) == ["The role fmn_migrate owns tables, or may act as their owner."]


def test_role_that_acts_as_the_owner_is_unsafe(stack):
    with alias_for(stack.url("fmn_migrate"), assume_role="fmn_owner") as owner:
        assert unsafe_reasons(owner) == ["The role fmn_owner owns tables, or may act as their owner."]


def test_keys_database_under_a_superuser_is_unsafe(stack):
    with alias_for(stack.url("postgres", "forgetmenot_keys")) as superuser:
        assert "The role postgres is a superuser: row security does not bind it." in unsafe_reasons(superuser)


def test_role_that_may_become_the_owner_is_unsafe(connect_as):
    with committed(connect_as, "GRANT fmn_owner TO fmn_app", "REVOKE fmn_owner FROM fmn_app"):
        found = unsafe_reasons()

    assert found == ["The role fmn_app owns tables, or may act as their owner."]


def test_role_that_may_switch_to_the_owner_without_inheriting_is_unsafe(connect_as):
    """SET ROLE is one statement away: membership counts, inherited or not."""
    grant = "GRANT fmn_owner TO fmn_app WITH INHERIT FALSE, SET TRUE"
    with committed(connect_as, grant, "REVOKE fmn_owner FROM fmn_app"):
        found = unsafe_reasons()

    assert found == ["The role fmn_app owns tables, or may act as their owner."]


@pytest.mark.parametrize(
    "table",
    ["CREATE TABLE stray (id int)", "CREATE TABLE stray (id int); ALTER TABLE stray ENABLE ROW LEVEL SECURITY"],
    ids=["open", "not forced"],
)
def test_table_without_forced_security_is_unsafe(connect_as, table):
    with committed(connect_as, table, "DROP TABLE stray"):
        found = unsafe_reasons()

    assert found == ["The table stray has no forced row security and is not on the list of global tables."]


@pytest.mark.parametrize("alias", ["default", "keys"])
def test_tenant_table_whose_security_was_lifted_is_unsafe(connect_as, alias):
    table, database = ("memory_memory", "") if alias == "default" else ("accounts_wrappedkey", "forgetmenot_keys")
    lifted, forced = (f"ALTER TABLE {table} {verb} ROW LEVEL SECURITY" for verb in ("NO FORCE", "FORCE"))
    with committed(connect_as, lifted, forced, database):
        found = unsafe_reasons(alias)

    assert found == [f"The table {table} has no forced row security and is not on the list of global tables."]


def test_materialised_copy_of_a_tenant_table_is_unsafe(connect_as):
    """A copy is filled with its owner's rights and no policy can be put on it."""
    copy = "CREATE MATERIALIZED VIEW stray AS SELECT id FROM memory_memory"
    with committed(connect_as, copy, "DROP MATERIALIZED VIEW stray"):
        found = unsafe_reasons()

    assert found == ["The table stray has no forced row security and is not on the list of global tables."]


def test_view_with_its_owners_rights_is_unsafe(connect_as):
    with committed(connect_as, "CREATE VIEW stray AS SELECT id FROM memory_memory", "DROP VIEW stray"):
        found = unsafe_reasons()

    assert found == ["The view stray runs with its owner's rights; it needs security_invoker."]


@pytest.mark.parametrize("option", ["security_invoker", "security_invoker = true", "security_invoker = on"])
def test_view_with_the_callers_rights_is_safe(connect_as, option):
    view = f"CREATE VIEW stray WITH ({option}) AS SELECT id FROM memory_memory"
    with committed(connect_as, view, "DROP VIEW stray"):
        assert unsafe_reasons() == []


def test_system_check_reports_what_is_unsafe_as_critical(connect_as):
    with committed(connect_as, "CREATE TABLE stray (id int)", "DROP TABLE stray"):
        found = run_checks(databases=["default"])

    assert [(each.id, each.level, each.msg) for each in found if each.id == "accounts.E001"] == [
        ("accounts.E001", 50, "The table stray has no forced row security and is not on the list of global tables.")
    ]
    assert [each for each in run_checks(databases=["default"]) if each.id == "accounts.E001"] == []


# --- what is not started ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ["config.asgi", "config.wsgi"])
def test_entry_point_exits_with_the_reasons_when_it_would_be_a_superuser(stack, entry):
    answer = start(entry, DATABASE_URL=stack.url("postgres"))

    assert answer.returncode == 1
    assert answer.stdout == ""
    assert answer.stderr.splitlines()[-4:] == [
        "Refusing to start.",
        "- default: The role postgres is a superuser: row security does not bind it.",
        "- default: The role postgres has BYPASSRLS.",
        "- default: The role postgres owns tables, or may act as their owner.",
    ]


@pytest.mark.parametrize("entry", ["config.asgi", "config.wsgi"])
def test_entry_point_starts_as_the_application(entry):
    """The control: the same process with its own role goes on."""
    answer = start(entry)

    assert (answer.returncode, answer.stdout) == (0, "serving\n")


def test_entry_point_exits_when_the_database_cannot_be_asked():
    answer = start("config.asgi", DATABASE_URL="postgresql://fmn_app@127.0.0.1:1/none")

    assert (answer.returncode, answer.stdout) == (1, "")
    assert "- The database cannot be reached, so its walls cannot be checked: OperationalError." in answer.stderr


# --- the house --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("database", ["", "forgetmenot_keys"])
def test_every_table_is_under_forced_security_or_on_the_list_of_global_ones(connect_as, database):
    with connect_as("postgres", database) as superuser:
        rows = superuser.execute(
            "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class"
            " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'm', 'f')"
        ).fetchall()

    forced = {name for name, is_forced in rows if is_forced}
    assert {name for name, is_forced in rows if not is_forced} <= set(GLOBAL_TABLES)
    assert forced & set(GLOBAL_TABLES) == set()
    assert forced != set()


def test_every_global_table_exists_and_names_no_tenant_but_the_directory(connect_as):
    with connect_as("postgres") as superuser:
        columns = superuser.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_name = ANY(%s)",
            [list(GLOBAL_TABLES)],
        ).fetchall()

    assert {table for table, _ in columns} == set(GLOBAL_TABLES)
    assert {table for table, column in columns if column == "tenant_id"} == {"accounts_directory"}
    assert [table for table, column in columns if column.startswith("subject")] == []


def test_application_may_do_with_global_tables_what_the_list_says(connect_as):
    with connect_as("postgres") as superuser:
        granted = dict(
            superuser.execute(
                "SELECT table_name, string_agg(privilege_type, ',' ORDER BY privilege_type)"
                " FROM information_schema.table_privileges WHERE grantee = 'fmn_app' AND table_name = ANY(%s)"
                " GROUP BY table_name",
                [list(GLOBAL_TABLES)],
            ).fetchall()
        )

    assert granted == {
        name: ",".join(sorted(privileges.split(", "))) for name, privileges in GLOBAL_TABLES.items() if privileges
    }


def test_application_may_truncate_and_own_nothing(connect_as):
    with connect_as("postgres") as superuser:
        found = superuser.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v')"
            " AND (has_table_privilege('fmn_app', oid, 'TRUNCATE, REFERENCES, TRIGGER, MAINTAIN')"
            " OR pg_get_userbyid(relowner) <> 'fmn_owner')"
        ).fetchall()

    assert found == []


@pytest.mark.parametrize("database", ["", "forgetmenot_keys"])
def test_no_function_runs_with_its_owners_rights(connect_as, database):
    with connect_as("postgres", database) as superuser:
        found = superuser.execute(
            "SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace"
        ).fetchall()

    assert {name for (name,) in found} == SECURITY_DEFINERS


def test_policies_name_their_roles_and_none_is_for_everybody(connect_as):
    with connect_as("postgres") as superuser:
        roles = superuser.execute("SELECT DISTINCT unnest(roles)::text FROM pg_policies ORDER BY 1").fetchall()
        unconditional = superuser.execute(
            "SELECT tablename::text, roles::text FROM pg_policies"
            " WHERE qual = 'true' OR with_check = 'true' ORDER BY 1, 2"
        ).fetchall()

    assert roles == [("fmn_app",), ("fmn_audit",), ("fmn_relay",), ("fmn_sealer",)]
    assert unconditional == [
        ("accounts_outboxentry", "{fmn_relay}"),
        ("audit_event", "{fmn_audit}"),
        ("audit_event", "{fmn_sealer}"),
    ]


def concrete_models():
    return [model for model in apps.get_models() if not model._meta.proxy]


def columns_of(model):
    return {field.column for field in model._meta.concrete_fields}


def test_every_model_with_a_tenant_declares_row_security():
    """Besides the directory, which is global, and the log, whose policies are its migration's."""
    lacking = {
        model._meta.label_lower
        for model in concrete_models()
        if (issubclass(model, TenantModel) or "tenant_id" in columns_of(model))
        and not any(isinstance(each, RowSecurity) for each in model._meta.constraints)
    }

    assert lacking == {"accounts.directory", "audit.auditevent"}


def test_guard_knows_every_table_under_row_security(connect_as):
    with connect_as("postgres") as superuser:
        rows = superuser.execute(
            "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
            " AND relrowsecurity AND NOT relispartition"
        ).fetchall()

    assert tenant_tables() == {name for (name,) in rows}


def test_every_model_with_a_person_in_it_has_a_holder():
    personal = {
        model._meta.label_lower
        for model in concrete_models()
        if columns_of(model) & {"subject_id", "subject_pseudonym"}
    } | {"accounts.subject"}

    assert personal - covered_models() == set()
    assert len(personal) == 14


def test_holders_answer_for_models_that_exist_and_for_none_twice():
    named = [label for holder in holders() for label in sorted(holder.models)]

    assert sorted(named) == sorted(set(named))
    assert set(named) <= {model._meta.label_lower for model in concrete_models()}
