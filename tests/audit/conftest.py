"""One action that only these tests register, an agent that acts, and one event in full."""

from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from audit.registry import AuditAction, register
from audit.types import Actor, Event

READ = AuditAction("audit.sample.read", "A sample was read", "sample", counts=("items", "tokens"))


@pytest.fixture(scope="session", autouse=True)
def sample_action():
    register(READ)
    return READ


@pytest.fixture
def kit():
    return Actor("api_key", "0198c0de-0000-7000-8000-00000000a9e7")


@pytest.fixture
def full_event(kit):
    return Event(
        id=UUID("0198c0de-1111-7222-8333-444455556666"),
        tenant_id=UUID("0198c0de-0000-7000-8000-000000000001"),
        at=datetime(2026, 3, 4, 5, 6, 7, 890123, tzinfo=UTC),
        actor=Actor("api_key", kit.id, on_behalf_of="ab" * 32),
        action="audit.sample.read",
        resource_kind="sample",
        resource_ids=(
            UUID("0198c0de-0000-7000-8000-000000000003"),
            UUID("0198c0de-0000-7000-8000-000000000002"),
        ),
        subject_pseudonym="ab" * 32,
        purposes=("memory.store", "memory.personalise"),
        consent_refs=("0198c0de-0000-7000-8000-0000000000c1",),
        decision="allowed",
        reason="purpose_granted",
        request_id="req_7-A",
        counts={"tokens": 0, "items": 2},
        result="ok",
    )


@pytest.fixture
def tenant():
    """A tenant with an empty log: opening a real one writes events of its own."""
    return SimpleNamespace(id=uuid7())
