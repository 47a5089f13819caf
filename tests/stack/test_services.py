import os
import signal
import socket
import stat
import subprocess
import sys
import threading

import psycopg
import pytest
import redis

from config.stack import EmbeddedServices, StackError


def query(url, statement):
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()


def keep_a_row(services):
    admin = services.environment()["ADMIN_DATABASE_URL"]
    with psycopg.connect(admin) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
        connection.execute("CREATE TABLE kept (note text)")
        connection.execute("INSERT INTO kept VALUES ('still here')")


def kept_rows(services):
    return query(services.environment()["ADMIN_DATABASE_URL"], "SELECT note FROM kept")


def same_state(services):
    return EmbeddedServices(services.state.path, root_key_dir=services.state.root_key_file.parent)


def test_fresh_start_gives_a_working_environment(fresh):
    environment = fresh.start()

    assert sorted(environment) == [
        "ADMIN_DATABASE_URL",
        "AUDIT_DATABASE_URL",
        "BACKUP_DATABASE_URL",
        "DATABASE_MIGRATE_URL",
        "DATABASE_URL",
        "KEYS_ADMIN_DATABASE_URL",
        "KEYS_DATABASE_MIGRATE_URL",
        "KEYS_DATABASE_URL",
        "MAIL_FOLDER",
        "REDIS_URL",
        "RELAY_DATABASE_URL",
        "ROOT_KEY_FILE",
        "SEALER_DATABASE_URL",
        "SECRET_KEY",
    ]
    assert query(environment["DATABASE_URL"], "SELECT '[1,2]'::vector <=> '[1,2]'::vector") == [(0.0,)]
    with redis.Redis.from_url(environment["REDIS_URL"]) as client:
        assert client.ping() is True


def test_secrets_are_readable_by_their_owner_only(running):
    state = running.state
    assert [stat.S_IMODE(file.stat().st_mode) for file in (state.secrets_file, state.root_key_file)] == [
        0o600,
        0o600,
    ]
    assert [stat.S_IMODE(each.stat().st_mode) for each in (state.sockets, state.postgres, state.logs)] == [
        0o700,
        0o700,
        0o700,
    ]


def test_postgres_listens_on_no_port(running):
    admin = running.environment()["ADMIN_DATABASE_URL"]

    assert query(admin, "SHOW listen_addresses") == [("",)]


def test_server_log_holds_no_values_of_failed_statements(running):
    admin = running.environment()["ADMIN_DATABASE_URL"]

    with psycopg.connect(admin) as connection:
        connection.execute("CREATE TEMP TABLE checked (body text CHECK (body = ''))")
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute("INSERT INTO checked VALUES ('a sentence of Mia')")

    logged = running.postgres.log_file.read_text()
    assert "violates check constraint" in logged
    assert "a sentence of Mia" not in logged


def test_second_start_attaches_and_its_stop_leaves_the_servers_running(used):
    used.start()
    keep_a_row(used)
    second = same_state(used)

    environment = second.start()
    second.stop()

    assert environment == used.environment()
    assert kept_rows(used) == [("still here",)]
    assert used.valkey.is_running()


def test_two_starts_at_once_make_one_cluster(fresh):
    second = same_state(fresh)
    starts = [threading.Thread(target=each.start) for each in (fresh, second)]

    for start in starts:
        start.start()
    for start in starts:
        start.join()

    assert sorted([fresh.postgres.is_owned, second.postgres.is_owned]) == [False, True]
    assert fresh.postgres.pid == second.postgres.pid
    second.stop()


def test_another_state_folder_gets_servers_of_its_own(running, used):
    used.start()

    assert used.postgres.pid != running.postgres.pid
    assert used.environment()["DATABASE_URL"] != running.environment()["DATABASE_URL"]


def test_start_after_a_killed_postmaster_keeps_the_data(used):
    used.start()
    keep_a_row(used)

    used.postgres.kill()
    used.start()

    assert kept_rows(used) == [("still here",)]


def test_lock_file_naming_a_foreign_process_is_no_obstacle(used):
    used.start()
    used.stop()
    lock_file = used.state.postgres / "data" / "postmaster.pid"
    lock_file.write_text(f"{os.getpid()}\n")

    used.start()

    assert used.postgres.is_running()


