"""The scope, its manager and its guard: what Django itself will and will not do in, outside and across tenants."""

import threading
from uuid import UUID

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, ProgrammingError, connection, connections, transaction
from uuid_utils.compat import uuid7

from accounts.models import ApiKey, Job, Project, Subject, Tenant
from accounts.tenancy import (
    ALL,
    NONE,
    Question,
    ScopeConflict,
    ScopeMissing,
    ask,
    ask_alone,
    current_scope,
    lock_person,
    narrow,
    reveal_pseudonym,
    scope,
    tenant_tables,
)
from memory.models import Document, Memory, Posting

SETTINGS = (
    "SELECT current_setting('app.tenant_id', true), current_setting('app.subject_id', true),"
    " current_setting('app.user_id', true), coalesce(current_setting('app.subject_pseudonym', true), '')"
)


@pytest.fixture
def zenith_project(zenith):
    return zenith.project("secret")


def settings():
    with connection.cursor() as cursor:
        cursor.execute(SETTINGS)
        return cursor.fetchone()


# --- entering and leaving ---------------------------------------------------------------------------------------------


def test_scope_sets_tenant_person_and_user_and_nothing_afterwards(acme):
    person, user = uuid7(), uuid7()
    with scope(acme.id, person, user_id=user):
        assert settings() == (str(acme.id), str(person), str(user), "")
        assert current_scope().subject == person

    assert settings() == ("", "", "", "")
    with pytest.raises(ScopeMissing):
        current_scope()


@pytest.mark.parametrize(("reach", "setting"), [(NONE, ""), (ALL, "*")])
def test_scope_without_a_person_reaches_nobody_or_everybody(acme, reach, setting):
    with scope(acme.id, reach):
        assert settings()[:2] == (str(acme.id), setting)


def test_scope_commits_what_was_done_in_it(acme):
    project_id = acme.project("kept")

    with scope(acme.id):
        assert Project.objects.get().id == project_id


def test_scope_left_by_an_exception_keeps_nothing(acme):
    def fail():
        with scope(acme.id):
            Project.objects.create(tenant_id=acme.id, name="lost")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    with scope(acme.id):
        assert Project.objects.count() == 0


@pytest.mark.parametrize("inner", [NONE, ALL, UUID(int=1)])
def test_scope_inside_a_scope_raises(acme, inner):
    with scope(acme.id), pytest.raises(ScopeConflict), scope(acme.id, inner):
        pass


def test_scope_inside_a_transaction_that_nobody_scoped_raises(acme):
    with transaction.atomic(), pytest.raises(ScopeConflict), scope(acme.id):
        pass


def test_scope_that_was_refused_leaves_the_outer_one_as_it_was(acme, zenith):
    with scope(acme.id):
        with pytest.raises(ScopeConflict), scope(zenith.id):
            pass
        assert current_scope().tenant_id == acme.id
        assert settings()[0] == str(acme.id)


# --- narrowing --------------------------------------------------------------------------------------------------------


def test_narrow_steps_to_one_person_and_back(mia):
    mia.consents().remembers("Prefers tea.")
    with scope(mia.world.id):
        with narrow(mia.id):
            inside = Memory.objects.count(), settings()[1]
        outside = Memory.objects.count(), settings()[1]

    assert inside == (1, str(mia.id))
    assert outside == (0, "")


def test_narrow_without_a_scope_raises(mia):
    with pytest.raises(ScopeMissing), narrow(mia.id):
        pass


@pytest.mark.parametrize("outer", [ALL, UUID(int=1)])
def test_narrow_from_anything_but_nobody_raises(acme, outer):
    with scope(acme.id, outer), pytest.raises(ScopeConflict), narrow(uuid7()):
        pass


def test_narrow_inside_narrow_raises(acme):
    with scope(acme.id), narrow(uuid7()), pytest.raises(ScopeConflict), narrow(uuid7()):
        pass


