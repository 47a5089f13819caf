import base64
import os
import stat

import pytest

from config.stack import StackError
from config.stack.account import service_account
from config.stack.state import default_state, ensure_root_key, ensure_secrets, read_secrets, state_folder, write_private


def test_private_file_is_replaced_whole_and_nothing_else_is_left(tmp_path):
    file = tmp_path / "secret"
    write_private(file, b"first")
    write_private(file, b"second")

    assert file.read_bytes() == b"second"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]


def test_root_key_is_made_once(tmp_path):
    file = tmp_path / "keys" / "root.key"
    ensure_root_key(file, lost_if_missing=False)
    made = file.read_bytes()
    ensure_root_key(file, lost_if_missing=True)

    assert file.read_bytes() == made
    assert len(base64.b64decode(made, validate=False)) == 32
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_secrets_stay_and_new_ones_are_added(tmp_path):
    file = tmp_path / "secrets.json"
    first = ensure_secrets(file, ("a",))
    second = ensure_secrets(file, ("a", "b"))

    assert second["a"] == first["a"]
    assert len(second["b"]) == 43
    assert ensure_secrets(file, ("a", "b")) == second


def test_sockets_of_a_long_path_go_into_a_short_folder(tmp_path):
    long = state_folder(tmp_path / ("x" * 60) / ("y" * 60))
    short = state_folder(tmp_path.parents[-1] / "srv" / "fmn")

    assert len(f"{long.sockets}/.s.PGSQL.5432.lock") < 104
    assert long.sockets != state_folder(tmp_path / ("x" * 60) / ("z" * 60)).sockets
    assert str(short.sockets) == "/srv/fmn/sockets"


def test_state_folder_can_be_chosen(tmp_path):
    assert default_state({"FMN_DATA": str(tmp_path / "mine")}).path == tmp_path.resolve() / "mine"


def test_servers_reach_a_state_folder_made_under_a_strict_umask(folder):
    account = service_account()
    before = os.umask(0o077)
    try:
        state = state_folder(folder / "above" / "state", folder / "key")
        state.prepare(account)
    finally:
        os.umask(before)

    assert account.can_enter(state.postgres)


def test_root_key_lies_outside_the_state_folder():
    state = default_state({})

    assert not state.root_key_file.is_relative_to(state.path)


def test_link_put_in_place_of_a_folder_is_refused(tmp_path):
    link = tmp_path / "sockets"
    link.symlink_to(tmp_path)

    with pytest.raises(StackError, match="belongs to somebody else"):
        service_account().make_private_folder(link)


@pytest.mark.parametrize("content", [b'{"fmn_app": "ab', b"\xff", b"[]"])
def test_broken_secrets_are_named(tmp_path, content):
    (tmp_path / "secrets.json").write_bytes(content)

    with pytest.raises(StackError, match=r"secrets\.json (cannot be read|is broken)"):
        read_secrets(tmp_path / "secrets.json")
