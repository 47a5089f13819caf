"""docker-compose.yml, Dockerfile and what the image would hold, read for tests."""

import json
import re
import subprocess
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import jsonschema_rs
import yaml

ROOT = Path(__file__).parents[2]
PRODUCT = ("web", "worker", "system", "beat")
COMPOSE_FILE = ROOT / "docker-compose.yml"
MAKE_SECRETS = ROOT / "deploy" / "make-secrets"
# Interpolated: ${NAME}, ${NAME:-default} or ${NAME:?reason}; "$$" is a dollar sign.
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(?:(:[-?])([^}]*))?\}")


@cache
def composed():
    return yaml.safe_load(COMPOSE_FILE.read_text())


def services():
    return composed()["services"]


def variables():
    """(name, operator, default or reason) of every variable the file takes from the shell."""
    return VARIABLE.findall(COMPOSE_FILE.read_text())


@cache
def compose_schema():
    """The Compose Specification's own schema, as the package check-jsonschema carries it with its licence."""
    schema = distribution("check-jsonschema").locate_file("check_jsonschema/builtin_schemas/vendor/compose-spec.json")
    return jsonschema_rs.validator_for(json.loads(Path(str(schema)).read_text()))


def secrets_of(service):
    """The secrets mounted into the service, by the file's name in the folder of secrets, with where they stand."""
    for secret in services()[service].get("secrets", ()):
        source, target = (secret, secret) if isinstance(secret, str) else (secret["source"], secret["target"])
        yield Path(composed()["secrets"][source]["file"]).name, str(Path("/run/secrets") / target)


@cache
def instructions():
    """(word, rest) of each instruction of the Dockerfile."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in whole.splitlines() if line.strip()]


def files_for_the_image():
    """What of git's and the new files .dockerignore lets through, by its rules: the last line that fits decides."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=True,
    )
    return sorted(
        {file for file in listed.stdout.split("\n") if file and (ROOT / file).exists() and not _ignored(file)}
    )


def _ignored(file):
    ignored = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern = line.removeprefix("!")
            ignored = not line.startswith("!") if _fits(file, pattern) else ignored
    return ignored


def _fits(file, pattern):
    """A pattern names a file or a folder with all in it; `**/` stands for any folders."""
    names = [file, *(str(parent) for parent in Path(file).parents[:-1])]
    if pattern.startswith("**/"):
        return any(fnmatchcase(Path(name).name, pattern[3:]) for name in names)
    return any(fnmatchcase(name, pattern) for name in names)
