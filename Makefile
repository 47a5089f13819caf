# The commands of the project; `make` alone lists them.

VENV := .venv
PYTHON := $(VENV)/bin/python
PORT ?= 8000

# Named by what they were installed from, so that an environment is made anew only when a lock file changes.
RUNTIME := $(VENV)/.runtime-$(shell git hash-object requirements.lock)
DEVELOPMENT := $(VENV)/.development-$(shell cat requirements.lock requirements-dev.lock | git hash-object --stdin)
# The development environment holds the runtime one.
INSTALLED := $(if $(wildcard $(DEVELOPMENT)),$(DEVELOPMENT),$(RUNTIME))

# Version managers put names on PATH for versions that cannot run, so each candidate is asked.
CANDIDATES = python3.14 python3.13 python3.12 python3 \
	$$(ls -d "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python3 2>/dev/null | sort -r) \
	$$(uv python find ">=3.12" 2>/dev/null)
SUITABLE = import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 12))

.DEFAULT_GOAL := help
.PHONY: help run demo test check gate fuzz bench evals screenshots lock provision clean

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

run: $(INSTALLED) ## start everything in the foreground; PORT=8000
	@exec $(PYTHON) -m config.stack run --port $(PORT)

demo: $(INSTALLED) ## tell the story over HTTP and check each step
	@exec $(PYTHON) -m config.demo

test: check gate ## everything that must hold before a change goes in

check: $(DEVELOPMENT) ## the fast half: format, lint, import contracts, types
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(VENV)/bin/lint-imports
	$(PYTHON) -m mypy .

gate: $(DEVELOPMENT)
	$(PYTHON) manage.py makemigrations --check --dry-run --settings config.settings.analysis
	$(PYTHON) manage.py check --deploy --fail-level WARNING --settings config.settings.analysis
	$(PYTHON) -m pytest --numprocesses 2 --dist loadfile $(PYTEST)

bench: $(INSTALLED) ## how fast it is, as ratios to floors measured beside it; BENCH=recall,remember,… QUICK=1
	@exec $(PYTHON) -m benchmarks.bench

evals: $(INSTALLED) ## how good what is recalled is; LOCOMO=path/to/locomo10.json EVALS=lifecycle,…
	@exec $(PYTHON) -m benchmarks.evals

# SECONDS is the shell's own name for its age, so make must be given it.
fuzz: SECONDS := $(if $(filter command line,$(origin SECONDS)),$(SECONDS),600)
fuzz: SEED := $(or $(SEED),$(shell date +%s))
fuzz: $(DEVELOPMENT) ## look for what breaks: the server against its schema, then every property; SECONDS=600 SEED=…
	@echo "SEED=$(SEED)"
	CONTRACT_SECONDS=$(SECONDS) CONTRACT_SEED=$(SEED) $(PYTHON) -m pytest tests/hostile/test_contract.py -p no:randomly
	$(PYTHON) -m pytest -m hypothesis --hypothesis-profile fuzz --hypothesis-seed $(SEED) -p no:randomly --timeout 900

screenshots: $(DEVELOPMENT) ## every page, light and dark, wide and narrow, into docs/screenshots
	@mkdir -p docs/screenshots
	SCREENSHOTS=docs/screenshots REQUIRE_BROWSER=1 $(PYTHON) -m pytest -q tests/pages/test_every_page.py

lock: $(DEVELOPMENT) ## write both lock files anew from pyproject.toml
	$(VENV)/bin/uv pip compile $(LOCK) --output-file requirements.lock pyproject.toml
	$(VENV)/bin/uv pip compile $(LOCK) --group dev --constraint requirements.lock --output-file requirements-dev.lock pyproject.toml

LOCK := --quiet --universal --python-version 3.12 --generate-hashes --no-header

provision: $(INSTALLED) ## make roles and databases on the PostgreSQL that ADMIN_DATABASE_URL names
	@$(PYTHON) -m config.stack provision

clean: $(INSTALLED) ## remove the environment and all stored data, after asking
	@$(PYTHON) -m config.stack clean

$(RUNTIME): LOCK_FILE := requirements.lock
$(DEVELOPMENT): LOCK_FILE := requirements-dev.lock
$(RUNTIME) $(DEVELOPMENT):
	@if ! $(PYTHON) -c '$(SUITABLE)' >/dev/null 2>&1; then \
		for candidate in $(CANDIDATES); do \
			if "$$candidate" -c '$(SUITABLE)' >/dev/null 2>&1; then found="$$candidate"; break; fi; \
		done; \
		if [ -z "$$found" ]; then \
			echo "No Python 3.12 or later (with venv) was found on PATH, under pyenv or through uv." >&2; \
			echo "Install one, for example: pyenv install 3.13, or: uv python install 3.13" >&2; \
			exit 1; \
		fi; \
		echo "Making $(VENV) with $$found"; \
		"$$found" -m venv --clear $(VENV); \
	fi
	@echo "Installing $(LOCK_FILE); this takes a minute when it has changed."
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK_FILE)
	@rm -f $(VENV)/.runtime-* $(VENV)/.development-*
	@touch $@
