import os
import socket
import subprocess
import sys

import pytest

from config.stack import StackError
from config.stack.account import service_account
from config.stack.children import Child, end_orphans, stop_all
from config.stack.instance import Instance, only_instance, running_instance
from config.stack.processes import ProcessRecord
from config.stack.runner import Watch, is_healthy, run_lock
from config.stack.services import SECRET_NAMES
from config.stack.state import CHECKOUT, ensure_secrets, state_folder


@pytest.fixture
def state(folder):
    folder.chmod(0o711)
    made = state_folder(folder / "state", folder / "key")
    made.prepare(service_account())
    return made


def stack_command(folder, *arguments):
    environment = {
        "PATH": os.environ["PATH"],
        "FMN_DATA": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder),
    }
    return subprocess.run(
        [sys.executable, "-m", "config.stack", *arguments],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def child(state, code, name="web"):
    """Any real process in the place of a product's one; `timeit -n 1 -r 1` runs the code once."""
    return Child(name, ["timeit", "-n", "1", "-r", "1", code], os.environ, state)


def look_for_ever(watch):
    while True:
        watch.look()


SLEEPS = "import time; time.sleep(60)"


def test_taken_port_gets_a_line_and_leaves_nothing_running(folder, state):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        done = stack_command(folder, "run", "--port", str(port))

    assert done.returncode == 1
    assert done.stderr == f"Port {port} cannot be used (Address already in use). Try: make run PORT={port + 1}\n"
    assert list(state.records.iterdir()) == []
    assert list(state.postgres.iterdir()) == []


def test_port_that_cannot_exist_gets_a_line(folder, state):
    done = stack_command(folder, "run", "--port", "80000")

    assert done.returncode == 1
    assert done.stderr == "Port 80000 does not exist; PORT must be between 1 and 65535.\n"


HOLDS = """
import sys, time
from pathlib import Path
from config.stack.instance import only_instance
with only_instance(Path(sys.argv[1]), "here"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_environment_has_the_addresses_that_the_running_stack_was_given(folder, state):
    ensure_secrets(state.secrets_file, SECRET_NAMES)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(run_lock(state))],
        cwd=CHECKOUT,
        env={"DATABASE_URL": "postgresql://fmn_app:pw@db/forgetmenot", "ROOT_KEY": "given"},
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        printed = stack_command(folder, "env").stdout
        holder.kill()

    assert "export DATABASE_URL=postgresql://fmn_app:pw@db/forgetmenot\n" in printed
    assert "export ROOT_KEY=given\n" in printed


def test_second_run_names_the_first_ones_address(folder, state):
    with only_instance(run_lock(state), "http://127.0.0.1:8123"):
        done = stack_command(folder, "run")

    assert done.returncode == 1
    assert done.stderr == f"Already running: http://127.0.0.1:8123 (process {os.getpid()}).\n"


def test_lock_of_a_dead_process_is_no_obstacle(state):
    run_lock(state).write_text('{"pid": 1, "address": "http://127.0.0.1:8000"}')

    assert running_instance(run_lock(state)) is None
    with only_instance(run_lock(state), "http://127.0.0.1:8001"):
        assert running_instance(run_lock(state)) == Instance(os.getpid(), "http://127.0.0.1:8001")


def test_environment_is_printed_for_a_running_stack_only(folder, state):
    ensure_secrets(state.secrets_file, SECRET_NAMES)
    nothing_runs = stack_command(folder, "env")
    with only_instance(run_lock(state), "http://127.0.0.1:8000"):
        serving = stack_command(folder, "env").stdout
        everything = stack_command(folder, "env", "--all").stdout

    assert nothing_runs.stderr == "Nothing is running; start it with `make run`.\n"
    assert serving.count("export DATABASE_URL=postgresql://fmn_app:") == 1
    assert "MIGRATE" not in serving
    assert everything.count("export BACKUP_DATABASE_URL=postgresql://fmn_backup:") == 1


def test_child_that_ends_is_started_three_times_then_given_up(state, capsys):
    failing = child(state, "raise SystemExit('out of luck')")
    watch = Watch([failing])
    failing.start()

    with pytest.raises(StackError, match=r"web ended 4 times(.|\n)*out of luck"):
        look_for_ever(watch)

    assert capsys.readouterr().out.splitlines() == [
        "web ended unexpectedly (exit code 1); starting it again (1 of 3).",
        "web ended unexpectedly (exit code 1); starting it again (2 of 3).",
        "web ended unexpectedly (exit code 1); starting it again (3 of 3).",
    ]
    failing.stop()


def test_killed_child_is_said_to_have_been_killed(state):
    killed = child(state, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    before = killed.how_it_ended()
    killed.start()
    killed.stop()

    assert before == "how is not known"
    assert killed.how_it_ended() == "signal 9"


def test_stopping_ends_a_child_and_forgets_it(state):
    sleeping = child(state, SLEEPS)
    sleeping.start()

    stop_all([sleeping])

    assert not sleeping.is_running()
    assert list(state.records.iterdir()) == []


def test_orphans_of_a_killed_runner_are_ended(state, capsys):
    orphan = child(state, SLEEPS)
    orphan.start()
    record = ProcessRecord.read(state.records / "web.json")
    assert record is not None

    end_orphans(state)

    assert not record.is_alive()
    assert capsys.readouterr().out == f"Ending web (process {record.pid}), left by a run that was killed.\n"
    orphan.stop()


def test_process_that_took_an_orphans_id_is_spared(state, capsys):
    ProcessRecord(os.getpid(), 0.0).write(state.records / "web.json")

    end_orphans(state)

    assert capsys.readouterr().out == ""
    assert list(state.records.iterdir()) == []


def test_nobody_listening_is_not_healthy():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))

        assert is_healthy(f"http://127.0.0.1:{unused.getsockname()[1]}") is False
