"""The documents say what the code does: every name in one stands in the other."""

import ast
import re
import shlex
import subprocess
from importlib import import_module
from itertools import count
from pathlib import Path

import pytest
from django.urls import URLPattern, get_resolver

from accounts.errors import DomainError
from accounts.scopes import AGENT_SCOPES, Scope
from audit.registry import registered_actions
from config.stack.environment import ADDRESSES, OTHERS
from tests.world import Rest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
APPS = ("accounts", "consent", "memory")
READS = re.compile(r"env_\w+|(?:\w+\.)*environ\.(?:get|setdefault)")
# Read from the environment, and the system's rather than ours.
SYSTEM_VARIABLES = {"PATH"}


def rows_of(page, heading=""):
    """The cells of all table rows below `heading`, backticks taken off, without the heads."""
    text = page.read_text()
    if heading:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    heads = {place - 1 for place, line in enumerate(lines) if set(line) <= set("|- ")}
    lines = [line for place, line in enumerate(lines) if place not in heads and not set(line) <= set("|- ")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def descendants(of):
    return {each for child in of.__subclasses__() for each in (child, *descendants(child))}


# --- configuration ----------------------------------------------------------------------------------------------------


def variables_read(tree):
    """Names given as constants to env_…(), environ.get(), environ.setdefault(), partial(env_…) or environ[…]."""
    for node in ast.walk(tree):
        name = name_read(node)
        if isinstance(name, ast.Constant):
            yield name.value


def name_read(node):
    """The expression that names the variable, when this node reads one."""
    match node:
        case ast.Subscript(value=store, slice=name) if ast.unparse(store).endswith("environ"):
            return name
        case ast.Call(args=[reader, name, *_]) if READS.fullmatch(ast.unparse(reader)):
            return name
        case ast.Call(func=reader, args=[name, *_]) if READS.fullmatch(ast.unparse(reader)):
            return name
    return None


def secrets_read(tree):
    """Names given to env_secret, which takes NAME_FILE too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            arguments = [ast.unparse(node.func), *map(ast.unparse, node.args)]
            if "env_secret" in arguments[:2]:
                yield ast.literal_eval(node.args[-1])


def config_trees():
    return [ast.parse(file.read_text()) for file in sorted((ROOT / "config").rglob("*.py"))]


def test_configuration_lists_every_variable_that_is_read():
    read = {name for tree in config_trees() for name in variables_read(tree)} | {*ADDRESSES, *OTHERS}
    ours = {name for name in read if not name.endswith("_FILE")} - SYSTEM_VARIABLES

    documented = [row[0] for row in rows_of(DOCS / "configuration.md")]

    assert sorted(documented) == sorted(ours)


def test_configuration_says_which_variables_may_be_files():
    files = {name for tree in config_trees() for name in secrets_read(tree) if name.isupper()} | {*ADDRESSES}

    documented = {row[0] for row in rows_of(DOCS / "configuration.md") if row[1] == "file"}

    assert documented == files


# --- errors, scopes, actions ------------------------------------------------------------------------------------------


def test_errors_lists_every_code_with_its_status():
    documented = re.findall(r"^### (\w+)\n(\d{3})\b", (DOCS / "errors.md").read_text(), re.MULTILINE)

    for app in APPS:
        import_module(f"{app}.errors")
    raised = {(error.code, str(error.status)) for error in descendants(DomainError)}

    assert sorted(documented) == sorted(raised)


def test_scopes_lists_every_scope_and_who_has_it():
    documented = [(row[0], row[2]) for row in rows_of(DOCS / "scopes.md") if len(row) == 3]

    assert documented == [(scope.value, "yes" if scope in AGENT_SCOPES else "no") for scope in Scope]


def test_scopes_lists_the_keys_of_a_new_tenant():
    from config.provisioning import KEYS

    documented = [row for row in rows_of(DOCS / "scopes.md") if len(row) == 2]

    agent, *others = documented
    assert agent == ["agent", "the agent set above"]
    assert KEYS["agent"] == AGENT_SCOPES
    assert {name: set(re.findall(r"\w+:\w+", scopes)) for name, scopes in others} == {
        name: {scope.value for scope in scopes} for name, scopes in KEYS.items() if name != "agent"
    }


def test_audit_lists_every_action():
    declared = [action for app in APPS for action in import_module(f"{app}.actions").ACTIONS]

    documented = [row[:3] for row in rows_of(DOCS / "audit.md", "Actions")]

    assert documented == [[action.name, action.resource_kind, ", ".join(action.counts)] for action in declared]
    assert set(declared) <= set(registered_actions())


def test_audit_says_which_actions_are_not_written_yet():
    source = "".join(
        file.read_text() for app in APPS for file in (ROOT / app).rglob("*.py") if file.name != "actions.py"
    )

    unwritten = {row[0] for row in rows_of(DOCS / "audit.md", "Actions") if row[3] == "not yet"}

    actions = {action.name for app in APPS for action in import_module(f"{app}.actions").ACTIONS}
    assert unwritten == {name for name in actions if f'"{name}"' not in source}


# --- commands and routes ----------------------------------------------------------------------------------------------


def test_operations_lists_every_make_target():
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()

    documented = re.findall(r"^\| `make ([\w-]+)` \|", (DOCS / "operations.md").read_text(), re.MULTILINE)

    assert sorted(documented) == sorted(targets)


def test_operations_lists_every_command_of_the_stack():
    source = (ROOT / "config/stack/__main__.py").read_text()

    documented = re.findall(
        r"^\| `python -m config\.stack (\w+)` \|", (DOCS / "operations.md").read_text(), re.MULTILINE
    )

    assert sorted(documented) == sorted(re.findall(r'add_parser\("(\w+)"', source))


def test_operations_lists_every_management_command():
    files = ROOT.glob("*/management/commands/[!_]*.py")

    documented = re.findall(r"^\| `manage\.py (\w+)\b", (DOCS / "operations.md").read_text(), re.MULTILINE)

    assert sorted(documented) == sorted(file.stem for file in files)


def patterns_below(resolver, prefix="/"):
    for pattern in resolver.url_patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", path), pattern.callback
        else:
            yield from patterns_below(pattern, path)


def routes():
    for path, callback in patterns_below(get_resolver()):
        scopes = getattr(getattr(callback, "cls", None), "required_scopes", {})
        yield from ((method, path, scope.value) for method, scope in scopes.items())
        if not scopes and path in OPEN_TO_MACHINES:
            yield ("GET", path, "none")


OPEN_TO_MACHINES = {"/healthz", "/docs/errors", "/v1/schema"}


def test_api_lists_every_route_with_its_method_and_scope():
    documented = [tuple(row[:3]) for row in rows_of(DOCS / "api.md", "Routes")]

    assert sorted(documented) == sorted(routes())


def addresses_of_pages():
    for path, callback in patterns_below(get_resolver()):
        if not hasattr(callback, "cls") and path not in OPEN_TO_MACHINES:
            yield re.sub(r"\(\?P\{(\w+)\}[^)]*\)", r"{\1}", path).replace("^", "").removesuffix("$")


def test_pages_lists_every_address():
    documented = [row[0] for row in rows_of(DOCS / "pages.md", "Addresses")]

    assert sorted(documented) == sorted(addresses_of_pages())


# --- the pages themselves ---------------------------------------------------------------------------------------------


def decisions():
    return sorted((DOCS / "decisions").glob("*.md"))


def test_decisions_are_numbered_without_a_gap():
    numbers = [file.name[:5] for file in decisions()]

    assert numbers == [f"{number:04}-" for number, _ in zip(count(1), numbers, strict=False)]
    assert len(numbers) >= 8


@pytest.mark.parametrize("file", decisions(), ids=lambda file: file.stem)
def test_decision_has_its_number_and_four_parts(file):
    lines = file.read_text().splitlines()

    assert lines[0].startswith(f"# {int(file.name[:4])}. ")
    assert [line for line in lines if line.startswith("## ")] == [
        "## Status",
        "## Context",
        "## Decision",
        "## Consequences",
    ]


def anchors_of(page):
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text())

    for target in targets:
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        assert not anchor or anchor in anchors_of(found), target


def test_every_page_can_be_reached_from_the_readme():
    reached, ahead = set(), [README]
    while ahead:
        page = ahead.pop()
        reached.add(page)
        targets = re.findall(r"\]\(([^)#:]+\.md)", page.read_text())
        ahead += {(page.parent / target).resolve() for target in targets} - reached - set(ahead)

    first_decision = decisions()[0]
    assert first_decision in reached
    assert set(PAGES) - set(decisions()) <= reached


# --- the tour of the README -------------------------------------------------------------------------------------------


def bash_blocks():
    return re.findall(r"^```bash\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", bash_blocks())
def test_readme_block_is_bash(block):
    done = subprocess.run(["bash", "-n"], input=block, text=True, capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


class Curl:
    """One curl command of the README, as far as those go; anything else in it is a ValueError."""

    def __init__(self, command):
        words = shlex.split(command.replace("\\\n", " "))
        self.method, self.path, self.key, self.body, self.headers = "GET", "", "", None, {}
        options = iter(words[1:])
        for word in options:
            match word:
                case "-sS":
                    pass
                case "-X":
                    self.method = next(options)
                case "-d":
                    self.body = next(options)
                case "-H":
                    self.take_header(next(options))
                case _ if word.startswith("$URL/"):
                    self.path = word.replace("$URL", "/v1")
                case _:
                    raise ValueError(word)

    def take_header(self, header):
        name, _, value = header.partition(": ")
        if name == "Authorization":
            self.key = value.removeprefix("Bearer $").lower()
        else:
            self.headers[name.replace("-", "_")] = value

    def asked_with(self, keys):
        headers = {name: value for name, value in self.headers.items() if name != "Content_Type"}
        return Rest(keys[self.key]).call(self.method, self.path, self.body, **headers)


def test_readme_tour_goes_as_it_says():
    from accounts.types import Mode
    from config.provisioning import open_organisation

    keys = open_organisation("A reader", Mode.SANDBOX)["keys"]
    commands = [Curl(block) for block in bash_blocks() if block.startswith("curl ")]

    answers = [command.asked_with(keys) for command in commands]

    assert [answer.status_code for answer in answers] == [201, 201, 201, 200, 202, 200, 200, 201]
    known, said, stored, recalled, taken_in, searched, log, withdrawn = (answer.json() for answer in answers)
    assert known["state"] == "active"
    assert {consent["state"] for consent in said["consents"]} == {"given"}
    assert stored["memories"][0]["state"] == "active"
    assert [memory["text"] for memory in recalled["memories"]] == ["Mia moved to Lisbon in May."]
    assert "Mia moved to Lisbon in May." in recalled["context"]["text"]
    assert taken_in["job"]["state"] == "queued"
    assert searched["knowledge"] == []  # no worker runs beside this test
    assert recalled["recall_id"] in {event["id"] for event in log["items"]}
    assert {consent["state"] for consent in withdrawn["consents"]} == {"withdrawn"}
