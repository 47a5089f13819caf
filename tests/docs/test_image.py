"""The Dockerfile: a pinned base, pinned packages, nobody's rights, and all that the product reads when it runs."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from config.docs import ERRORS_PAGE
from tests.docs.composed import ROOT, files_for_the_image, instructions, services


def rest_of(word):
    return [rest for found, rest in instructions() if found == word]


def test_base_is_a_python_that_the_product_supports_on_a_named_debian():
    [name, value] = rest_of("ARG")[0].split("=")
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")

    assert re.fullmatch(r"python:3\.\d+-slim-[a-z]+", value)
    assert int(value.split(".")[1].split("-")[0]) >= int(required.split(".")[1])
    assert [rest.split(" AS ")[0] for rest in rest_of("FROM")] == [f"${{{name}}}"] * 2


def test_packages_are_those_of_the_lock_file_as_wheels():
    [install] = [rest for rest in rest_of("RUN") if "pip install" in rest]

    assert re.search(r"pip install --require-hashes --only-binary :all: -r /build/requirements\.lock\b", install)
    assert not re.search(r"apt-get|curl|wget|ADD ", (ROOT / "Dockerfile").read_text())


def test_it_runs_as_nobody_who_could_change_it():
    assert rest_of("USER") == ["10001:10001"]
    after = [word for word, _ in instructions()][[word for word, _ in instructions()].index("USER") :]
    assert {"RUN", "COPY", "ADD"}.isdisjoint(after)
    assert not any("--chown" in rest for rest in rest_of("COPY"))


def test_no_secret_is_built_in():
    named = " ".join(rest for word, rest in instructions() if word in {"ARG", "ENV", "COPY"})

    assert not re.search(r"KEY|PASSWORD|SECRET|TOKEN|_URL", named)


def test_volumes_find_folders_that_are_theirs():
    made = next(rest for rest in rest_of("RUN") if "install --directory" in rest)
    mounted = {
        volume.split(":")[1]
        for service in services().values()
        if "build" in service
        for volume in service.get("volumes", ())
    }

    assert mounted == set(re.findall(r"/var/lib/[\w-]+", made))


def test_without_a_command_it_is_the_web_server():
    assert json.loads(rest_of("CMD")[0]) == services()["web"]["command"]


def test_health_is_asked_at_the_port_that_is_served():
    [check] = rest_of("HEALTHCHECK")
    command = json.loads(check.partition(" CMD ")[2])
    served = services()["web"]["command"]

    compile(command[-1], "HEALTHCHECK", "exec")
    assert f"http://127.0.0.1:{served[served.index('--port') + 1]}/healthz" in command[-1]
    assert rest_of("EXPOSE") == [served[served.index("--port") + 1]]


def test_copied_files_exist():
    sources = [rest.split()[0] for rest in rest_of("COPY") if not rest.startswith("--from")]

    assert [source for source in sources if not (ROOT / source).exists()] == []


# --- what is in it ----------------------------------------------------------------------------------------------------

MEANT = {"LICENSE", "manage.py", "requirements.lock", "docs"}
FOLDERS = {"accounts", "audit", "config", "consent", "locale", "memory", "static", "templates"}


def test_image_holds_the_product_and_nothing_else():
    files = files_for_the_image()
    packages = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"])

    assert packages <= {Path(file).parts[0] for file in files} <= MEANT | FOLDERS
    assert [file for file in files if file.startswith("docs/")] == [str(ERRORS_PAGE.relative_to(ROOT))]
    assert not any(re.search(r"\.env$|\.key$|secrets?\.json$|\.pyc$|^tests/|^\.", file) for file in files)


@pytest.fixture(scope="session")
def laid_out(tmp_path_factory):
    """The image's folder of the product, as the build would lay it."""
    folder = tmp_path_factory.mktemp("image") / "app"
    for file in files_for_the_image():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, folder / file)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["manage.py", "check", "--deploy", "--fail-level", "WARNING", "--settings", "config.settings.analysis"],
        ["manage.py", "makemigrations", "--check", "--dry-run", "--settings", "config.settings.analysis"],
        ["-m", "config.stack", "--help"],
        ["-c", "from memory.embedding.minilm import MiniLM; MiniLM().encode(['hello'])"],
        ["-m", "compileall", "-q", "."],
    ],
    ids=" ".join,
)
def test_product_needs_no_file_that_the_image_lacks(laid_out, command):
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}

    done = subprocess.run(
        [sys.executable, *command], cwd=laid_out, env=environment, text=True, capture_output=True, check=False
    )

    assert done.returncode == 0, done.stderr


def test_every_run_of_the_dockerfile_is_shell():
    for command in rest_of("RUN"):
        done = subprocess.run(["sh", "-n"], input=command, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_compose_file_builds_this_dockerfile():
    assert {service["build"] for service in services().values() if "build" in service} == {"."}
