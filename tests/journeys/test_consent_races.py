"""Consent at the same moment as its use: what has begun finishes, nothing begins after a withdrawal has committed."""

import threading
import time

import pytest

from accounts.keys import subject_pseudonym
from accounts.tenancy import narrow, reveal_pseudonym, scope
from consent.policy import decide
from consent.selectors import consents_of_person, ledger_of
from consent.services.statements import record_statement
from consent.types import Act, ConsentActor, LedgerEvent, PurposeKey, Statement
from memory.services.remembering import NewMemory, remember

BOTH = (PurposeKey.STORE, PurposeKey.PERSONALISE)


@pytest.fixture
def mia(mia):
    return mia.consents()


def withdrawal():
    return Statement(LedgerEvent.WITHDRAWN, BOTH, "en", "chat", "typed", ConsentActor.AGENT, "")


def withdraw_inside(person):
    record_statement(person.ref_inside(), withdrawal(), caller=person.world.principal)


def withdraw_over_rest(person):
    return person.world.relay.post(f"{person.path}/consents", {"event": "withdrawn", "purposes": list(BOTH)})


def waiters(connect_as):
    """How many sessions wait for an advisory lock."""
    with connect_as("postgres", "forgetmenot", autocommit=True) as connection:
        query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        return connection.execute(query).fetchone()[0]


def until(condition):
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to pass within five seconds")


class Running:
    """A call in a thread of its own; `result` waits for it."""

    def __init__(self, person, call):
        self._result = []
        self._thread = threading.Thread(target=lambda: self._result.extend(person.world.at_once(call)))
        self._thread.start()

    @property
    def done(self):
        return not self._thread.is_alive()

    @property
    def result(self):
        self._thread.join(timeout=10)
        return self._result[0]


# --- one withdrawal, one user of the data -----------------------------------------------------------------------------


def test_write_that_has_begun_finishes_before_the_withdrawal(mia, connect_as):
    with scope(mia.world.id), narrow(mia.id):
        assert decide(mia.ref_inside(), Act.STORE, caller=mia.world.principal).allowed
        withdrawing = Running(mia, lambda: withdraw_over_rest(mia))
        until(lambda: waiters(connect_as) == 1)

        remember(mia.ref_inside(), [NewMemory("In time.")], None, principal=mia.world.principal, project_id=None)
        assert not withdrawing.done

    assert withdrawing.result.status_code == 201
    assert mia.tries("Too late.").json()["code"] == "consent_withdrawn"
    mia.says("given")
    assert mia.texts("time late") == ["In time."]


def test_recall_that_has_begun_finishes_before_the_withdrawal(mia, connect_as):
    mia.remembers("Mia keeps bees.")
    with scope(mia.world.id), narrow(mia.id):
        decision = decide(mia.ref_inside(), Act.RECALL, caller=mia.world.principal)
        withdrawing = Running(mia, lambda: withdraw_over_rest(mia))
        until(lambda: waiters(connect_as) == 1)
        assert decision.allowed
        assert {each.state for each in consents_of_person()} == {LedgerEvent.GIVEN}

    assert withdrawing.result.status_code == 201
    assert mia.recall("bees")["personal"] == {"status": "refused", "code": "consent_withdrawn"}


@pytest.mark.parametrize("door", ["store", "recall", "list"])
def test_what_begins_during_a_withdrawal_waits_for_its_commit_and_is_refused(mia, connect_as, door):
    mia.remembers("Mia keeps bees.")
    calls = {
        "store": lambda: mia.tries("Too late.").json()["code"],
        "recall": lambda: mia.recall("bees")["personal"]["code"],
        "list": lambda: mia.world.agent.get(f"{mia.path}/memories").json()["code"],
    }
    with scope(mia.world.id), narrow(mia.id):
        withdraw_inside(mia)
        using = Running(mia, calls[door])
        until(lambda: waiters(connect_as) == 1)
        assert not using.done

    assert using.result == "consent_withdrawn"


def test_without_the_lock_it_would_still_be_a_yes(mia):
    """The control: whoever only reads the state during a withdrawal sees the old one. It is the lock that holds."""

    def read_without_lock():
        with scope(mia.world.id), narrow(mia.id):
            return {each.state for each in consents_of_person()}

    with scope(mia.world.id), narrow(mia.id):
        withdraw_inside(mia)
        assert mia.world.at_once(read_without_lock) == [{LedgerEvent.GIVEN}]


def test_withdrawal_that_is_rolled_back_changes_nothing(mia, connect_as):
    class ChangedMind(Exception):
        pass

    using = []

    def withdraw_and_think_better_of_it():
        withdraw_inside(mia)
        using.append(Running(mia, lambda: mia.tries("Mia keeps bees.")))
        until(lambda: waiters(connect_as) == 1)
        raise ChangedMind

    with pytest.raises(ChangedMind), scope(mia.world.id), narrow(mia.id):
        withdraw_and_think_better_of_it()

    assert using[0].result.status_code == 201
    assert len(mia.world.relay.get(f"{mia.path}/consents").json()["history"]) == 2


