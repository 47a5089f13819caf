"""The documents say what the code does: every name in one stands in the other."""

import ast
import os
import re
import subprocess
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest
from django.urls import URLPattern, get_resolver

from accounts.errors import DomainError
from accounts.scopes import AGENT_SCOPES, Scope
from audit.registry import registered_actions
from config.stack.environment import ADDRESSES, OTHERS
from tests.docs import composed

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

    assert sorted(documented) == sorted(ours | {name for name, _, _ in composed.variables()})


def defaults_read(tree):
    """(name, default) of every env_…() call that settles one by constants; a number without needless zeros."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name("env_float"), args=[ast.Constant(name), ast.Constant(default)]):
                yield name, f"{default:g}"
            case ast.Call(func=ast.Name("env_text" | "env_list"), args=[ast.Constant(name), *rest]):
                yield name, (ast.literal_eval(rest[0]) if rest else "") or "none"
            case ast.Call(func=ast.Name("env_flag"), args=[ast.Constant(name)]):
                yield name, "false"
            case ast.Call(func=ast.Name("env_secret"), args=[ast.Constant(name)]):
                yield name, "required"
            case ast.Call(func=ast.Name("partial"), args=[ast.Name("env_secret"), ast.Constant(name)]):
                yield name, "required"


def test_configuration_says_the_right_defaults():
    settings = [ast.parse(file.read_text()) for file in (ROOT / "config/settings").glob("*.py")]
    compose = {
        name: default for name, sign, default in composed.variables() if sign == ":-" and name.startswith("FMN_")
    }
    expected = dict(default for tree in settings for default in defaults_read(tree)) | compose
    documented = {row[0]: row[2].strip("`") for row in rows_of(DOCS / "configuration.md")}

    # "required with …" and "…, else none" say more than the code's constant, and end or begin with it.
    wrong = {
        name: documented[name]
        for name, default in expected.items()
        if not (
            documented[name].startswith("required") if default == "required" else documented[name].endswith(default)
        )
    }
    assert wrong == {}
    assert len(expected) > 15


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


def test_make_alone_lists_the_commands():
    # Not through make's own recursion, whose variables would reach it when a test is run by make.
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(["make"], cwd=ROOT, env=environment, text=True, capture_output=True, check=True)
    listed = re.findall(r"^make ([\w-]+) +\S", done.stdout, re.MULTILINE)

    documented = re.findall(r"^\| `make ([\w-]+)` \|", (DOCS / "operations.md").read_text(), re.MULTILINE)

    assert sorted(listed) == sorted(set(documented) - {"gate"})  # the half of `make test` that nobody starts alone


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


TOP_LEVEL = {*APPS, "audit", "config", "deploy", "docs", "tests", "benchmarks", "templates", "static", "locale"}


def code_spans(page):
    """What stands between single backticks, outside of fenced blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page):
    named = {span.split("#")[0] for span in code_spans(page) if re.fullmatch(r"\w[\w.-]*(/[\w.-]+)*/?", span)}
    paths = {span for span in named if span.partition("/")[0] in TOP_LEVEL and "/" in span}

    assert {path for path in paths - MADE_BY_COMMANDS if not (ROOT / path).exists()} == set()


MADE_BY_COMMANDS = {"benchmarks/results/bench.json", "benchmarks/results/evals.json", "docs/screenshots/"}


def is_there(dotted):
    """Whether a module, or what its attributes lead to, has this name."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        if spec_of(".".join(parts[:length])):
            return length == len(parts) or has_path(".".join(parts[:length]), parts[length:])
    return False


def spec_of(module):
    try:
        return find_spec(module)
    except ModuleNotFoundError:
        return None


def has_path(module, names):
    """A settings module needs its environment, so only its source is looked at."""
    if module.startswith("config.settings"):
        return re.search(rf"^{names[0]}\b", Path(find_spec(module).origin).read_text(), re.MULTILINE) is not None
    found = import_module(module)
    for name in names:
        # A field of a dataclass or model is no attribute of its class.
        if not hasattr(found, name) and name not in getattr(found, "__annotations__", {}):
            return False
        found = getattr(found, name, None)
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_of_code_are_names_of_something(page):
    dotted = {match[1] for span in code_spans(page) if (match := re.match(r"([a-z_]\w*(?:\.\w+)+)(?:\(|:|$)", span))}
    ours = {name for name in dotted if name.partition(".")[0] in {*APPS, "audit", "config"}}
    actions = {action.name for app in APPS for action in import_module(f"{app}.actions").ACTIONS}
    purposes = {f"memory.{purpose}" for purpose in ("store", "personalise", "sensitive", "share", "infer")}

    assert {name for name in ours - actions - purposes if not is_there(name)} == set()


def test_every_page_can_be_reached_from_the_readme():
    reached, ahead = set(), [README]
    while ahead:
        page = ahead.pop()
        reached.add(page)
        targets = re.findall(r"\]\(([^)#:]+\.md)", page.read_text())
        found = {(page.parent / target).resolve() for target in targets}
        ahead += {each for each in found if each.exists()} - reached - set(ahead)

    first_decision = decisions()[0]
    assert first_decision in reached
    assert set(PAGES) - set(decisions()) <= reached


# --- the blocks of the README, which tests/docs/test_readme.py runs ---------------------------------------------------


def bash_blocks():
    return re.findall(r"^```bash\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", bash_blocks())
def test_readme_block_is_bash(block):
    done = subprocess.run(["bash", "-n"], input=block, text=True, capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
