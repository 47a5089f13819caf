"""The part of the database: who may read and write the log, and that nobody may alter it. Role by role."""

from datetime import UTC, datetime

import psycopg
import pytest
from psycopg import errors, sql
from uuid_utils.compat import uuid7

MIA, NOA = "a1" * 32, "b2" * 32
COLUMNS = {
    "at": datetime(2026, 11, 30, tzinfo=UTC),
    "actor_kind": "system",
    "actor_id": "setup",
    "actor_on_behalf_of": "",
    "action": "audit.sample.read",
    "resource_kind": "sample",
    "resource_ids": [],
    "subject_pseudonym": "",
    "purposes": [],
    "consent_refs": [],
    "decision": "",
    "reason": "",
    "request_id": "",
    "counts": "{}",
    "result": "ok",
    "canonical": b"{}",
}


def insert(connection, tenant_id, *, table="audit_event", **changed):
    row = {"id": uuid7(), "tenant_id": tenant_id} | COLUMNS | changed
    connection.execute(
        sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, row)),
            sql.SQL(", ").join(sql.Placeholder() * len(row)),
        ),
        list(row.values()),
    )
    return row["id"]


def enter(connection, tenant_id, *, subject="", pseudonym=""):
    connection.execute(
        "SELECT set_config('app.tenant_id', %s, true), set_config('app.subject_id', %s, true),"
        " set_config('app.subject_pseudonym', %s, true)",
        [str(tenant_id), str(subject), pseudonym],
    )


def ids_seen(connection):
    return [row[0] for row in connection.execute("SELECT id FROM audit_event ORDER BY id")]


@pytest.fixture
def app(connect_as):
    with connect_as("fmn_app") as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def admin(connect_as):
    with connect_as("postgres") as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def written(connect_as, tenant):
    """Events of the tenant about Mia, about Noa, about nobody; committed by the audit role, like a read's."""
    with connect_as("fmn_audit") as audit:
        return [insert(audit, tenant.id, subject_pseudonym=pseudonym) for pseudonym in (MIA, NOA, "")]


@pytest.fixture
def partition_name(admin, written):
    (name,) = admin.execute("SELECT tableoid::regclass::text FROM audit_event WHERE id = %s", [written[0]]).fetchone()
    admin.rollback()
    return name


# --- reading


@pytest.mark.parametrize("tenant_setting", ["", None])
def test_without_a_scope_there_is_nothing(app, written, tenant_setting):
    if tenant_setting is not None:
        enter(app, tenant_setting)

    assert ids_seen(app) == []


def test_another_tenants_scope_sees_nothing(app, written):
    enter(app, uuid7())

    assert ids_seen(app) == []


@pytest.mark.parametrize("subject", ["", "*"])
def test_the_tenants_desk_sees_all_of_the_tenants(app, written, tenant, subject):
    enter(app, tenant.id, subject=subject)

    assert ids_seen(app) == written


def test_a_person_sees_only_the_own_pseudonym(app, written, tenant):
    enter(app, tenant.id, subject=uuid7(), pseudonym=MIA)

    assert ids_seen(app) == [written[0]]


def test_a_person_without_a_pseudonym_sees_nothing_not_even_what_concerns_nobody(app, written, tenant):
    enter(app, tenant.id, subject=uuid7())

    assert ids_seen(app) == []


def test_a_scope_ends_with_its_transaction(app, written, tenant):
    enter(app, tenant.id)
    app.commit()

    assert ids_seen(app) == []


def test_the_audit_role_cannot_read(connect_as, written):
    with connect_as("fmn_audit") as audit, pytest.raises(errors.InsufficientPrivilege):
        audit.execute("SELECT id FROM audit_event")


def test_the_relay_role_has_nothing_to_do_here(connect_as):
    with connect_as("fmn_relay") as relay, pytest.raises(errors.InsufficientPrivilege):
        relay.execute("SELECT id FROM audit_event")


def test_the_sealer_sees_every_tenant(connect_as, written):
    other = uuid7()
    with connect_as("fmn_audit") as audit:
        foreign = insert(audit, other)
    with connect_as("fmn_sealer") as sealer:
        seen = ids_seen(sealer)

    assert {*written, foreign} <= set(seen)


@pytest.mark.parametrize("role", ["fmn_app", "fmn_audit", "fmn_sealer", "fmn_relay"])
def test_a_partition_cannot_be_read_directly(connect_as, partition_name, tenant, role):
    with connect_as(role) as connection:
        enter(connection, tenant.id)
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute(sql.SQL("SELECT id FROM {}").format(sql.Identifier(partition_name)))