def test_stop_then_start_of_one_server(used):
    used.start()
    keep_a_row(used)

    used.postgres.stop()
    refused = not used.postgres.is_running()
    used.postgres.start()

    assert refused
    assert kept_rows(used) == [("still here",)]


def test_valkey_keeps_its_keys_over_a_kill(used):
    with redis.Redis.from_url(used.start()["REDIS_URL"]) as client:
        client.set("kept", "yes")
        client.execute_command("WAITAOF", 1, 0, 5000)

        used.valkey.kill()
        used.valkey.start()

        assert client.get("kept") == b"yes"


def test_stale_socket_is_replaced(used):
    used.start()
    used.stop()
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(used.state.sockets / "v.sock"))

    environment = used.start()

    with redis.Redis.from_url(environment["REDIS_URL"]) as client:
        assert client.ping() is True


def test_unfinished_folders_are_replaced_and_what_may_be_somebodys_is_kept(fresh, capsys):
    draft, data = (fresh.state.postgres / name for name in ("data.new", "data"))
    for each in (draft, data):
        each.mkdir(parents=True)
        (each / "something").write_text("left by somebody")

    fresh.start()

    [aside] = fresh.state.postgres.glob("data.unfinished-*")
    assert fresh.postgres.is_running()
    assert not draft.exists()
    assert (aside / "something").read_text() == "left by somebody"
    assert str(aside) in capsys.readouterr().out


def pretend_a_cluster(services):
    version_file = services.state.postgres / "data" / "PG_VERSION"
    version_file.parent.mkdir(parents=True)
    version_file.write_text("18\n")


def test_lost_root_key_is_never_replaced(fresh):
    pretend_a_cluster(fresh)

    with pytest.raises(StackError, match=r"root key .* is missing"):
        fresh.start()

    assert not fresh.state.root_key_file.exists()
    assert not fresh.state.secrets_file.exists()


def test_lost_passwords_are_named(fresh):
    pretend_a_cluster(fresh)
    fresh.state.root_key_file.parent.mkdir()
    fresh.state.root_key_file.write_text("a key")

    with pytest.raises(StackError, match=r"secrets\.json is missing"):
        fresh.start()


STARTS_AND_DIES = """
import os, signal, sys
from pathlib import Path
from config.stack import EmbeddedServices
EmbeddedServices(Path(sys.argv[1]), root_key_dir=Path(sys.argv[2])).start()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_servers_of_a_killed_process_are_ended_and_started_anew(used, capsys):
    paths = [str(used.state.path), str(used.state.root_key_file.parent)]
    died = subprocess.run([sys.executable, "-c", STARTS_AND_DIES, *paths], check=False)
    left = used.postgres.pid

    used.start()

    assert died.returncode == -signal.SIGKILL
    assert used.postgres.is_owned
    assert f"Ending PostgreSQL (process {left}), left by a run that was killed." in capsys.readouterr().out


def test_named_database_and_broker_are_used_instead_of_embedded_ones(running, fresh):
    outside = running.environment()

    environment = EmbeddedServices(
        fresh.state.path, root_key_dir=fresh.state.root_key_file.parent, given=outside
    ).start()

    assert environment["DATABASE_URL"] == outside["DATABASE_URL"]
    assert environment["REDIS_URL"] == outside["REDIS_URL"]
    assert environment["ROOT_KEY_FILE"] == outside["ROOT_KEY_FILE"]
    assert list(fresh.state.postgres.iterdir()) == []
    assert not fresh.state.root_key_file.exists()


def test_half_of_an_outside_database_is_refused(folder):
    given = {"DATABASE_URL": "postgresql://fmn_app@db/forgetmenot", "ROOT_KEY": "a"}

    with pytest.raises(StackError, match="AUDIT_DATABASE_URL"):
        EmbeddedServices(folder / "state", given=given).start()


def test_outside_database_without_a_root_key_is_refused(running, folder):
    given = {name: value for name, value in running.environment().items() if name != "ROOT_KEY_FILE"}

    with pytest.raises(StackError, match="neither ROOT_KEY nor ROOT_KEY_FILE"):
        EmbeddedServices(folder / "state", given=given).start()
