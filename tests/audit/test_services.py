"""On the real stack: what is committed when, and what happens when the log cannot be written."""

import logging
from contextlib import suppress
from contextvars import copy_context
from datetime import UTC, datetime
from uuid import UUID

import pytest
from django.db import connections
from django.db.backends.postgresql.base import DatabaseWrapper
from uuid_utils.compat import uuid7

from accounts.tenancy import ALL, scope
from audit import context
from audit.canonical import canonical_bytes
from audit.errors import (
    AuditUnavailable,
    InsideTransaction,
    OutsideTransaction,
    UndeclaredField,
    UnknownAction,
)
from audit.services import record_committed, record_in_transaction, record_refusal


class Undone(Exception):
    pass


@pytest.fixture
def facts(tenant, kit):
    return {"tenant_id": tenant.id, "actor": kit, "action": "audit.sample.read"}


@pytest.fixture
def stored(connect_as, tenant):
    """The tenant's rows as the sealer sees them, oldest first: what other connections see is committed."""

    def rows(columns="id"):
        with connect_as("fmn_sealer") as sealer:
            return sealer.execute(
                f"SELECT {columns} FROM audit_event WHERE tenant_id = %s ORDER BY id", [tenant.id]
            ).fetchall()

    return rows


@pytest.fixture
def lost_audit_connection(connect_as):
    """The server ends the audit connection that the next event would be written on."""
    audit = connections["audit"]
    assert isinstance(audit, DatabaseWrapper)
    audit.close()
    audit.close_pool()
    audit.ensure_connection()
    pid = audit.connection.info.backend_pid
    with connect_as("postgres") as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def test_a_committed_event_is_there_for_others_when_the_call_returns(facts, stored):
    event = record_committed(**facts)

    assert stored() == [(event.id,)]


def test_every_field_is_stored_beside_the_canonical_bytes(facts, stored, tenant, kit):
    memory = uuid7()
    event = record_committed(
        **facts,
        resource_ids=[memory],
        subject_pseudonym="cd" * 32,
        purposes=["memory.store"],
        consent_refs=["0198c0de-0000-7000-8000-0000000000c1"],
        decision="allowed",
        reason="purpose_granted",
        request_id="req-1",
        counts={"items": 1},
    )

    columns = (
        "id, tenant_id, at, actor_kind, actor_id, actor_on_behalf_of, action, resource_kind, resource_ids,"
        " subject_pseudonym, purposes, consent_refs, decision, reason, request_id, counts, result, canonical"
    )
    assert stored(columns) == [
        (
            event.id,
            tenant.id,
            event.at,
            "api_key",
            kit.id,
            "",
            "audit.sample.read",
            "sample",
            [memory],
            "cd" * 32,
            ["memory.store"],
            ["0198c0de-0000-7000-8000-0000000000c1"],
            "allowed",
            "purpose_granted",
            "req-1",
            {"items": 1},
            "ok",
            canonical_bytes(event),
        )
    ]


def test_a_committed_event_survives_the_rollback_of_the_view_around_it(facts, stored, tenant):
    with suppress(Undone), scope(tenant.id):
        event = record_committed(**facts)
        raise Undone

    assert stored() == [(event.id,)]


def test_the_event_of_a_change_goes_with_the_change(facts, stored, tenant):
    with suppress(Undone), scope(tenant.id):
        record_in_transaction(**facts)
        raise Undone
    assert stored() == []

    with scope(tenant.id):
        event = record_in_transaction(**facts)
        assert stored() == []
    assert stored() == [(event.id,)]


def test_one_event_is_one_statement(facts, tenant):
    statements = []

    def count(execute, sql, params, many, context):
        statements.append(sql.split("(")[0].strip())
        return execute(sql, params, many, context)

    with connections["audit"].execute_wrapper(count):
        record_committed(**facts)
    with scope(tenant.id), connections["default"].execute_wrapper(count):
        record_in_transaction(**facts)

    assert statements == ["INSERT INTO audit_event", "INSERT INTO audit_event"]


def test_the_event_of_a_change_needs_a_transaction(facts, stored):
    with pytest.raises(OutsideTransaction):
        record_in_transaction(**facts)

    assert stored() == []


def test_a_committed_event_refuses_a_transaction_that_could_take_it_back(facts, stored):
    audit = connections["audit"]
    audit.set_autocommit(False)
    audit.in_atomic_block = True
    try:
        with pytest.raises(InsideTransaction):
            record_committed(**facts)
    finally:
        audit.in_atomic_block = False
        audit.set_autocommit(True)

    assert stored() == []


def test_a_refusal_is_recorded_as_one(facts, stored):
    record_refusal(reason="consent_required", **facts)

    assert stored("decision, reason, result") == [("refused", "consent_required", "refused")]


def test_a_log_that_cannot_be_written_stops_the_read_and_recovers(facts, stored, lost_audit_connection):
    with pytest.raises(AuditUnavailable):
        record_committed(**facts)
    assert stored() == []

    event = record_committed(**facts)
    assert stored() == [(event.id,)]


def test_a_refusal_stands_when_the_log_is_down(facts, stored, lost_audit_connection, caplog):
    with caplog.at_level(logging.ERROR, logger="audit.services"):
        event = record_refusal(reason="consent_required", **facts)

    assert event is None
    assert stored() == []
    assert [record.getMessage() for record in caplog.records if record.name == "audit.services"] == [
        "a refusal could not be recorded: audit.sample.read consent_required"
    ]


def test_the_request_id_comes_from_the_request(facts):
    def within_request():
        context.request_id.set("req-42")
        return record_committed(**facts), record_committed(**facts, request_id="other")

    from_context, given = copy_context().run(within_request)

    assert (from_context.request_id, given.request_id) == ("req-42", "other")
    assert record_committed(**facts).request_id == ""


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"action": "audit.sample.burnt"}, UnknownAction),
        ({"counts": {"age": 44}}, UndeclaredField),
        ({"reason": "Mia said yes"}, UndeclaredField),
        ({"request_id": "mia@example.com"}, UndeclaredField),
    ],
)
def test_what_is_not_declared_is_not_written(facts, stored, changed, error):
    with pytest.raises(error):
        record_committed(**facts | changed)

    assert stored() == []


def test_events_are_dated_now_and_their_ids_ascend(facts):
    before = datetime.now(UTC)
    events = [record_committed(**facts) for _ in range(50)]

    ids = [event.id for event in events]
    assert ids == sorted(set(ids))
    assert before <= events[0].at <= events[-1].at <= datetime.now(UTC)
    assert all(UUID(str(event.id)).int >> 80 >= int(event.at.timestamp() * 1000) for event in events)


def test_epoch_and_transaction_are_the_databases(facts, stored, tenant):
    record_committed(**facts)
    with scope(tenant.id, ALL):
        record_in_transaction(**facts)
        record_in_transaction(**facts)

    epochs_and_transactions = [(epoch, int(xid)) for epoch, xid in stored("epoch, xid::text")]
    (epoch, read), (_, change), (_, same_change) = epochs_and_transactions
    assert epoch == 1
    assert read < change == same_change
