"""The walls as migrations see them: what each constraint puts into the database, takes away again, and compares by."""

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import UniqueConstraint
from psycopg import errors

from accounts.constraints import AppendOnly, CompositeForeignKey, RowRule, RowSecurity, tenant_keys
from accounts.models import Membership, OutboxEntry, Project
from consent.models import Notice
from memory.models import Memory

ALL = [
    RowSecurity(name="rows", rule=RowRule.PERSON, grants=(("fmn_app", "SELECT"),), open_to=(("fmn_relay", "SELECT"),)),
    RowSecurity(name="rows", rule="tenant"),
    AppendOnly(name="kept"),
    CompositeForeignKey(
        name="refers", columns=["tenant_id", "a_id"], to="memory.Memory", to_columns=["tenant_id", "id"]
    ),
    CompositeForeignKey(
        name="refers",
        columns=["tenant_id", "a_id"],
        to="memory.Memory",
        to_columns=["tenant_id", "id"],
        on_delete="a_id",
    ),
]


@pytest.fixture
def superuser(connect_as):
    """A superuser's transaction that is never kept."""
    with connect_as("postgres") as opened:
        yield opened
        opened.rollback()


def sql_of(constraint, model, *, remove=False):
    """The statements a migration would run, those put off to its end included."""
    with connection.schema_editor(collect_sql=True, atomic=False) as editor:
        made = (constraint.remove_sql if remove else constraint.create_sql)(model, editor)
        return "; ".join(filter(None, [str(made) if made else "", *map(str, editor.deferred_sql)]))


def on(model, kind):
    return next(each for each in model._meta.constraints if isinstance(each, kind))


# --- to the autodetector ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", ALL, ids=range(len(ALL)))
def test_constraint_is_rebuilt_from_what_a_migration_keeps(constraint):
    path, args, kwargs = constraint.deconstruct()

    rebuilt = type(constraint)(*args, **kwargs)

    assert path == f"accounts.constraints.{type(constraint).__name__}"
    assert rebuilt == constraint
    assert hash(rebuilt) == hash(constraint)


def test_constraints_that_differ_in_anything_are_unequal():
    assert [(a, b) for a in range(len(ALL)) for b in range(a) if ALL[a] == ALL[b]] == []
    assert ALL[0] != UniqueConstraint(fields=["tenant", "id"], name="rows")


def test_tenant_keys_of_a_table_about_people_have_rows_uniques_and_the_reference_to_the_person():
    kinds = [type(each).__name__ for each in tenant_keys(person=True)]
    rules = [tenant_keys()[0].rule, tenant_keys(person=True)[0].rule, tenant_keys(rule=RowRule.MEMBERSHIP)[0].rule]

    assert kinds == ["RowSecurity", "UniqueConstraint", "UniqueConstraint", "CompositeForeignKey"]
    assert [type(each).__name__ for each in tenant_keys()] == ["RowSecurity", "UniqueConstraint"]
    assert rules == [RowRule.TENANT, RowRule.PERSON, RowRule.MEMBERSHIP]


def test_constraint_of_the_database_alone_validates_nothing():
    assert ALL[0].validate(Project, Project(name="anything")) is None


# --- row security ----------------------------------------------------------------------------------------------------


def test_row_security_in_the_database_is_what_the_models_declare(connect_as):
    declared = {
        (model._meta.db_table, role)
        for model in apps.get_models()
        for each in model._meta.constraints
        if isinstance(each, RowSecurity)
        for role, _ in (*each.grants, *each.open_to)
    }
    found = set()
    for database in ("", "forgetmenot_keys"):
        with connect_as("postgres", database) as superuser:
            rows = superuser.execute(
                "SELECT tablename, unnest(roles)::text FROM pg_policies WHERE tablename NOT LIKE 'audit_%'"
            )
            found |= set(rows.fetchall())

    assert found == declared


def test_grants_in_the_database_are_what_the_models_declare(superuser):
    for model in apps.get_models():
        for each in model._meta.constraints:
            if isinstance(each, RowSecurity) and model._meta.db_table != "accounts_wrappedkey":
                for role, privileges in (*each.grants, *each.open_to):
                    found = superuser.execute(
                        "SELECT privilege_type::text FROM information_schema.table_privileges"
                        " WHERE grantee = %s AND table_name = %s",
                        [role, model._meta.db_table],
                    )
                    assert {name for (name,) in found} == set(privileges.split(", ")), model


def test_row_security_taken_away_leaves_the_table_locked(superuser):
    """Nobody's rule is not everybody's table: until another is put on it no role but a superuser sees anything."""
    superuser.execute(sql_of(on(Membership, RowSecurity), Membership, remove=True))
    superuser.execute("GRANT SELECT ON accounts_membership TO fmn_app")
    superuser.execute("SET LOCAL ROLE fmn_app")

    assert superuser.execute("SELECT count(*) FROM accounts_membership").fetchone() == (0,)