def test_newcomers_queue_behind_a_waiting_withdrawal(mia, connect_as):
    """A stream of readers must not keep a withdrawal waiting for ever."""
    with scope(mia.world.id), narrow(mia.id):
        decide(mia.ref_inside(), Act.RECALL, caller=mia.world.principal)
        withdrawing = Running(mia, lambda: withdraw_over_rest(mia))
        until(lambda: waiters(connect_as) == 1)
        newcomer = Running(mia, lambda: mia.recall("bees")["personal"]["code"])
        until(lambda: waiters(connect_as) == 2)

    assert withdrawing.result.status_code == 201
    assert newcomer.result == "consent_withdrawn"


def test_withdrawal_of_one_person_holds_up_nobody_else(mia):
    other = mia.world.person("max").consents()

    with scope(mia.world.id), narrow(mia.id):
        withdraw_inside(mia)
        (answer,) = mia.world.at_once(lambda: other.tries("Max keeps bees."))

    assert answer.status_code == 201


# --- many at once -----------------------------------------------------------------------------------------------------


def ledger_and_state(person):
    with scope(person.world.id), narrow(person.id):
        pseudonym = subject_pseudonym(person.world.principal.tenant_epoch, person.ref_inside())
        reveal_pseudonym(pseudonym)
        return list(ledger_of(pseudonym)), consents_of_person()


def test_hundred_statements_at_once_leave_the_ledgers_last_word(mia):
    def speak(speaker):
        statuses = []
        for turn in range(17):
            event = "given" if (speaker + turn) % 2 else "withdrawn"
            body = {"event": event, "purposes": list(BOTH), "evidence": "m"}
            statuses.append(mia.world.relay.post(f"{mia.path}/consents", body).status_code)
        return statuses

    results = mia.world.at_once(*[lambda s=s: speak(s) for s in range(6)])

    statuses = [status for some in results for status in some]
    assert (len(statuses), set(statuses)) == (102, {201})
    ledger, standing = ledger_and_state(mia)
    assert len(ledger) == 2 + 2 * 102
    assert ledger == sorted(ledger, key=lambda event: event.recorded_at)
    last = {event.purpose: event for event in ledger}
    assert {each.purpose: each.event_id for each in standing} == {key: event.id for key, event in last.items()}
    assert {each.purpose: each.state for each in standing} == {key: event.event for key, event in last.items()}
    assert mia.decides(Act.RECALL).allowed == (last["memory.store"].event == "given")


def test_everything_about_a_person_at_once_ends_without_deadlock(mia, connect_as):
    """Statements, account changes, writes, recalls and forgetting take their locks in different orders."""
    doomed = [mia.remembers(f"Doomed bees {n}.") for n in range(8)]
    agent, relay = mia.world.agent, mia.world.relay
    memories, consents, account = f"{mia.path}/memories", f"{mia.path}/consents", mia.path

    def speak(n):
        event = ("withdrawn", "given")[n % 2]
        return relay.post(consents, {"event": event, "purposes": list(BOTH), "evidence": "m"})

    loops = {
        "speak": speak,
        "account": lambda n: mia.world.admin.put(account, {"name": f"Mia {n}"}),
        "write": lambda n: agent.post(memories, {"text": f"Bees {n}.", "session": f"s{n % 3}"}),
        "write too": lambda n: agent.post(memories, {"text": f"More bees {n}.", "session": f"s{n % 3}"}),
        "recall": lambda n: agent.post(f"{mia.path}/recall", {"query": "bees"}),
        "forget": lambda n: agent.delete(f"{memories}/{doomed[n % 8]}"),
    }

    results = mia.world.at_once(
        *[lambda call=call: [call(n).status_code for n in range(16)] for call in loops.values()]
    )

    allowed = {
        "speak": {201},
        "account": {200},
        "write": {201, 403},
        "write too": {201, 403},
        "recall": {200},
        "forget": {200, 404},
    }
    assert {name: set(statuses) - allowed[name] for name, statuses in zip(loops, results, strict=True)} == {
        name: set() for name in loops
    }
    assert deadlocks(connect_as) == 0


def deadlocks(connect_as):
    with connect_as("postgres", "forgetmenot", autocommit=True) as connection:
        query = "SELECT deadlocks FROM pg_stat_database WHERE datname = 'forgetmenot'"
        return connection.execute(query).fetchone()[0]


def test_no_write_lands_after_a_withdrawal_that_was_answered(mia):
    """Whatever the interleaving: each memory was recorded before the withdrawal that was in force when it was tried."""
    refused_after, stop = [], threading.Event()
    writing = [threading.Event() for _ in range(3)]

    def write(begun):
        statuses = []
        while not stop.is_set():
            statuses.append(mia.tries("Bees.").status_code)
            begun.set()
        return statuses

    def withdraw():
        assert all(begun.wait(10) for begun in writing)
        assert withdraw_over_rest(mia).status_code == 201
        refused_after.extend(mia.tries("Bees.").status_code for _ in range(10))
        stop.set()

    results = mia.world.at_once(*[lambda b=b: write(b) for b in writing], withdraw)

    assert refused_after == [403] * 10
    for statuses in results[:3]:
        assert statuses == sorted(statuses)  # 201 … 201 403 … 403: never a success after a refusal
        assert 201 in statuses
    log = mia.world.admin.get("/v1/audit/events?limit=200&subject=mia").json()["items"]
    actions = [event["action"] for event in log]
    assert "memory.memory.stored" not in actions[: actions.index("consent.statement.recorded")]