def test_a_partition_granted_by_mistake_still_shows_nothing(admin, connect_as, partition_name, tenant):
    table = sql.Identifier(partition_name)
    admin.execute(sql.SQL("GRANT SELECT ON {} TO fmn_app").format(table))
    admin.execute("SET LOCAL ROLE fmn_app")  # in this transaction, which is rolled back
    enter(admin, tenant.id)

    assert admin.execute(sql.SQL("SELECT id FROM {}").format(table)).fetchall() == []


def test_the_owner_sees_nothing_either(admin, written, tenant):
    admin.execute("SET LOCAL ROLE fmn_owner")
    enter(admin, tenant.id)

    assert ids_seen(admin) == []


# --- writing


def test_the_application_writes_its_own_tenants_events(app, tenant):
    enter(app, tenant.id)

    event = insert(app, tenant.id)

    assert ids_seen(app) == [event]


@pytest.mark.parametrize("scoped", [True, False])
def test_an_event_of_another_tenant_is_refused(app, tenant, scoped):
    if scoped:
        enter(app, tenant.id)

    with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
        insert(app, uuid7())


def test_the_audit_role_cannot_have_anything_returned(connect_as, tenant):
    with connect_as("fmn_audit") as audit, pytest.raises(errors.InsufficientPrivilege):
        audit.execute("INSERT INTO audit_event (id, tenant_id) VALUES (%s, %s) RETURNING xid", [uuid7(), tenant.id])


@pytest.mark.parametrize("role", ["fmn_app", "fmn_audit"])
@pytest.mark.parametrize("position", [{"xid": "1"}, {"epoch": 99}])
def test_nobody_chooses_the_place_in_the_sealers_order(connect_as, tenant, role, position):
    with connect_as(role) as connection:
        enter(connection, tenant.id)
        with pytest.raises(errors.InsufficientPrivilege):
            insert(connection, tenant.id, **position)


def test_a_temporary_table_cannot_stand_in_for_the_epochs(connect_as, tenant):
    with connect_as("postgres") as admin:
        admin.execute("CREATE TEMPORARY TABLE audit_epoch (epoch int)")
        admin.execute("INSERT INTO pg_temp.audit_epoch VALUES (99)")
        admin.execute("SET search_path = pg_temp, public")

        assert admin.execute("SELECT public.audit_current_epoch()").fetchone() == (1,)


@pytest.mark.parametrize("role", ["fmn_app", "fmn_audit"])
def test_nobody_begins_an_epoch(connect_as, role):
    with connect_as(role) as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute("INSERT INTO audit_epoch (epoch, reason) VALUES (2, 'restored')")


@pytest.mark.parametrize("role", ["fmn_app", "fmn_audit"])
def test_a_partition_cannot_be_written_directly(connect_as, partition_name, tenant, role):
    with connect_as(role) as connection:
        enter(connection, tenant.id)
        with pytest.raises(errors.InsufficientPrivilege):
            insert(connection, tenant.id, table=partition_name)


@pytest.mark.parametrize(
    "changed",
    [
        {"actor_id": "mia@example.com"},
        {"actor_id": "Mia"},
        {"actor_kind": "person", "actor_id": "mia"},
        {"actor_kind": "user", "actor_id": "mia"},
        {"actor_on_behalf_of": "mia"},
        {"action": "peanuts"},
        {"action": "a.b.c d"},
        {"resource_kind": "peanut allergy"},
        {"subject_pseudonym": "mia"},
        {"purposes": ["mia is allergic"]},
        {"consent_refs": ["she said yes"]},
        {"decision": "maybe"},
        {"reason": "She said yes"},
        {"reason": "x" * 41},
        {"request_id": "mia@example.com"},
        {"counts": '{"items": "peanuts"}'},
        {"counts": '{"mia@example.com": 1}'},
        {"counts": '{"items": [1]}'},
        {"counts": '["peanuts"]'},
        {"result": "peanuts"},
        {"canonical": b""},
        {"canonical": b" " * (2**20 + 1)},
    ],
)
def test_free_text_is_refused_by_the_table_too(connect_as, tenant, changed):
    with connect_as("fmn_audit") as audit, pytest.raises(errors.CheckViolation):
        insert(audit, tenant.id, **changed)


def test_the_tables_patterns_accept_all_an_event_may_hold(app, tenant):
    enter(app, tenant.id)

    event = insert(
        app,
        tenant.id,
        actor_kind="person",
        actor_id=MIA,
        actor_on_behalf_of=str(uuid7()),
        purposes=["memory.store", "improve"],
        consent_refs=[str(uuid7()), NOA],
        counts='{"tokens": 0, "items": 9007199254740991}',
        request_id="Req_1-a",
        reason="x" * 40,
    )

    assert ids_seen(app) == [event]


# --- altering

