"""Small files, small functions, thin entries. Lines are lines of code: no blanks, comments or docstrings."""

import ast
import io
import statistics
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("accounts", "audit", "config", "consent", "memory")
SOURCES = [
    file
    for package in PACKAGES
    for file in sorted((ROOT / package).rglob("*.py"))
    if "migrations" not in file.relative_to(ROOT).parts
]
TESTS = sorted((ROOT / "tests").rglob("*.py"))

LARGEST_FILE = 500
LARGEST_FUNCTION = 60
LARGEST_ENTRY = 25
LARGEST_MEDIAN = 10

METHODS = {"get", "post", "put", "patch", "delete"}
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(source):
    """The numbers of the lines that hold code; a string over several lines is code on each, a docstring on none."""
    spans = [
        range(token.start[0], token.end[0] + 1)
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in NO_CODE
    ]
    docstrings = {line for node in ast.walk(ast.parse(source)) for line in _docstring_lines(node)}
    return {line for span in spans for line in span} - docstrings


def _docstring_lines(node):
    if not isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) or ast.get_docstring(node) is None:
        return range(0)
    return range(node.body[0].lineno, node.body[0].end_lineno + 1)


@cache
def functions_of(file):
    """(name with its class, size, node) of every function of the file, nested ones too."""
    source = file.read_text()
    lines = code_lines(source)
    found = []

    def visit(node, path):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, FUNCTIONS):
                size = sum(child.lineno <= line <= child.end_lineno for line in lines)
                found.append((".".join([*path, child.name]), size, child))
            named = isinstance(child, (ast.ClassDef, *FUNCTIONS))
            visit(child, [*path, child.name] if named else path)

    visit(ast.parse(source), [])
    return found


def is_entry(file, name, node):
    """A method of a REST view, a task, or a management command's own function."""
    relative = file.relative_to(ROOT)
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    return (
        ("api" in relative.parts and "." in name and node.name in METHODS)
        or (file.name == "tasks.py" and any(each.startswith(("shared_task", "tenant_task")) for each in decorators))
        or ("commands" in relative.parts and node.name == "handle")
    )


def entries():
    return [
        (file, name, size) for file in SOURCES for name, size, node in functions_of(file) if is_entry(file, name, node)
    ]


def named(file):
    return str(file.relative_to(ROOT))


def test_code_lines_leaves_out_blanks_comments_and_docstrings():
    source = '"""Two\nlines."""\n\n# A comment.\ndef a():\n    """Says."""\n    return """x\n    y"""  # code\n'

    assert code_lines(source) == {5, 7, 8}


def test_entries_are_found_in_every_kind_of_place():
    found = {(named(file), name) for file, name, _ in entries()}

    assert {
        ("memory/api/memories.py", "Recall.post"),
        ("memory/tasks.py", "ingest_document"),
        ("accounts/tasks.py", "relay_outbox"),
        ("audit/management/commands/audit_partitions.py", "Command.handle"),
    } <= found


@pytest.mark.parametrize("file", SOURCES + TESTS, ids=named)
def test_file_is_not_too_long(file):
    assert len(code_lines(file.read_text())) <= LARGEST_FILE


def test_no_function_is_too_long():
    sizes = {f"{named(file)}: {name}": size for file in SOURCES + TESTS for name, size, _ in functions_of(file)}

    assert {name: size for name, size in sizes.items() if size > LARGEST_FUNCTION} == {}


def test_entries_are_thin():
    assert {f"{named(file)}: {name}": size for file, name, size in entries() if size > LARGEST_ENTRY} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_most_functions_are_short(package):
    sizes = [size for file in SOURCES if file.is_relative_to(ROOT / package) for _, size, _ in functions_of(file)]

    assert statistics.median(sizes) <= LARGEST_MEDIAN
