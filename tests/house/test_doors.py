"""There is one door to sealed values. This page lists who may stand at it; a new name here is a decision of its own."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
APPS = ("accounts", "audit", "config", "consent", "memory")

IMPORTERS = {
    "accounts.keystore": {
        "accounts/keys.py",
        "accounts/services/subjects.py",
        "accounts/services/tenants.py",
        "accounts/tasks.py",
        "consent/holders.py",
    },
    "accounts.rootkey": {"accounts/keystore.py"},
    "accounts.keys.open_content": {
        "accounts/services/subjects.py",
        "memory/services/profile.py",
        "memory/services/reading.py",
    },
    "accounts.keys.open_index": {"memory/index.py", "memory/services/profile.py"},
    "accounts.crypto.open_envelope": {"accounts/keys.py", "accounts/keystore.py", "accounts/rootkey.py"},
    "accounts.crypto.seal_envelope": {"accounts/keys.py", "accounts/keystore.py", "accounts/rootkey.py"},
    "consent.access.record_read": {
        "consent/services/log.py",
        "consent/services/ledger.py",
        "consent/services/people.py",
        "memory/services/disclosing.py",
        "memory/services/documents.py",
        "memory/services/profile.py",
        "memory/services/reading.py",
        "memory/services/recalling.py",
        "memory/services/searching.py",
        "memory/tasks.py",
    },
}
MAKERS = {"accounts.keys.Decision": {"consent/policy.py"}, "accounts.keys.Grant": {"consent/access.py"}}


def sources():
    """Every module of the product: its path from the root, and its syntax tree."""
    for app in APPS:
        for file in sorted((ROOT / app).rglob("*.py")):
            yield str(file.relative_to(ROOT)), ast.parse(file.read_text())


def imported(tree):
    """Local name → dotted name of everything a module imports, wherever in it."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports would hide who imports what"
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def dotted(node, names):
    """The dotted name an expression stands for, or ""."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value, names)}.{node.attr}"
    return ""


def used(tree):
    """Every imported thing a module names, also through its module: `keys.open_content` counts as importing it."""
    names = imported(tree)
    through = {dotted(node, names) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return set(names.values()) | through


def uses(tree, name):
    """Whether a module names this thing, or anything of this module."""
    return any(each == name or each.startswith(f"{name}.") for each in used(tree))


def made(tree, wanted):
    """Calls in a module that make the wanted class, or a changed copy of one of its objects."""
    names = imported(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if dotted(call.func, names) == wanted or copies(call, names)]


def copies(call, names):
    """`replace(decision, …)` would make a yes out of a no."""
    first = ast.unparse(call.args[0]).lower() if call.args else ""
    is_replace = dotted(call.func, names) in {"dataclasses.replace", "copy.replace"}
    return is_replace and ("decision" in first or "grant" in first)


@pytest.mark.parametrize("name", IMPORTERS)
def test_only_the_listed_modules_import(name):
    assert {path for path, tree in sources() if uses(tree, name)} == IMPORTERS[name]


@pytest.mark.parametrize("name", MAKERS)
def test_only_one_module_makes(name):
    assert {path for path, tree in sources() if made(tree, name)} == MAKERS[name]


@pytest.mark.parametrize(
    "source",
    [
        "from accounts.keys import Decision\nDecision(1)",
        "from accounts.keys import Decision as D\ndef f():\n    return D(1)",
        "from accounts import keys\nkeys.Decision(1)",
        "import accounts.keys as k\nk.Decision(1)",
        "from dataclasses import replace\nreplace(self.decision, allowed=True)",
        "import dataclasses\ndataclasses.replace(old_decision, allowed=True)",
    ],
)
def test_the_search_finds_a_maker_however_it_is_written(source):
    assert made(ast.parse(source), "accounts.keys.Decision")


@pytest.mark.parametrize(
    "source",
    [
        "from accounts.keys import open_content",
        "from accounts.keys import open_content as look",
        "from accounts import keys\nkeys.open_content",
        "def f():\n    from accounts.keys import open_content",
    ],
)
def test_the_search_finds_an_importer_however_it_is_written(source):
    assert uses(ast.parse(source), "accounts.keys.open_content")


@pytest.mark.parametrize("source", ["import accounts.keystore", "from accounts.keystore import subject_keys"])
def test_the_search_finds_a_module_however_it_is_imported(source):
    assert uses(ast.parse(source), "accounts.keystore")


def test_the_private_parts_of_the_door_are_used_by_nobody_else():
    private = {"accounts.keys._open", "accounts.keys._seal", "accounts.keys._key_for", "accounts.keys._subject_keys"}

    assert [path for path, tree in sources() if any(uses(tree, name) for name in private)] == []
