import subprocess

from config.stack.account import ServiceAccount
from config.stack.binaries import find_binaries, readable_copy


def first_line(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]


def test_copied_programs_run_from_where_they_are(folder):
    stranger = ServiceAccount(65534, 65534, drops_privileges=True)
    installed = find_binaries(ServiceAccount(0, 0, drops_privileges=False))

    copy = readable_copy(installed, folder / "above" / "binaries")

    assert copy.postgres.is_relative_to(folder)
    assert stranger.can_enter(copy.postgres)
    # psql needs the libraries beside the package, so it shows that they came along.
    assert first_line(copy.postgres / "psql", "--version") == first_line(installed.postgres / "psql", "--version")
    assert first_line(copy.valkey_server, "--version") == first_line(installed.valkey_server, "--version")


def test_copy_is_made_once(folder):
    installed = find_binaries(ServiceAccount(0, 0, drops_privileges=False))
    copy = readable_copy(installed, folder / "binaries")
    (copy.postgres / "marked").touch()

    readable_copy(installed, folder / "binaries")

    assert (copy.postgres / "marked").exists()
    assert len(list((folder / "binaries").iterdir())) == 1
