"""Migrations say what the models say, and stand on nothing that may change under them."""

import ast
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import models
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState, ProjectState

ROOT = Path(__file__).parents[2]
PACKAGES = {"accounts", "audit", "config", "consent", "memory"}
MIGRATIONS = sorted(file for package in PACKAGES for file in (ROOT / package).glob("migrations/[0-9]*.py"))


def imported_modules(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield node.module


def may_be_imported(module):
    """What is not ours, and ours that is part of history: field and constraint classes."""
    return module.partition(".")[0] not in PACKAGES or module.endswith((".fields", ".constraints"))


def test_models_and_migrations_agree(capsys):
    call_command("makemigrations", check_changes=True, dry_run=True)

    assert capsys.readouterr().out == "No changes detected\n"


def test_a_missing_wall_would_be_noticed():
    loader = MigrationLoader(None)
    state = ProjectState.from_apps(apps)
    memory = state.models["memory", "memory"]
    options = memory.options | {
        "constraints": [each for each in memory.options["constraints"] if "_rows" not in each.name]
    }
    state.models["memory", "memory"] = ModelState(
        memory.app_label, memory.name, memory.fields, options, memory.bases, memory.managers
    )

    changes = MigrationAutodetector(loader.project_state(), state).changes(graph=loader.graph)

    assert [type(operation).__name__ for operation in changes["memory"][0].operations] == ["RemoveConstraint"]
    assert changes["memory"][0].operations[0].name == "memory_memory_rows"


@pytest.mark.parametrize("file", MIGRATIONS, ids=lambda file: str(file.relative_to(ROOT)))
def test_migration_imports_nothing_that_may_change(file):
    assert [module for module in imported_modules(file.read_text()) if not may_be_imported(module)] == []


def test_every_app_with_tables_has_migrations():
    with_tables = {model._meta.app_label for model in apps.get_models() if issubclass(model, models.Model)} & PACKAGES

    assert {file.parts[-3] for file in MIGRATIONS} == with_tables
