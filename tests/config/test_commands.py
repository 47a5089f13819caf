"""What an operator does at the command line."""

import io
import json
import stat

import pytest
from django.core.management import CommandError, call_command

from tests.world import Rest


def created(name):
    out = io.StringIO()
    call_command("create_tenant", name, stdout=out)
    return json.loads(out.getvalue())


def test_created_tenant_answers_to_its_keys_and_to_each_for_its_job():
    opened = created("Acme")

    assert Rest(opened["keys"]["agent"]).put("/v1/subjects/mia", {}).status_code == 201
    assert Rest(opened["keys"]["consent"]).get("/v1/purposes").status_code == 200
    assert Rest(opened["keys"]["officer"]).get("/v1/audit/events").status_code == 200
    assert Rest(opened["keys"]["agent"]).get("/v1/audit/events").json()["code"] == "scope_missing"


def test_revoked_key_opens_nothing_and_its_tenant_lives_on():
    opened = created("Acme")

    call_command("revoke_key", opened["keys"]["agent"], stdout=io.StringIO())

    assert Rest(opened["keys"]["agent"]).get("/v1/subjects").status_code == 401
    assert Rest(opened["keys"]["officer"]).get("/v1/subjects").status_code == 200


@pytest.mark.parametrize("named", ["nonsense", "fmn_sandbox_0000000000000000000000_x_y"])
def test_revoking_what_is_no_key_is_said(named):
    with pytest.raises(CommandError, match="not a key"):
        call_command("revoke_key", named)


def test_revoking_an_unknown_id_is_said(acme):
    with pytest.raises(CommandError, match="no such key"):
        call_command("revoke_key", "01a22a1f-ade0-757d-b7a5-3259067b13f5", tenant=acme.id)


def test_demo_is_seeded_once_and_its_keys_are_for_its_owner_alone(tmp_path):
    file = tmp_path / "demo.json"
    call_command("seed_demo", keys_file=file)
    first = file.read_text()

    call_command("seed_demo", keys_file=file)

    assert file.read_text() == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert Rest(json.loads(first)["tenants"][0]["key"]).get("/v1/subjects").status_code == 200
