"""schemathesis against a real server with a real key: what the schema says, and only that, is what is taken and given.

A fixed seed and few examples in the gate; `make fuzz` sets CONTRACT_SEED and CONTRACT_SECONDS for the long run.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from drf_spectacular.generators import SchemaGenerator

from tests.served import Server

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SEED = os.environ.get("CONTRACT_SEED", "20260503")
SECONDS = int(os.environ.get("CONTRACT_SECONDS", "0"))
BOUNDS = ["--max-time", str(SECONDS)] if SECONDS else ["--max-examples", "2"]
PURPOSES = ("memory.store", "memory.personalise", "memory.sensitive", "memory.share")


@pytest.fixture
def known(acme, zenith):
    """Enough in the tenant for requests to reach what lies behind the form."""
    mia = acme.person("mia").consents(*PURPOSES)
    acme.project("alpha", undeclared_profile_keys=True)
    acme.admin.put("/v1/profile-keys/preferences.language", {})
    acme.admin.put(f"{mia.path}/profile/preferences.language", {"value": "de"})
    mia.remembers("Mia sits at the window.")
    acme.knows("menu", "Soup every day.")
    return acme


def play(server, key, folder):
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "contract.toml")),
        *("run", f"http://127.0.0.1:{server.port}/v1/schema", "--header", f"Authorization: Bearer {key}"),
        *("--seed", SEED, *BOUNDS, "--continue-on-failure", "--no-color"),
        *("--generation-database", "none", "--request-timeout", "30"),
    ]
    hooks = {"SCHEMATHESIS_HOOKS": "tests.hostile.contract_hooks", "PYTHONPATH": str(ROOT)}
    # In a folder of its own: it writes what it found beside itself.
    return subprocess.run(command, cwd=folder, env=os.environ | hooks, capture_output=True, text=True, check=False)


@pytest.mark.timeout(SECONDS + 240)
def test_server_keeps_to_its_schema(stack, known, tmp_path):
    with Server(stack, EMBEDDER_TIMEOUT_SECONDS="20") as server:
        played = play(server, known.keys["admin"], tmp_path)

    assert played.returncode == 0, f"seed {SEED}\n{played.stdout}\n{played.stderr}"
    operations = sum(map(len, SchemaGenerator().get_schema(public=True)["paths"].values()))
    assert f"Tested: {operations}\n" in played.stdout