def test_narrow_left_by_an_exception_dooms_the_transaction(mia):
    """The settings are still the person's: caught or not, nothing more is read or kept in this transaction."""
    with scope(mia.world.id):
        Project.objects.create(tenant_id=mia.world.id, name="lost")
        with pytest.raises(RuntimeError), narrow(mia.id):
            raise RuntimeError
        with pytest.raises(transaction.TransactionManagementError):
            Project.objects.count()

    with scope(mia.world.id):
        assert Project.objects.count() == 0


def test_narrow_forgets_the_pseudonym_when_it_is_left(mia):
    with scope(mia.world.id):
        with narrow(mia.id):
            reveal_pseudonym("ab" * 16)
            inside = settings()[3]
        assert (inside, settings()[3]) == ("ab" * 16, "")


@pytest.mark.parametrize("reach", [NONE, ALL])
def test_pseudonym_is_revealed_to_one_persons_scope_only(acme, reach):
    with scope(acme.id, reach), pytest.raises(ScopeConflict):
        reveal_pseudonym("ab" * 16)


def test_lock_of_a_person_is_shared_among_users_and_exclusive_to_the_one_who_withdraws(stack, mia):
    key = int.from_bytes(mia.id.bytes[8:], "big", signed=True)
    with psycopg.connect(stack.url("fmn_app")) as other, scope(mia.world.id):
        lock_person(mia.id)
        shared = other.execute("SELECT pg_try_advisory_xact_lock_shared(%s)", [key]).fetchone()
        exclusive = other.execute("SELECT pg_try_advisory_xact_lock(%s)", [key]).fetchone()
        other.rollback()
        lock_person(mia.id, exclusive=True)
        against_exclusive = other.execute("SELECT pg_try_advisory_xact_lock_shared(%s)", [key]).fetchone()

    assert (shared, exclusive, against_exclusive) == ((True,), (False,), (False,))


# --- threads ----------------------------------------------------------------------------------------------------------


def test_scope_does_not_leak_into_a_thread(mia):
    found = []

    def elsewhere():
        try:
            found.append(Memory.objects.count())
        except ScopeMissing as error:
            found.append(type(error))
        finally:
            connections.close_all()

    with scope(mia.world.id, ALL):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()

    assert found == [ScopeMissing]


def test_scopes_of_two_threads_are_their_own(acme, zenith):
    names, both_inside = {}, threading.Barrier(2, timeout=10)
    acme.project("acme's")
    zenith.project("zenith's")

    def look(world):
        try:
            with scope(world.id):
                both_inside.wait()
                names[world.name] = list(Project.objects.values_list("name", flat=True))
                both_inside.wait()
        finally:
            connections.close_all()

    threads = [threading.Thread(target=look, args=[world]) for world in (acme, zenith)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert names == {"Acme": ["acme's"], "Zenith": ["zenith's"]}


# --- the manager and the guard ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [Tenant, Subject, Project, ApiKey, Job, Memory, Document, Posting])
def test_model_without_a_scope_raises(model):
    with pytest.raises(ScopeMissing):
        model.objects.count()
    with pytest.raises(ScopeMissing):
        model._base_manager.first()


def test_save_without_a_scope_raises(acme):
    with pytest.raises(ScopeMissing):
        Project(tenant_id=acme.id, name="nobody's").save()


def test_manager_names_tenant_and_person_as_literals(mia):
    with scope(mia.world.id, mia.id):
        one = str(Memory.objects.all().query)
    with scope(mia.world.id):
        nobody = str(Memory.objects.all().query)
    with scope(mia.world.id, ALL):
        everybody = str(Memory.objects.all().query)

    assert f'"tenant_id" = {mia.world.id} AND "memory_memory"."subject_id" = {mia.id})' in one
    assert nobody.endswith(f'"tenant_id" = {mia.world.id} AND "memory_memory"."subject_id" IS NULL)')
    assert everybody.endswith(f'"tenant_id" = {mia.world.id}')


@pytest.mark.parametrize("table", sorted(tenant_tables()))
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM {}",
        'select count(*) from "{}"',
        "\n  WITH x AS (SELECT 1 FROM public.{}) SELECT * FROM x",
        "UPDATE {} SET id = id",
        "DELETE FROM {}",
        "INSERT INTO {} DEFAULT VALUES",
        "TABLE {}",
    ],
)
def test_raw_statement_that_names_a_tenant_table_without_a_scope_raises(table, statement):
    with connection.cursor() as cursor, pytest.raises(ScopeMissing):
        cursor.execute(statement.format(table))


