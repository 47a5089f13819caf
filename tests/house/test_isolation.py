"""Through every table with row security, as the application's role by raw SQL: nothing outside the scope is reached."""

import psycopg
import pytest
from uuid_utils.compat import uuid7

from tests.house.filled import fill
from tests.house.walls import (
    Setting,
    blind_spots,
    enter,
    guarded_tables,
    leaks_of_changing,
    leaks_of_inserting,
    leaks_of_reading,
    truth_of,
    visible,
)

KEYS_DATABASE = "forgetmenot_keys"
SCOPES = {
    "no scope": lambda f: Setting(),
    "another tenant": lambda f: Setting(tenant_id=str(uuid7()), subject_id="*"),
    "the tenant's own rows": lambda f: Setting(str(f.acme.id)),
    "everybody of the tenant": lambda f: Setting(str(f.acme.id), "*"),
    "mia": lambda f: Setting(str(f.acme.id), str(f.mia.id)),
    "mia by her pseudonym": lambda f: Setting(str(f.acme.id), str(f.mia.id), subject_pseudonym=f.pseudonyms["mia"]),
    "noa by her pseudonym": lambda f: Setting(str(f.acme.id), str(f.noa.id), subject_pseudonym=f.pseudonyms["noa"]),
    "a person of another tenant": lambda f: Setting(
        str(f.acme.id), str(f.stranger.id), subject_pseudonym=f.pseudonyms["stranger"]
    ),
    "a person without a tenant": lambda f: Setting("", str(f.mia.id), subject_pseudonym=f.pseudonyms["mia"]),
    "everybody without a tenant": lambda f: Setting("", "*"),
    "a member of both tenants": lambda f: Setting(str(f.acme.id), "*", user_id=str(f.ada)),
    "a member without a tenant": lambda f: Setting("", "", user_id=str(f.ada)),
}


@pytest.fixture(scope="module")
def filled(connect_as):
    with connect_as("fmn_audit") as audit:
        return fill(audit)


@pytest.fixture(params=SCOPES)
def scope(request, filled):
    return SCOPES[request.param](filled)


@pytest.fixture(params=[("fmn_app", ""), ("fmn_keys", KEYS_DATABASE)], ids=["data", "keys"])
def databases(request, connect_as):
    """(as the serving role, as the superuser) of the data database, then of the keys database."""
    role, database = request.param
    with connect_as(role) as serving, connect_as("postgres", database) as superuser:
        yield serving, superuser
        serving.rollback()


def test_tables_all_hold_rows_of_both_tenants(databases, filled):
    _, superuser = databases

    tenants = {
        table.name: {row.tenant for row in truth_of(superuser, table, filled.tenants).counts}
        for table in guarded_tables(superuser)
    }

    both = {str(filled.acme.id), str(filled.zenith.id)}
    assert tenants != {}
    assert [name for name, found in tenants.items() if not both <= found] == []


def test_tables_about_people_all_hold_rows_of_each_of_them(databases, filled):
    _, superuser = databases

    for table in guarded_tables(superuser):
        found = truth_of(superuser, table, filled.tenants).counts
        if "subject_id" in table.columns:
            people = {(row.tenant, row.subject) for row in found}
            assert (str(filled.acme.id), str(filled.mia.id)) in people, table.name
            assert (str(filled.acme.id), str(filled.noa.id)) in people, table.name
            assert (str(filled.zenith.id), str(filled.stranger.id)) in people, table.name
        if table.rule in ("ledger", "log") and not table.partition_of:
            pseudonyms = {row.pseudonym for row in found}
            assert set(filled.pseudonyms.values()) <= pseudonyms


def test_tables_that_may_be_about_nobody_hold_rows_of_nobody(connect_as, filled):
    with connect_as("postgres") as superuser:
        optional = {
            table.name
            for table in guarded_tables(superuser)
            if "subject_id" in table.columns
            and any(row.subject is None for row in truth_of(superuser, table, [filled.acme.id]).counts)
        }

    assert optional == {"accounts_idempotencyrecord", "accounts_job", "accounts_outboxentry"}


def test_reading_shows_nothing_outside_the_scope(databases, filled, scope):
    serving, superuser = databases

    leaks = [leak for table in guarded_tables(superuser) for leak in leaks_of_reading(serving, table, scope)]

    assert leaks == []


def test_reading_shows_all_that_is_in_the_scope(databases, filled, scope):
    serving, superuser = databases
    tables = [table for table in guarded_tables(superuser) if not table.partition_of]

    hidden = [
        blind
        for table in tables
        for blind in blind_spots(serving, table, truth_of(superuser, table, filled.tenants), scope)
    ]

    assert hidden == []


