import dj_database_url
import psycopg.conninfo
import pytest

from config.stack import StackError
from config.stack.environment import database_url, database_urls, given_variables, migrating, serving

PASSWORDS = {
    role: f"{role}-password"
    for role in ("fmn_app", "fmn_migrate", "fmn_audit", "fmn_relay", "fmn_sealer", "fmn_backup", "fmn_keys")
}


def test_socket_folder_is_understood_by_both_readers():
    admin = psycopg.conninfo.make_conninfo(host="/run/f-m n/s")

    url = database_url(admin, user="fmn_app", password="p/w:@", database="forgetmenot")

    assert url == "postgresql://fmn_app:p%2Fw%3A%40@%2Frun%2Ff-m%20n%2Fs/forgetmenot"
    assert psycopg.conninfo.conninfo_to_dict(url) == {
        "user": "fmn_app",
        "password": "p/w:@",
        "host": "/run/f-m n/s",
        "dbname": "forgetmenot",
    }
    parsed = dj_database_url.parse(url)
    assert [parsed[name] for name in ("HOST", "USER", "PASSWORD", "NAME")] == [
        "/run/f-m n/s",
        "fmn_app",
        "p/w:@",
        "forgetmenot",
    ]


def test_options_of_an_outside_server_are_kept():
    admin = "postgresql://root:secret@db.example:6432/postgres?sslmode=verify-full"

    url = database_url(admin, user="fmn_keys", password="pw", database="forgetmenot_keys")

    assert url == "postgresql://fmn_keys:pw@db.example:6432/forgetmenot_keys?sslmode=verify-full"


def test_keys_may_live_on_a_server_of_their_own():
    urls = database_urls("postgresql://root@data/postgres", "postgresql://root@keys/postgres", PASSWORDS)

    assert urls["DATABASE_URL"] == "postgresql://fmn_app:fmn_app-password@data/forgetmenot"
    assert urls["KEYS_DATABASE_URL"] == "postgresql://fmn_keys:fmn_keys-password@keys/forgetmenot_keys"
    assert urls["KEYS_DATABASE_MIGRATE_URL"] == ("postgresql://fmn_migrate:fmn_migrate-password@keys/forgetmenot_keys")


EVERYTHING = {
    "PATH": "/usr/bin",
    "DATABASE_URL": "a",
    "DATABASE_MIGRATE_URL": "b",
    "DATABASE_MIGRATE_URL_FILE": "/secrets/b",
    "KEYS_DATABASE_URL": "c",
    "KEYS_DATABASE_MIGRATE_URL": "d",
    "BACKUP_DATABASE_URL": "e",
    "ADMIN_DATABASE_URL": "f",
    "KEYS_ADMIN_DATABASE_URL": "g",
    "SECRET_KEY": "h",
}


def test_serving_processes_see_no_privileged_address():
    assert serving(EVERYTHING) == {
        "PATH": "/usr/bin",
        "DATABASE_URL": "a",
        "KEYS_DATABASE_URL": "c",
        "SECRET_KEY": "h",
    }


def test_migrations_see_neither_administration_nor_backup():
    assert sorted(set(EVERYTHING) - set(migrating(EVERYTHING))) == [
        "ADMIN_DATABASE_URL",
        "BACKUP_DATABASE_URL",
        "KEYS_ADMIN_DATABASE_URL",
    ]


def test_addresses_may_come_in_files(tmp_path):
    file = tmp_path / "redis"
    file.write_text("redis://cache/0\n")

    given = given_variables({"REDIS_URL_FILE": str(file), "SECRET_KEY": "s", "HOME": "/home/ada", "EMBEDDER": ""})

    assert given == {"REDIS_URL": "redis://cache/0", "SECRET_KEY": "s"}


def test_unreadable_file_of_an_address_is_named(tmp_path):
    with pytest.raises(StackError, match="REDIS_URL_FILE cannot be read"):
        given_variables({"REDIS_URL_FILE": str(tmp_path / "absent")})
