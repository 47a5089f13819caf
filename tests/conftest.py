"""The real thing for every test: PostgreSQL as the application's roles, Valkey, migrations run once by the owner.

Tests commit; each makes fresh tenants, so nothing is flushed and nothing is shared. The cast: Ada owns Acme, Ben only
reads there, Kit is its agent with a key, Mia is a person Acme remembers, Zoe owns Zenith, and Zenith always holds
something that could leak.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest
from hypothesis import settings

from config.stack import EmbeddedServices

# For `make fuzz`: so many examples of each property that says no number of its own.
settings.register_profile("fuzz", max_examples=2000, deadline=None, print_blob=True)

ROOT = Path(__file__).parent.parent
_URLS = {
    "fmn_app": "DATABASE_URL",
    "fmn_audit": "AUDIT_DATABASE_URL",
    "fmn_relay": "RELAY_DATABASE_URL",
    "fmn_sealer": "SEALER_DATABASE_URL",
    "fmn_backup": "BACKUP_DATABASE_URL",
    "fmn_keys": "KEYS_DATABASE_URL",
    "fmn_migrate": "DATABASE_MIGRATE_URL",
    "postgres": "ADMIN_DATABASE_URL",
}


FOLDERS = "fmn-suite-"


def services_in(folder):
    return EmbeddedServices(folder / "state", root_key_dir=folder / "key")


def is_alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def end_what_killed_runs_left():
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDERS}*"):
        owner = folder / "owner"
        if owner.exists() and not is_alive(int(owner.read_text() or 0)):
            services_in(folder).end_leftovers()
            shutil.rmtree(folder, ignore_errors=True)


class Stack:
    """The services of this test run, their environment, and how to be any role."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=FOLDERS))
        self.folder.chmod(0o711)
        (self.folder / "owner").write_text(str(os.getpid()))
        self.services = services_in(self.folder)
        self.environment = self.services.start()

    def migrate(self) -> None:
        for database in ("default", "keys"):
            command = [sys.executable, "manage.py", "migrate", "--database", database, "--verbosity", "0"]
            settings = {"DJANGO_SETTINGS_MODULE": "config.settings.migrate"}
            subprocess.run(command, cwd=ROOT, env=os.environ | self.environment | settings, check=True)

    def close(self) -> None:
        self.services.stop()
        shutil.rmtree(self.folder)

    def url(self, role: str, database: str = "") -> str:
        address = self.environment[_URLS[role]]
        return f"{address.rpartition('/')[0]}/{database or 'forgetmenot'}" if role == "postgres" else address


_stack: list[Stack] = []


def pytest_configure(config):
    """Before anything imports Django: its settings read the environment of the running stack.

    Run in parallel, every worker has a stack of its own; the process that only hands out tests needs none.
    """
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        return
    if config.option.collectonly or config.option.help:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.analysis")
    else:
        end_what_killed_runs_left()
        _stack.append(Stack())
        _stack[0].migrate()
        os.environ.update(_stack[0].environment)
        # Not what is tested: on a busy machine a question must not lose its vector in the middle of another test.
        os.environ["EMBEDDER_TIMEOUT_SECONDS"] = "20"
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings.base"
    import django
    from django.test.utils import setup_test_environment

    django.setup()
    setup_test_environment()


def pytest_unconfigure():
    from django.apps import apps
    from django.db import connections

    for connection in connections.all(initialized_only=True) if apps.ready else ():
        connection.close_pool()
    for stack in _stack:
        stack.close()


@pytest.fixture(scope="session")
def stack():
    return _stack[0]


@pytest.fixture(scope="session")
def connect_as(stack):
    """connect_as("fmn_app") gives a psycopg connection of that role to its database; "postgres" is the superuser."""

    @contextmanager
    def connect(role, database="", *, autocommit=False):
        with psycopg.connect(stack.url(role, database), autocommit=autocommit) as connection:
            yield connection

    return connect


@pytest.fixture
def django_statements():
    """django_statements(call) runs it and gives how many statements went to the data database."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def count(call):
        with CaptureQueriesContext(connection) as captured:
            call()
        return len(captured)

    return count


# --- the cast ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def acme():
    return _open("Acme")


@pytest.fixture
def zenith():
    """Another organisation's tenant that remembers a person under the very same id as Acme's."""
    opened = _open("Zenith")
    opened.remember_somebody()
    return opened


@pytest.fixture
def tenant(acme):
    return acme


@pytest.fixture
def mia(acme):
    """A person Acme knows, who has said nothing yet."""
    return acme.person("mia")


def _open(name):
    from tests.world import open_world

    return open_world(name)
