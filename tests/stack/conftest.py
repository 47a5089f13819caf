"""Real servers in folders of their own; not under pytest's, which are closed to the servers of root."""

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from config.stack import EmbeddedServices


@contextmanager
def open_folder():
    made = Path(tempfile.mkdtemp(prefix="fmn-test-"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)


def services_in(folder):
    return EmbeddedServices(folder / "state", root_key_dir=folder / "key")


@pytest.fixture
def folder():
    with open_folder() as made:
        yield made


@pytest.fixture
def fresh(folder):
    """Services nobody has ever started."""
    services = services_in(folder)
    yield services
    services.stop()


@pytest.fixture(scope="session")
def used_folder():
    with open_folder() as made:
        yield made


@pytest.fixture
def used(used_folder):
    """Services not running now, which after the first test have a past; the cluster is made once only."""
    services = services_in(used_folder)
    yield services
    services.stop()


@pytest.fixture(scope="session")
def running():
    """Services shared by tests, which leave them running."""
    with open_folder() as made, services_in(made) as services:
        yield services
