"""Every block of the README, in its order and as it stands there, against what it starts.

A block is given the keys that `make run` printed where the README has dots, and a free port where it has 8000.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.served import eventually

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
KEYS = {"AGENT": "agent", "CONSENT": "consent", "ADMIN": "admin", "OFFICER": "officer"}


def blocks(language, start):
    return [text for found, text in BLOCKS if found == language and text.startswith(start)]


class Reader:
    """Somebody with a checkout, two terminals and nothing that ran before."""

    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = str(probe.getsockname()[1])
        # curl as the README has it prints the body alone; here its status stands in a last line.
        (folder / ".curlrc").write_text('write-out = "\\n%{http_code}"\n')
        own = {"PATH": os.environ["PATH"], "HOME": str(folder), "CURL_HOME": str(folder), "LC_ALL": "C.UTF-8"}
        self.environment = own | {"FMN_DATA": str(folder / "state"), "XDG_CONFIG_HOME": str(folder)}
        self.said = {}
        self.running = None

    def shell(self, text, **environment):
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=ROOT,
            env=self.environment | environment,
            text=True,
            capture_output=True,
            check=False,
        )

    def start(self, text, **environment):
        """The lines it prints up to the one that says how to stop it."""
        self.running = subprocess.Popen(
            ["bash", "-c", text],
            cwd=ROOT,
            env=self.environment | environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        lines = []
        for line in self.running.stdout:
            lines.append(line.rstrip("\n"))
            if lines[-1] == "Ctrl-C stops it.":
                return lines
        pytest.fail("\n".join(lines))

    def press_ctrl_c(self):
        os.killpg(self.running.pid, signal.SIGINT)
        rest = self.running.stdout.read()
        self.running.stdout.close()
        self.running.wait()
        return rest

    def close(self):
        if self.running is not None and not self.running.stdout.closed:
            self.press_ctrl_c()

    def ask(self, exports, command):
        """Status and body of a curl command that runs after the exports."""
        done = self.shell(f"{exports}\n{command}")
        assert done.returncode == 0, done.stderr
        body, _, status = done.stdout.rpartition("\n")
        return int(status), json.loads(body)


@pytest.fixture(scope="module")
def reader():
    # Not below pytest's folders, which are closed to the servers of root.
    folder = Path(tempfile.mkdtemp(prefix="fmn-readme-"))
    folder.chmod(0o711)
    made = Reader(folder)
    yield made
    made.close()
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def announced(reader):
    """What `make run` prints, from the announcement on."""
    [command] = blocks("bash", "make run")
    lines = reader.start(command, PORT=reader.port)
    return lines[next(place for place, line in enumerate(lines) if line.startswith("Forget-me-not is running")) :]


@pytest.fixture(scope="module")
def exports(reader, announced):
    """The block of exports, filled with what was printed."""
    printed = dict(line.split() for line in announced if re.match(r"    \w+ +fmn_sandbox_", line))
    [text] = blocks("bash", "export ")
    for variable, name in KEYS.items():
        text = text.replace(f"{variable}=fmn_sandbox_…", f"{variable}={printed[name]}")
    assert "…" not in text
    return text.replace(":8000/", f":{reader.port}/")


def as_pattern(line, port):
    """A line of the README as a pattern of what is printed: dots stand for anything."""
    return re.escape(line.replace(":8000", f":{port}")).replace("…", ".+")


def test_every_block_is_of_a_kind_that_is_run_here():
    kinds = {"bash": ("make run", "make demo", "export ", "curl "), "text": ("Forget-me-not is running",)}

    assert [text for language, text in BLOCKS if not text.startswith(kinds.get(language, ()))] == []


def test_run_prints_what_the_readme_shows(reader, announced):
    [shown] = blocks("text", "Forget-me-not is running")
    shown = shown.splitlines()

    assert len(announced) == len(shown), announced
    for line, printed in zip(shown, announced, strict=True):
        assert re.fullmatch(as_pattern(line, reader.port), printed), (line, printed)


def test_demo_uses_the_running_stack_and_comes_out_right(reader, announced):
    [command] = blocks("bash", "make demo")

    done = reader.shell(command)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"Using the stack that runs at http://127.0.0.1:{reader.port}.\n")
    assert re.search(r"^All \d+ checks came out right\.$", done.stdout, re.MULTILINE)


def test_tour_goes_as_it_says(reader, exports):
    curls = blocks("bash", "curl ")
    search = next(place for place, text in enumerate(curls) if "/knowledge/search" in text)

    answers = [reader.ask(exports, text) for text in curls[:search]]
    found = eventually(lambda: (answer := reader.ask(exports, curls[search]))[1]["knowledge"] and answer)
    answers += [found, *(reader.ask(exports, text) for text in curls[search + 1 :])]

    assert [status for status, _ in answers] == [201, 201, 201, 200, 202, 200, 200, 201]
    known, said, stored, recalled, taken_in, searched, log, withdrawn = (body for _, body in answers)
    assert known["state"] == "active"
    assert {consent["state"] for consent in said["consents"]} == {"given"}
    assert stored["memories"][0]["state"] == "active"
    assert [memory["text"] for memory in recalled["memories"]] == ["Mia moved to Lisbon in May."]
    assert "Mia moved to Lisbon in May." in recalled["context"]["text"]
    assert taken_in["job"]["state"] == "queued"
    assert "five working days" in searched["knowledge"][0]["text"]
    assert recalled["recall_id"] in {event["id"] for event in log["items"]}
    assert {consent["state"] for consent in withdrawn["consents"]} == {"withdrawn"}
    status, afterwards = reader.ask(exports, next(text for text in curls if "/recall" in text))
    assert status == 200, afterwards
    assert (afterwards["personal"]["code"], afterwards["memories"]) == ("consent_withdrawn", [])


def test_ctrl_c_stops_it_and_another_port_can_be_named(reader, announced):
    [command] = set(re.findall(r"`(make run PORT=\d+)`", README))

    rest = reader.press_ctrl_c()
    again = reader.start(re.sub(r"\d+", reader.port, command))

    assert rest.endswith("Stopped.\n")
    assert again[-len(announced) :] == announced