def test_changing_reaches_nothing_outside_the_scope(databases, filled, scope):
    serving, superuser = databases

    leaks = [
        leak
        for table in guarded_tables(superuser)
        for leak in leaks_of_changing(serving, table, truth_of(superuser, table, filled.tenants), scope)
    ]

    assert leaks == []


def test_inserting_takes_nothing_outside_the_scope(databases, filled, scope):
    serving, superuser = databases

    leaks = [
        leak
        for table in guarded_tables(superuser)
        for leak in leaks_of_inserting(serving, table, truth_of(superuser, table, filled.tenants), scope)
    ]

    assert leaks == []


def test_reading_without_ever_setting_a_scope_shows_nothing(databases, filled):
    serving, superuser = databases
    readable = [table for table in guarded_tables(superuser) if not table.partition_of]

    shown = {table.name: visible(serving, table) for table in readable}

    assert serving.execute("SELECT current_setting('app.tenant_id', true)").fetchone() == (None,)
    assert shown == {table.name: {} for table in readable}


def test_partitions_of_the_log_are_nobodys_to_name(connect_as, filled):
    with connect_as("postgres") as superuser:
        partitions = [table.name for table in guarded_tables(superuser) if table.partition_of]

    assert len(partitions) == 14
    with connect_as("fmn_app", autocommit=True) as serving:
        for name in partitions:
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match=f"permission denied for table {name}"):
                serving.execute(f"SELECT count(*) FROM {name}")


def test_membership_of_another_tenant_cannot_be_moved_or_ended(connect_as, filled):
    """A member may see where else they belong; from here they may not change it."""
    at_zenith = f"WHERE user_id = '{filled.ada}' AND tenant_id = '{filled.zenith.id}'"
    with connect_as("fmn_app") as serving:
        enter(serving, Setting(str(filled.acme.id), user_id=str(filled.ada)))
        seen = serving.execute(f"SELECT role FROM accounts_membership {at_zenith}").fetchall()
        changed = serving.execute(f"UPDATE accounts_membership SET role = 'auditor' {at_zenith}").rowcount
        moved = serving.execute(f"UPDATE accounts_membership SET tenant_id = '{uuid7()}' {at_zenith}").rowcount
        ended = serving.execute(f"DELETE FROM accounts_membership {at_zenith}").rowcount
        serving.rollback()

    assert (seen, changed, moved, ended) == ([("owner",)], 0, 0, 0)


# --- the settings themselves ------------------------------------------------------------------------------------------


def test_setting_reads_empty_after_the_commit_and_shows_nothing(connect_as, filled):
    count = "SELECT count(*) FROM memory_memory"
    with connect_as("fmn_app") as reused:
        enter(reused, Setting(str(filled.acme.id), "*"))
        within = reused.execute(count).fetchone()
        reused.commit()
        left = reused.execute("SELECT current_setting('app.tenant_id', true), current_setting('app.subject_id', true)")
        assert left.fetchone() == ("", "")
        after = reused.execute(count).fetchone()

    assert (within, after) == ((4,), (0,))


def test_setting_reads_empty_after_a_rollback_and_shows_nothing(connect_as, filled):
    with connect_as("fmn_app") as reused:
        enter(reused, Setting(str(filled.acme.id), "*"))
        reused.rollback()

        assert reused.execute("SELECT count(*) FROM memory_memory").fetchone() == (0,)


def test_setting_outside_a_transaction_has_no_effect(connect_as, filled):
    with connect_as("fmn_app", autocommit=True) as outside:
        enter(outside, Setting(str(filled.acme.id), "*"))

        assert outside.execute("SELECT count(*) FROM memory_memory").fetchone() == (0,)


def test_setting_that_is_no_uuid_is_an_error_and_not_a_scope(connect_as, filled):
    with connect_as("fmn_app") as serving:
        enter(serving, Setting("x' OR true --", "*"))

        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            serving.execute("SELECT count(*) FROM memory_memory")


def test_keys_of_another_tenant_are_not_seen_through_the_application(connect_as, filled):
    """The data role cannot reach the keys database at all, nor the keys role the data."""
    with connect_as("fmn_keys") as keys:
        enter(keys, Setting(str(filled.acme.id)))
        tenants = {row[0] for row in keys.execute("SELECT DISTINCT tenant_id FROM accounts_wrappedkey")}

    assert tenants == {filled.acme.id}


@pytest.mark.parametrize(("role", "other"), [("fmn_app", KEYS_DATABASE), ("fmn_keys", "forgetmenot")])
def test_role_cannot_connect_to_the_other_database(stack, role, other):
    address = f"{stack.url(role).rpartition('/')[0]}/{other}"

    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(address)
