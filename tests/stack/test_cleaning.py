import pytest

from config.stack import StackError
from config.stack.account import service_account
from config.stack.cleaning import clean
from config.stack.instance import only_instance
from config.stack.runner import run_lock
from config.stack.state import ensure_root_key


def yes(question):
    return True


def no(question):
    return False


@pytest.fixture
def environment(folder):
    made = folder / "venv"
    made.mkdir()
    return made


def test_clean_removes_all_but_the_root_key(fresh, environment, capsys):
    fresh.state.prepare(service_account())
    ensure_root_key(fresh.state.root_key_file, lost_if_missing=False)

    clean(fresh, environment, ask=yes, ask_about_root_key=no)

    assert not fresh.state.path.exists()
    assert not environment.exists()
    assert fresh.state.root_key_file.exists()
    assert f"The root key stays: {fresh.state.root_key_file}" in capsys.readouterr().out


def test_root_key_goes_only_on_its_own_question(fresh, environment):
    fresh.state.root_key_file.parent.mkdir()
    fresh.state.root_key_file.write_text("a key")

    clean(fresh, environment, ask=yes, ask_about_root_key=yes)

    assert not fresh.state.root_key_file.exists()


def test_nothing_is_removed_without_a_yes(fresh, environment):
    fresh.state.path.mkdir()

    clean(fresh, environment, ask=no, ask_about_root_key=yes)

    assert fresh.state.path.exists()
    assert environment.exists()


def test_servers_in_use_are_not_removed(used, environment):
    used.start()

    with pytest.raises(StackError, match="PostgreSQL and Valkey are used by another process"):
        clean(used, environment, ask=yes, ask_about_root_key=yes)

    assert used.state.root_key_file.exists()
    assert environment.exists()


def test_running_stack_is_not_removed(fresh, environment):
    fresh.state.path.mkdir()

    with (
        only_instance(run_lock(fresh.state), "http://127.0.0.1:8000"),
        pytest.raises(StackError, match="running"),
    ):
        clean(fresh, environment, ask=yes, ask_about_root_key=yes)

    assert environment.exists()
