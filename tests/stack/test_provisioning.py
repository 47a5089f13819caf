import json

import psycopg
import pytest

from config.stack import StackError, provision
from config.stack.environment import database_url
from config.stack.external import provision_external
from config.stack.state import state_folder


@pytest.fixture(scope="module")
def admin(running):
    with psycopg.connect(running.environment()["ADMIN_DATABASE_URL"], autocommit=True) as connection:
        yield connection


def connect_as(running, role, database):
    environment = running.environment()
    login = next(url for url in environment.values() if f"//{role}:" in url)
    return psycopg.connect(login, dbname=database)


def test_roles_have_the_designed_attributes(admin):
    rows = admin.execute(
        "SELECT rolname, rolcanlogin, rolinherit, rolbypassrls,"
        " rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication"
        " FROM pg_roles WHERE rolname LIKE 'fmn%' ORDER BY rolname"
    ).fetchall()

    assert rows == [
        ("fmn_app", True, True, False, False),
        ("fmn_audit", True, True, False, False),
        ("fmn_backup", True, True, True, False),
        ("fmn_keys", True, True, False, False),
        ("fmn_migrate", True, False, False, False),
        ("fmn_owner", False, True, False, False),
        ("fmn_relay", True, True, False, False),
        ("fmn_sealer", True, True, False, False),
    ]


def test_only_the_migrating_role_may_act_as_the_owner(admin):
    rows = admin.execute(
        "SELECT member::regrole::text, inherit_option, set_option, admin_option"
        " FROM pg_auth_members WHERE roleid = 'fmn_owner'::regrole"
    ).fetchall()

    assert rows == [("fmn_migrate", False, True, False)]


def test_backup_reads_everything_and_writes_nothing(admin):
    rows = admin.execute(
        "SELECT roleid::regrole::text FROM pg_auth_members WHERE member = 'fmn_backup'::regrole"
    ).fetchall()

    assert rows == [("pg_read_all_data",)]
    assert settings_of(admin, "fmn_backup") == ["default_transaction_read_only=on"]


@pytest.mark.parametrize("role", ["fmn_app", "fmn_audit", "fmn_relay", "fmn_keys"])
def test_serving_roles_have_limits(admin, role):
    assert settings_of(admin, role) == [
        "idle_in_transaction_session_timeout=60s",
        "lock_timeout=10s",
        "statement_timeout=30s",
        "transaction_timeout=60s",
    ]


@pytest.mark.parametrize("role", ["fmn_migrate", "fmn_owner", "fmn_sealer"])
def test_other_roles_have_no_limits(admin, role):
    assert settings_of(admin, role) == []


def settings_of(admin, role):
    [[settings]] = admin.execute("SELECT rolconfig FROM pg_roles WHERE rolname = %s", [role])
    return sorted(settings or [])


def test_each_role_connects_to_its_databases_only(admin):
    rows = admin.execute(
        "SELECT datname, array_agg(rolname::text ORDER BY rolname) FROM pg_database, pg_roles"
        " WHERE datname LIKE 'forgetmenot%' AND rolname LIKE 'fmn%'"
        " AND has_database_privilege(rolname, datname, 'CONNECT') GROUP BY datname ORDER BY datname"
    ).fetchall()

    assert rows == [
        ("forgetmenot", ["fmn_app", "fmn_audit", "fmn_backup", "fmn_migrate", "fmn_relay", "fmn_sealer"]),
        ("forgetmenot_keys", ["fmn_backup", "fmn_keys", "fmn_migrate"]),
    ]


@pytest.mark.parametrize(
    ("role", "database"),
    [
        ("fmn_app", "forgetmenot_keys"),
        ("fmn_audit", "forgetmenot_keys"),
        ("fmn_relay", "forgetmenot_keys"),
        ("fmn_sealer", "forgetmenot_keys"),
        ("fmn_keys", "forgetmenot"),
    ],
)
def test_the_other_database_is_closed(running, role, database):
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        connect_as(running, role, database)


def test_a_wrong_password_is_refused(running):
    wrong = database_url(
        running.environment()["ADMIN_DATABASE_URL"], user="fmn_app", password="guess", database="forgetmenot"
    )

    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(wrong)


@pytest.mark.parametrize("role", ["fmn_app", "fmn_audit", "fmn_relay", "fmn_sealer", "fmn_migrate"])
def test_no_login_role_makes_tables(running, role):
    with (
        connect_as(running, role, "forgetmenot") as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for schema public"),
    ):
        connection.execute("CREATE TABLE public.mine (a int)")


def test_migrating_role_makes_tables_as_the_owner(running):
    with connect_as(running, "fmn_migrate", "forgetmenot") as connection:
        connection.execute("SET ROLE fmn_owner")
        connection.execute("CREATE TABLE public.owned (a int)")
        [[owner]] = connection.execute("SELECT tableowner FROM pg_tables WHERE tablename = 'owned'")
        connection.rollback()

    assert owner == "fmn_owner"


def test_provisioning_again_is_harmless_and_repairs(running, admin):
    environment = running.environment()
    passwords = json.loads(running.state.secrets_file.read_bytes())
    admin.execute("ALTER ROLE fmn_app BYPASSRLS")
    admin.execute("GRANT CONNECT ON DATABASE forgetmenot_keys TO PUBLIC")

    provision(environment["ADMIN_DATABASE_URL"], environment["KEYS_ADMIN_DATABASE_URL"], passwords)

    [[bypasses]] = admin.execute("SELECT rolbypassrls FROM pg_roles WHERE rolname = 'fmn_app'")
    assert bypasses is False
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        connect_as(running, "fmn_app", "forgetmenot_keys")


def test_external_provisioning_writes_addresses_that_work(used, folder, capsys):
    outside = used.start()
    state = state_folder(folder / "elsewhere", folder / "elsewhere-key")
    environ = {"ADMIN_DATABASE_URL": outside["ADMIN_DATABASE_URL"]}

    provision_external(environ, state)
    first = state.external_environment_file.read_text()
    provision_external(environ, state)

    written = dict(line.split("=", 1) for line in first.splitlines())
    with psycopg.connect(written["DATABASE_URL"].strip("'")) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("fmn_app",)
    assert state.external_environment_file.read_text() == first
    assert state.external_environment_file.stat().st_mode & 0o777 == 0o600
    assert str(state.external_environment_file) in capsys.readouterr().out


def test_external_provisioning_needs_an_administrator(folder):
    with pytest.raises(StackError, match="ADMIN_DATABASE_URL"):
        provision_external({}, state_folder(folder / "state", folder / "key"))