CHANGES = [
    "UPDATE audit_event SET reason = 'forged'",
    "DELETE FROM audit_event",
    "TRUNCATE audit_event",
    "MERGE INTO audit_event AS e USING (SELECT 1) AS o ON true WHEN MATCHED THEN DELETE",
    "ALTER TABLE audit_event DISABLE TRIGGER ALL",
    "ALTER TABLE audit_event DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE audit_event DETACH PARTITION audit_event_default",
    "DROP TABLE audit_event_default",
    "DROP TABLE audit_event",
    "DROP POLICY app_reads ON audit_event",
    "DROP FUNCTION audit_refuse_change() CASCADE",
    "CREATE POLICY open ON audit_event USING (true)",
    "CREATE OR REPLACE FUNCTION public.audit_current_epoch() RETURNS int LANGUAGE sql RETURN 0",
    "SELECT audit_create_partitions(24)",
    "SELECT audit_guard_table('audit_event_default')",
    "SET session_replication_role = replica",
    "SET ROLE fmn_owner",
    "LOCK TABLE audit_event IN ACCESS EXCLUSIVE MODE",
]


@pytest.mark.parametrize("statement", CHANGES)
@pytest.mark.parametrize("role", ["fmn_app", "fmn_audit", "fmn_sealer"])
def test_no_serving_role_can_alter_the_log(connect_as, written, tenant, role, statement):
    with connect_as(role) as connection:
        enter(connection, tenant.id)
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute(statement)


@pytest.mark.parametrize("replication_role", ["origin", "replica"])
@pytest.mark.parametrize("target", ["audit_event", "partition"])
@pytest.mark.parametrize("change", ["UPDATE {} SET reason = 'forged'", "DELETE FROM {}", "TRUNCATE {}"])
def test_the_triggers_stop_even_a_superuser(admin, partition_name, change, target, replication_role):
    table = sql.Identifier(partition_name if target == "partition" else target)
    admin.execute(sql.SQL("SET LOCAL session_replication_role = {}").format(sql.Literal(replication_role)))

    with pytest.raises(psycopg.DatabaseError, match="the audit log is append-only"):
        admin.execute(sql.SQL(change).format(table))


@pytest.mark.parametrize(
    "change", ["UPDATE audit_epoch SET epoch = 7", "DELETE FROM audit_epoch", "TRUNCATE audit_epoch"]
)
def test_epochs_cannot_be_rewritten(admin, change):
    with pytest.raises(psycopg.DatabaseError, match="the audit log is append-only"):
        admin.execute(change)


# --- partitions


def test_every_partition_is_guarded_from_birth(admin):
    admin.execute("SET LOCAL ROLE fmn_owner")
    admin.execute("SELECT audit_create_partitions(15)")  # some of these are new; all is rolled back
    partitions = admin.execute("""
        SELECT c.relname, relrowsecurity AND relforcerowsecurity,
               NOT EXISTS (SELECT FROM aclexplode(relacl) AS entry WHERE entry.grantee <> relowner),
               (SELECT count(*) FROM pg_policy WHERE polrelid = c.oid),
               (SELECT array_agg(tgname || ' ' || tgenabled::text ORDER BY tgname)
                FROM pg_trigger WHERE tgrelid = c.oid AND tgname LIKE 'audit%')
        FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'audit_event'::regclass
    """).fetchall()

    unguarded = [
        name
        for name, forced, private, policies, triggers in partitions
        if not (forced and private and policies == 0 and triggers == ["audit_no_change A", "audit_no_truncate A"])
    ]
    assert unguarded == []
    assert len(partitions) >= 17  # sixteen months and the default


def test_a_year_ahead_has_its_months_and_making_them_again_makes_none(admin):
    admin.execute("SET LOCAL ROLE fmn_owner")
    months = admin.execute("""
        SELECT to_char(date_trunc('month', now() AT TIME ZONE 'UTC') + n * interval '1 month', 'YYYY_MM')
        FROM generate_series(0, 12) AS n
    """).fetchall()

    present = [admin.execute("SELECT to_regclass(%s)", [f"audit_event_{m}"]).fetchone()[0] for (m,) in months]

    assert None not in present
    assert admin.execute("SELECT audit_create_partitions(12)").fetchall() == []


def test_a_partition_holds_the_ids_of_its_month(admin):
    bounds = admin.execute("SELECT audit_first_id_at('2026-12-01T00:00:00Z')::text").fetchone()

    assert bounds == ("01a22ee6-b000-0000-0000-000000000000",)


def test_a_month_the_default_already_holds_events_of_is_left_to_it(admin, tenant):
    (first_id,) = admin.execute(
        "SELECT audit_first_id_at(date_trunc('month', now() AT TIME ZONE 'UTC') + interval '13 months')"
    ).fetchone()
    insert(admin, tenant.id, id=first_id)
    admin.execute("SET LOCAL ROLE fmn_owner")

    created = admin.execute("SELECT audit_create_partitions(14)").fetchall()

    assert len(created) == 1  # the fourteenth; the thirteenth holds the early event