@pytest.mark.parametrize(
    "statement",
    [
        "(SELECT count(*) FROM memory_memory)",
        "/* looking */ SELECT count(*) FROM memory_memory",
        "-- looking\nSELECT count(*) FROM memory_memory",
        "EXPLAIN SELECT count(*) FROM memory_memory",
        "SELECT count(*) FROM MEMORY_MEMORY",
    ],
)
def test_raw_statement_in_another_dress_raises_too(statement):
    with connection.cursor() as cursor, pytest.raises(ScopeMissing):
        cursor.execute(statement)


def test_raw_statement_about_a_global_table_needs_no_scope():
    with connection.cursor() as cursor:
        cursor.execute("SELECT app FROM django_migrations WHERE app = 'accounts' LIMIT 1")
        assert cursor.fetchone() == ("accounts",)


def test_raw_statement_inside_a_scope_sees_that_tenant_alone(acme, zenith):
    acme.project("acme's")
    zenith.project("zenith's")
    with scope(acme.id), connection.cursor() as cursor:
        cursor.execute("SELECT name FROM accounts_project")
        assert cursor.fetchall() == [("acme's",)]


# --- across tenants, through Django -----------------------------------------------------------------------------------


def test_row_of_another_tenant_is_neither_found_nor_updated(acme, zenith_project):
    with scope(acme.id, ALL):
        assert Project.objects.filter(id=zenith_project).first() is None
        assert Project.objects.filter(id=zenith_project).update(name="taken over") == 0
        assert Project._base_manager.filter(id=zenith_project).first() is None
        assert list(Project.objects.raw("SELECT * FROM accounts_project WHERE id = %s", [zenith_project])) == []


def test_row_of_another_tenant_cannot_be_created(acme, zenith):
    with scope(acme.id), pytest.raises(ProgrammingError, match="row-level security policy"):
        Project.objects.create(tenant_id=zenith.id, name="planted")
    with scope(acme.id), pytest.raises(ProgrammingError, match="row-level security policy"):
        Project.objects.bulk_create([Project(tenant_id=zenith.id, name="planted")])


def test_row_of_another_person_cannot_be_created(mia):
    noa = mia.world.person("noa")
    with pytest.raises(ProgrammingError, match="row-level security policy"), scope(mia.world.id), narrow(mia.id):
        Job.objects.create(tenant_id=mia.world.id, subject_id=noa.id, kind="planted")


def loaded(world, model, identity):
    with scope(world.id, ALL):
        return model.objects.get(id=identity)


def test_row_loaded_in_one_tenant_cannot_be_saved_in_another(acme, zenith, zenith_project):
    row = loaded(zenith, Project, zenith_project)
    row.name = "taken over"

    with scope(acme.id), pytest.raises(ProgrammingError, match="row-level security policy"):
        row.save()
    with scope(acme.id), pytest.raises(DatabaseError, match="did not affect any rows"):
        row.save(update_fields=["name"])
    with scope(acme.id), pytest.raises(ProgrammingError, match="row-level security policy"):
        row.save(force_insert=True)

    assert loaded(zenith, Project, zenith_project).name == "secret"


def test_row_loaded_in_one_tenant_cannot_be_taken_into_another(acme, zenith, zenith_project):
    """Nor by naming one's own tenant on it: its id is taken, and the row is not one's own to update."""
    row = loaded(zenith, Project, zenith_project)
    row.tenant_id = acme.id

    with scope(acme.id), pytest.raises(IntegrityError, match="accounts_project_pkey"):
        row.save()

    assert loaded(zenith, Project, zenith_project).tenant_id == zenith.id


