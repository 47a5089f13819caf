import socket

import pytest

from config.stack import EmbeddedServices, StackError
from config.stack.external import provision_external
from config.stack.reachable import require_reachable
from config.stack.state import state_folder


@pytest.fixture
def closed_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield unused.getsockname()[1]


def test_unreachable_server_is_named_without_the_password(closed_port):
    with pytest.raises(StackError) as caught:
        require_reachable({"DATABASE_URL": f"postgresql://fmn_app:hush@127.0.0.1:{closed_port}/forgetmenot"})

    assert str(caught.value).startswith(f"DATABASE_URL: PostgreSQL at 127.0.0.1, port {closed_port}, failed: ")
    assert "hush" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("url", ["postgresql://fmn_app:hush/hush@db/forgetmenot", "hush"])
def test_malformed_address_is_not_repeated(url):
    with pytest.raises(StackError, match=r"^DATABASE_URL is no PostgreSQL address") as caught:
        require_reachable({"DATABASE_URL": url})

    assert "hush" not in str(caught.value)


def test_provisioning_an_unreachable_server_is_one_line(folder, closed_port):
    admin = f"postgresql://postgres:hush@127.0.0.1:{closed_port}/postgres"

    with pytest.raises(StackError, match=f"^ADMIN_DATABASE_URL: PostgreSQL at 127.0.0.1, port {closed_port}, failed: "):
        provision_external({"ADMIN_DATABASE_URL": admin}, state_folder(folder / "state", folder / "key"))


def test_start_names_the_outside_database_that_is_down(running, folder, closed_port):
    given = running.environment() | {"DATABASE_URL": f"postgresql://fmn_app:hush@127.0.0.1:{closed_port}/forgetmenot"}
    services = EmbeddedServices(folder / "state", root_key_dir=folder / "key", given=given)

    with pytest.raises(StackError, match=f"^DATABASE_URL: PostgreSQL at 127.0.0.1, port {closed_port}, failed: "):
        services.start()