def test_row_security_taken_away_and_put_back_is_the_same(superuser):
    policies = "SELECT policyname, roles, cmd, qual, with_check FROM pg_policies ORDER BY tablename, policyname"
    before = superuser.execute(policies).fetchall()
    for model in (Membership, OutboxEntry):
        rows = on(model, RowSecurity)
        superuser.execute(sql_of(rows, model, remove=True))
        superuser.execute(sql_of(rows, model))

    assert superuser.execute(policies).fetchall() == before


def test_row_security_open_to_a_role_shows_it_every_row_and_no_other_table(superuser, acme):
    acme.admin.post("/v1/knowledge/documents", {"name": "menu", "text": "Soup."})
    superuser.execute("SET LOCAL ROLE fmn_relay")

    tenants = {each for (each,) in superuser.execute("SELECT tenant_id FROM accounts_outboxentry")}

    assert acme.id in tenants
    with pytest.raises(errors.InsufficientPrivilege, match="permission denied for table accounts_job"):
        superuser.execute("SELECT * FROM accounts_job")


# --- append only -----------------------------------------------------------------------------------------------------

APPEND_ONLY = ["consent_consentevent", "consent_notice", "consent_purposeversion"]


def test_append_only_is_declared_on_the_ledger_and_what_it_proves():
    tables = sorted(
        model._meta.db_table
        for model in apps.get_models()
        if any(isinstance(each, AppendOnly) for each in model._meta.constraints)
    )

    assert tables == APPEND_ONLY


@pytest.mark.parametrize("table", APPEND_ONLY)
@pytest.mark.parametrize("verb", ["UPDATE {} SET id = id", "DELETE FROM {}", "TRUNCATE {} CASCADE"])
def test_append_only_refuses_even_the_superuser(superuser, mia, table, verb):
    mia.consents()

    with pytest.raises(errors.RaiseException, match=f"{table} is append-only: {verb.split(' ')[0]} refused"):
        superuser.execute(verb.format(table))


def test_append_only_taken_away_lets_rows_go(superuser, acme):
    superuser.execute(sql_of(on(Notice, AppendOnly), Notice, remove=True))

    removed = superuser.execute("DELETE FROM consent_notice WHERE tenant_id = %s", [acme.id]).rowcount

    assert removed == 7


# --- references ------------------------------------------------------------------------------------------------------


def test_reference_names_columns_target_and_what_follows_a_deletion():
    by_name = {each.name: each for each in Memory._meta.constraints}

    assert sql_of(by_name["memory_memory_superseded_by"], Memory) == (
        'ALTER TABLE "memory_memory" ADD CONSTRAINT "memory_memory_superseded_by" '
        'FOREIGN KEY ("tenant_id", "subject_id", "superseded_by_id") '
        'REFERENCES "memory_memory" ("tenant_id", "subject_id", "id") ON DELETE SET NULL ("superseded_by_id")'
    )
    assert sql_of(by_name["memory_memory_subject"], Memory).endswith(
        'REFERENCES "accounts_subject" ("tenant_id", "id")'
    )


def test_reference_taken_away_and_put_back_is_the_same(superuser):
    definition = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'memory_memory_session'"
    before = superuser.execute(definition).fetchone()
    reference = next(each for each in Memory._meta.constraints if each.name == "memory_memory_session")

    superuser.execute(sql_of(reference, Memory, remove=True))
    between = superuser.execute(definition).fetchone()
    superuser.execute(sql_of(reference, Memory))

    assert between is None
    assert superuser.execute(definition).fetchone() == before


def test_deleted_memory_empties_the_reference_of_what_it_replaced(superuser, mia):
    """SET NULL of one column: tenant and person stay."""
    mia.consents()
    old = mia.remembers("Lives in Bonn.")
    new = mia.remembers("Lives in Köln.", supersedes=[old])

    superuser.execute("DELETE FROM memory_memory WHERE id = %s", [new])

    found = superuser.execute("SELECT tenant_id, subject_id, superseded_by_id FROM memory_memory WHERE id = %s", [old])
    assert found.fetchone() == (mia.world.id, mia.id, None)
    assert superuser.execute("SELECT count(*) FROM memory_lineage WHERE memory_id = %s", [new]).fetchone() == (0,)


def test_deleted_document_takes_its_chunks_along_as_the_application(connect_as, acme):
    """The cascade runs behind forced row security: it must find the rows although the owner has no policy."""
    from memory.tasks import ingest_document

    stored = acme.admin.post("/v1/knowledge/documents", {"name": "menu", "text": "Soup."}).json()
    ingest_document(tenant_id=str(acme.id), document_id=stored["id"], job_id=stored["job"]["id"])
    counts = (
        "SELECT (SELECT count(*) FROM memory_chunk WHERE tenant_id = %(tenant)s),"
        " (SELECT count(*) > 0 FROM memory_posting WHERE tenant_id = %(tenant)s)"
    )
    with connect_as("postgres", autocommit=True) as watching:
        before = watching.execute(counts, {"tenant": acme.id}).fetchone()
        assert acme.admin.delete(f"/v1/knowledge/documents/{stored['id']}").status_code == 200

        assert before == (1, True)
        assert watching.execute(counts, {"tenant": acme.id}).fetchone() == (0, False)
