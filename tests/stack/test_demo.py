import os
import subprocess
import sys

from config.demo.__main__ import pass_on
from config.stack.state import CHECKOUT


def demo(folder, *flags):
    environment = {
        "PATH": os.environ["PATH"],
        "FMN_DATA": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder),
        "DATABASE_URL": "postgresql://fmn_app:hush@db/forgetmenot",
    }
    command = [sys.executable, "-m", "config.demo", *flags]
    return subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)


def test_notices_of_the_stack_are_passed_on_without_its_keys(capsys):
    pass_on(
        [
            "Ending web (process 7), left by a run that was killed.\n",
            "Forget-me-not is running at http://127.0.0.1:8000\n",
            "    admin    fmn_secret\n",
            "Ctrl-C stops it.\n",
            "Stopping …\n",
        ]
    )

    assert capsys.readouterr().out == "Ending web (process 7), left by a run that was killed.\nStopping …\n"


def test_demo_writes_into_somebodys_database_only_when_told_to(folder):
    refused = demo(folder)
    told = demo(folder, "--own-database")

    assert refused.returncode == 1
    assert refused.stderr.startswith("DATABASE_URL names a database of yours, and the demo writes its tenants there;")
    assert len(refused.stderr.splitlines()) == 1
    assert "but not DATABASE_MIGRATE_URL" in told.stderr
