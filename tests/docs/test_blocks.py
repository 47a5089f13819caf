"""Every fenced block of docs/: each kind has a rule here, and a block without one fails. The README's are run."""

import json
import re
import subprocess
import tomllib
from http import HTTPStatus
from pathlib import Path

import pytest

from accounts.models import WrappedKey
from tests.docs.composed import ROOT, services, variables

DOCS = ROOT / "docs"
CONTRACTS = ROOT / "pyproject.toml"


def blocks():
    for page in sorted(DOCS.rglob("*.md")):
        for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            yield str(page.relative_to(DOCS)), language, text


def floors_are_those_of_the_import_contract(text, acme):
    [contract] = [each for each in import_contracts() if each["name"] == "Apps form one DAG"]
    assert re.findall(r"\w+", text.partition("  ")[0]) == contract["layers"]


def import_contracts():
    return tomllib.loads(CONTRACTS.read_text())["tool"]["importlinter"]["contracts"]


def refusal_is_what_the_server_says(text, acme):
    shown = json.loads(text)
    acme.person("user-123")

    answer = acme.agent.post(shown["instance"], {"text": "Mia moved to Lisbon in May."})

    assert answer.status_code == HTTPStatus.FORBIDDEN
    said = answer.json()
    assert re.fullmatch(r"[0-9a-f]{32}", shown["request_id"])
    assert said | {"request_id": shown["request_id"]} == shown


def keys_are_the_kinds_there_are(text, acme):
    named = set(re.findall(r"tenant key|tenant index key|person's key|person's audit key", text))
    assert len(named) == len(WrappedKey.Kind)


def commands_are_there(text, acme):
    """Parsed, not run: a shell can read it, and each command, file, service and variable it names exists."""
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
    for line in text.replace("\\\n", " ").splitlines():
        words = line.split()
        match words:
            case ["export", assignment]:
                assert assignment.partition("=")[0] in {name for name, _, _ in variables()}
            case ["docker", "compose", "up" | "build", *options]:
                assert all(option.startswith("--") for option in options)
            case ["docker", "compose", "exec", service, "python", "manage.py", command, *_]:
                assert service in services()
                assert list(ROOT.glob(f"*/management/commands/{command}.py"))
            case ["docker", "compose", "run", "--rm", "-T", service, *_]:
                assert services()[service]["profiles"]
            case ["make", target, *_]:
                assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
            case [script, *_]:
                assert (ROOT / script).is_file(), line
                assert Path(ROOT / script).stat().st_mode & 0o111, line


RULES = {
    ("architecture.md", "text"): floors_are_those_of_the_import_contract,
    ("errors.md", "json"): refusal_is_what_the_server_says,
    ("operations.md", "text"): keys_are_the_kinds_there_are,
    ("operations.md", "bash"): commands_are_there,
}


@pytest.mark.parametrize(("page", "language", "text"), list(blocks()))
def test_block_is_right(page, language, text, acme):
    assert (page, language) in RULES, "a block of this kind needs a rule in RULES"
    RULES[page, language](text, acme)


def test_every_rule_has_its_block():
    assert {(page, language) for page, language, _ in blocks()} == set(RULES)