def test_row_loaded_in_one_tenant_cannot_be_deleted_in_another(acme, zenith, zenith_project):
    row = loaded(zenith, Project, zenith_project)

    with scope(acme.id, ALL):
        deleted, _ = row.delete()

    assert deleted == 0
    assert loaded(zenith, Project, zenith_project).name == "secret"


def test_row_loaded_in_one_tenant_cannot_be_refreshed_in_another(acme, zenith, zenith_project):
    row = loaded(zenith, Project, zenith_project)

    with scope(acme.id), pytest.raises(Project.DoesNotExist):
        row.refresh_from_db()


@pytest.fixture
def forged(connect_as, acme, zenith_project):
    """A document of Acme that points to a project of Zenith, put in with the foreign keys switched off."""
    identity = uuid7()
    with connect_as("postgres") as superuser:
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(
            "INSERT INTO memory_document (id, tenant_id, project_id, name, title, source, format, tags, text, state,"
            " version, chunked_version) VALUES (%s, %s, %s, 'forged', '', '', 'text', '{}', '', 'ready', 1, 1)",
            [identity, acme.id, zenith_project],
        )
    return identity


def test_forged_reference_leads_nowhere_by_itself_or_in_a_join(acme, forged, zenith_project):
    with scope(acme.id):
        document = Document.objects.get(id=forged)
        assert document.project_id == zenith_project
        with pytest.raises(Project.DoesNotExist):
            assert document.project
        rows = Document.objects.filter(id=forged)
        assert rows.select_related("project").get().project is None
        assert rows.values_list("project__name", flat=True).get() is None
        assert rows.filter(project__name="secret").count() == 0
        assert rows.prefetch_related("project").get().__dict__["_state"].fields_cache == {"project": None}


def test_reference_of_ones_own_is_followed(acme):
    """The control: the same joins do find what is the tenant's."""
    project = acme.project("open")
    stored = acme.admin.post("/v1/knowledge/documents", {"name": "d", "text": "Soup.", "project": str(project)})
    with scope(acme.id):
        rows = Document.objects.filter(id=stored.json()["id"])
        assert rows.select_related("project").get().project.name == "open"
        assert rows.values_list("project__name", flat=True).get() == "open"
        assert rows.filter(project__name="open").count() == 1


# --- questions written out --------------------------------------------------------------------------------------------

IN_FORCE = Question("SELECT current_setting('app.tenant_id', true), current_setting('app.subject_id', true)")
KNOWN = Question("SELECT count(*) FROM accounts_subject")


def test_a_question_by_itself_sees_its_tenant_alone_and_leaves_no_setting(acme, zenith):
    acme.person("mia")

    assert ask_alone(acme.id, KNOWN) == [(1,)]
    assert ask_alone(acme.id, IN_FORCE) == [(str(acme.id), "")]
    assert ask(IN_FORCE) in ([[("", "")]], [[(None, None)]])
    with pytest.raises(ScopeMissing):
        ask(KNOWN)


def test_a_question_by_itself_is_asked_outside_any_scope_and_transaction(acme):
    with scope(acme.id), pytest.raises(ScopeConflict):
        ask_alone(acme.id, KNOWN)
    with transaction.atomic(), pytest.raises(ScopeConflict):
        ask_alone(acme.id, KNOWN)


def test_questions_in_one_message_are_answered_in_order(acme):
    with scope(acme.id):
        assert ask(Question("SELECT %s::int", (1,)), KNOWN, Question("SELECT %s", ("; x",))) == [
            [(1,)],
            [(0,)],
            [("; x",)],
        ]


def test_after_a_step_to_the_end_no_table_can_be_named(mia):
    with scope(mia.world.id):
        with narrow(mia.id, to_the_end=True):
            assert ask(IN_FORCE) == [[(str(mia.world.id), str(mia.id))]]
        with pytest.raises(ScopeMissing):
            ask(KNOWN)
        with pytest.raises(ScopeMissing):
            Subject.objects.count()
    assert ask(IN_FORCE) in ([[("", "")]], [[(None, None)]])
