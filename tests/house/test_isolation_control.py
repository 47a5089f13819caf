"""The control of test_isolation: without the wall, its checks find a leak in every table. Always rolled back."""

from collections import Counter

import pytest

from tests.house.filled import fill
from tests.house.walls import (
    Setting,
    become,
    blind_spots,
    guarded_tables,
    leaks_of_changing,
    leaks_of_inserting,
    leaks_of_reading,
    truth_of,
    visible,
)

KEYS_DATABASE = "forgetmenot_keys"
OPEN_POLICY = "CREATE POLICY hole ON {table} USING (true) WITH CHECK (true)"
TENANT_ONLY = "tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid)"


@pytest.fixture(scope="module")
def filled(connect_as):
    with connect_as("fmn_audit") as audit:
        return fill(audit)


class Breach:
    """A superuser's transaction in which walls are taken down and the serving role tries what it could not before."""

    def __init__(self, superuser, role, tenants):
        self.connection, self.role = superuser, role
        self.tables = guarded_tables(superuser)
        self.truth = {table.name: truth_of(superuser, table, tenants) for table in self.tables}

    def alter(self, statement, *, only=None):
        for table in self.tables:
            if only is None or only(table):
                self.connection.execute(statement.format(table=table.name, role=self.role))

    def drop_policies(self):
        found = self.connection.execute("SELECT polrelid::regclass::text, polname FROM pg_policy").fetchall()
        for table, policy in found:
            self.connection.execute(f'DROP POLICY "{policy}" ON {table}')

    def leaky(self, scope):
        """The tables in which reading, changing and inserting each find a leak."""
        return {
            "reading": [table.name for table in self.tables if leaks_of_reading(self.connection, table, scope)],
            "changing": [
                table.name
                for table in self.tables
                if leaks_of_changing(self.connection, table, self.truth[table.name], scope)
            ],
            "inserting": [
                table.name
                for table in self.tables
                if leaks_of_inserting(self.connection, table, self.truth[table.name], scope)
            ],
        }


@pytest.fixture(params=[("fmn_app", ""), ("fmn_keys", KEYS_DATABASE)], ids=["data", "keys"])
def breach(request, connect_as, filled):
    role, database = request.param
    with connect_as("postgres", database) as superuser:
        yield Breach(superuser, role, filled.tenants)
        superuser.rollback()


@pytest.fixture
def data_breach(connect_as, filled):
    with connect_as("postgres") as superuser:
        yield Breach(superuser, "fmn_app", filled.tenants)
        superuser.rollback()


def everywhere(breach):
    names = [table.name for table in breach.tables]
    return {"reading": names, "changing": names, "inserting": names}


def test_disabled_security_leaks_in_every_table(breach, filled):
    breach.alter("ALTER TABLE {table} DISABLE ROW LEVEL SECURITY; GRANT ALL ON {table} TO {role}")
    become(breach.connection, breach.role)

    assert breach.leaky(Setting(str(filled.acme.id), "*")) == everywhere(breach)
    assert breach.leaky(Setting()) == everywhere(breach)


def test_open_policy_leaks_in_every_table(breach, filled):
    breach.alter(OPEN_POLICY + "; GRANT ALL ON {table} TO {role}")
    become(breach.connection, breach.role)

    assert breach.leaky(Setting(str(filled.acme.id), "*")) == everywhere(breach)


def test_dropped_policies_hide_every_table(breach, filled):
    """Without policies the tables stay locked: what fails then is the check that a scope sees its own."""
    breach.drop_policies()
    breach.alter("GRANT ALL ON {table} TO {role}")
    become(breach.connection, breach.role)
    scope = Setting(str(filled.acme.id), "*")

    blind = [
        table.name for table in breach.tables if blind_spots(breach.connection, table, breach.truth[table.name], scope)
    ]

    assert blind == [table.name for table in breach.tables]


def test_policy_that_forgets_the_person_leaks_in_every_table_about_people(data_breach, filled):
    scope = Setting(str(filled.acme.id), str(filled.noa.id), subject_pseudonym=filled.pseudonyms["noa"])
    about_people = [table for table in data_breach.tables if table.rule in ("person", "ledger")]
    data_breach.drop_policies()
    data_breach.alter(f"CREATE POLICY tenant_only ON {{table}} USING ({TENANT_ONLY})", only=about_people.__contains__)
    data_breach.alter("GRANT ALL ON {table} TO {role}", only=about_people.__contains__)
    data_breach.tables = about_people
    become(data_breach.connection, "fmn_app")

    leaks = data_breach.leaky(scope)

    assert leaks == everywhere(data_breach)
    assert [table.name for table in about_people] == [
        "accounts_idempotencyrecord",
        "accounts_job",
        "accounts_outboxentry",
        "accounts_portalpass",
        "consent_consentevent",
        "consent_consentstate",
        "memory_indexsegment",
        "memory_lineage",
        "memory_memory",
        "memory_profileentry",
        "memory_session",
    ]


def test_policy_that_ignores_the_pseudonym_leaks_the_log(data_breach, filled):
    log = [table for table in data_breach.tables if table.name == "audit_event"]
    data_breach.connection.execute(f"CREATE POLICY tenant_only ON audit_event FOR SELECT USING ({TENANT_ONLY})")
    become(data_breach.connection, "fmn_app")

    leaks = leaks_of_reading(data_breach.connection, log[0], Setting(str(filled.acme.id), str(filled.noa.id)))

    assert leaks != []


def test_owner_sees_nothing_while_security_is_forced(breach):
    become(breach.connection, "fmn_owner")

    shown = {table.name: visible(breach.connection, table) for table in breach.tables}

    assert shown == {table.name: Counter() for table in breach.tables}


def test_owner_sees_every_table_once_security_is_not_forced(breach):
    breach.alter("ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    become(breach.connection, "fmn_owner")

    hidden = {
        table.name: breach.truth[table.name].counts - visible(breach.connection, table) for table in breach.tables
    }

    assert hidden == {table.name: Counter() for table in breach.tables}


def test_breach_leaves_the_walls_standing(breach, connect_as):
    """The control must not be what opens the door: after its rollback the catalogue is what it was."""
    breach.alter("ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
    breach.drop_policies()
    breach.connection.rollback()

    assert guarded_tables(breach.connection) == breach.tables
