"""The one function that says yes: its table, its reasons and their order, and that the ledger's last word decides."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.errors import SubjectErased
from accounts.keys import subject_pseudonym
from accounts.models import Subject
from accounts.tenancy import narrow, reveal_pseudonym, scope
from audit.models import AuditEvent
from consent.errors import ConsentRequired
from consent.models import ConsentEvent
from consent.policy import decide, decide_for_tenant, require
from consent.selectors import consents_of_person, ledger_of
from consent.services.statements import record_statement
from consent.types import Act, ConsentActor, LedgerEvent, PurposeKey, Statement
from memory.services.remembering import NewMemory, remember
from memory.tasks import embed_pending

# trust.md 4, written out: the table is not read from the code it checks.
TABLE = {
    Act.STORE: {"memory.store"},
    Act.RECALL: {"memory.store", "memory.personalise"},
    Act.LIST: {"memory.store"},
    Act.DERIVE: {"memory.store", "memory.infer"},
    Act.SHARE: {"memory.store", "memory.personalise", "memory.share"},
    Act.SEND: {"memory.store", "provider.send"},
    Act.FORGET: set(),
    Act.CONSENT: set(),
    Act.ACCOUNT: set(),
    Act.OWN: set(),
}
STOPPED = {Act.STORE, Act.RECALL, Act.LIST, Act.DERIVE, Act.SHARE, Act.SEND}
REASON_AFTER = {
    LedgerEvent.GIVEN: "",
    LedgerEvent.RENEWED: "",
    LedgerEvent.IMPORTED: "",
    LedgerEvent.REFUSED: "consent_refused",
    LedgerEvent.WITHDRAWN: "consent_withdrawn",
    LedgerEvent.EXPIRED: "consent_expired",
}


def statement(event, *purposes, spoken_by=ConsentActor.AGENT, **facts):
    said = {"language": "en", "surface": "chat", "method": "typed", "evidence": "msg-1"} | facts
    return Statement(event=event, purposes=purposes, spoken_by=spoken_by, **said)


def enter(person, *statements):
    with scope(person.world.id), narrow(person.id):
        for each in statements:
            record_statement(person.ref_inside(), each, caller=person.world.principal)


def set_subject(person, **values):
    with scope(person.world.id):
        Subject.objects.filter(id=person.id).update(**values)


# --- the table --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", TABLE, ids=str)
def test_act_is_allowed_with_exactly_its_purposes(mia, act):
    if TABLE[act]:
        mia.consents(*TABLE[act])

    decision = mia.decides(act)

    assert decision.allowed
    assert decision.reason == ""
    assert set(decision.purposes) == TABLE[act]
    assert len(decision.consent_refs) == len(TABLE[act])


@pytest.mark.parametrize(
    ("act", "missing"), [(act, purpose) for act, needed in TABLE.items() for purpose in sorted(needed)]
)
def test_act_is_refused_when_one_of_its_purposes_is_missing(mia, act, missing):
    others = {key.value for key in PurposeKey} - {missing}
    mia.consents(*others)

    decision = mia.decides(act)

    assert not decision.allowed
    assert decision.reason == "consent_required"


@pytest.mark.parametrize("act", [act for act in TABLE if not TABLE[act]], ids=str)
def test_rights_and_account_data_need_no_consent(mia, act):
    assert mia.decides(act).allowed


def test_every_act_is_in_the_table():
    assert set(Act) == set(TABLE) | {Act.TENANT}


def test_directory_is_the_only_act_about_no_person(acme):
    allowed = {act for act in Act if decide_for_tenant(act, caller=acme.principal).allowed}

    assert allowed == {Act.TENANT}


# --- reasons ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", LedgerEvent, ids=str)
def test_reason_is_the_ledgers_last_word(mia, event):
    enter(mia, statement(LedgerEvent.GIVEN, PurposeKey.STORE), statement(event, PurposeKey.STORE))

    assert mia.decides(Act.STORE).reason == REASON_AFTER[event]


def test_first_needed_purpose_gives_the_reason(mia):
    mia.says("refused", "memory.store")
    mia.says("withdrawn", "memory.personalise")

    assert mia.decides(Act.RECALL).reason == "consent_refused"

    mia.consents("memory.store")
    assert mia.decides(Act.RECALL).reason == "consent_withdrawn"


def test_sensitive_is_asked_for_last(mia):
    assert mia.decides(Act.STORE, sensitive=True).reason == "consent_required"

    mia.says("refused", "memory.sensitive")
    assert mia.decides(Act.STORE, sensitive=True).reason == "consent_required"

    mia.consents("memory.store")
    assert mia.decides(Act.STORE, sensitive=True).reason == "consent_refused"
    assert mia.decides(Act.STORE).allowed

    mia.consents("memory.sensitive")
    assert mia.decides(Act.STORE, sensitive=True).allowed


def test_consent_ends_when_its_time_is_up(mia):
    until = datetime.now(UTC) + timedelta(seconds=0.4)
    mia.says("given", valid_until=until.isoformat())
    assert mia.decides(Act.RECALL).allowed

    while datetime.now(UTC) <= until:
        time.sleep(0.02)

    decision = mia.decides(Act.RECALL)
    assert (decision.allowed, decision.reason) == (False, "consent_expired")
    assert decision.granted == frozenset()
    assert mia.tries("I like tea.").json()["code"] == "consent_expired"


@pytest.mark.parametrize("state", ["restricted", "objected"])
@pytest.mark.parametrize("act", TABLE, ids=str)
def test_restriction_stops_use_but_not_rights(mia, act, state):
    mia.consents(*(key.value for key in PurposeKey))
    set_subject(mia, state=state)

    decision = mia.decides(act)

    assert decision.reason == ("subject_restricted" if act in STOPPED else "")
    assert decision.allowed == (act not in STOPPED)


def test_restriction_comes_before_missing_consent(mia):
    set_subject(mia, state="restricted")

    assert mia.decides(Act.RECALL).reason == "subject_restricted"


def test_restricted_person_is_not_recalled_over_rest(mia):
    mia.consents().remembers("Mia sings in the Bach choir.")
    set_subject(mia, state="restricted")

    answer = mia.recall("Bach choir")

    assert answer["personal"] == {"status": "refused", "code": "subject_restricted"}
    assert answer["memories"] == []
    assert mia.world.agent.get(f"{mia.path}/memories").json()["code"] == "subject_restricted"


def test_childs_own_yes_is_not_enough(acme):
    child = acme.person("kid", age_band="child")
    answer = acme.relay.post(
        f"{child.path}/consents",
        {"event": "given", "purposes": ["memory.store"], "evidence": "m", "spoken_by": "person"},
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "guardian_required")

    child.says("given", "memory.store", spoken_by="guardian")
    assert child.decides(Act.STORE).allowed


def test_yes_of_an_adult_ends_when_they_turn_out_to_be_a_child(mia):
    mia.says("given", "memory.store", spoken_by="person")
    set_subject(mia, age_band="child")

    decision = mia.decides(Act.STORE)

    assert decision.reason == "guardian_required"
    assert decision.granted == frozenset()


def test_child_may_refuse_without_a_guardian(acme):
    child = acme.person("kid", age_band="child")

    child.says("refused", "memory.store")

    assert child.decides(Act.STORE).reason == "consent_refused"


def test_erased_person_is_gone_for_every_act(mia):
    mia.consents()
    ref = mia.ref()
    set_subject(mia, state="erased")

    with pytest.raises(SubjectErased), scope(mia.world.id), narrow(mia.id):
        decide(ref, Act.FORGET, caller=mia.world.principal)


def test_granted_holds_all_that_is_in_force(mia):
    mia.consents("memory.store", "memory.infer", "improve")
    mia.says("withdrawn", "improve")

    assert mia.decides(Act.LIST).granted == {"memory.store", "memory.infer"}


def test_refusal_is_recorded_with_its_reason(mia):
    with pytest.raises(ConsentRequired), scope(mia.world.id), narrow(mia.id):
        require(decide(mia.ref_inside(), Act.RECALL, caller=mia.world.principal))

    with scope(mia.world.id):
        row = AuditEvent.objects.get(tenant_id=mia.world.id, action="consent.decision.refused")
    assert row.decision == "refused"
    assert b"consent_required" in bytes(row.canonical)


# --- at the moment it is asked ----------------------------------------------------------------------------------------


def waiting_for_vector(person, text):
    """A memory stored by words alone, as when the embedder is away."""
    with scope(person.world.id), narrow(person.id):
        (stored,) = remember(
            person.ref_inside(), [NewMemory(text)], None, principal=person.world.principal, project_id=None
        )
    return stored.id


def test_job_started_before_a_withdrawal_does_nothing_after_it(mia):
    mia.consents()
    waiting_for_vector(mia, "Mia collects postcards.")
    task = {"tenant_id": str(mia.world.id), "subject_id": str(mia.id)}
    mia.says("withdrawn")

    assert embed_pending(**task) == 0

    mia.consents()
    assert embed_pending(**task) == 1


def test_subject_read_long_ago_does_not_carry_its_old_state(mia):
    mia.consents()
    stale = mia.ref()
    set_subject(mia, state="restricted")

    with scope(mia.world.id), narrow(mia.id):
        decision = decide(stale, Act.STORE, caller=mia.world.principal)

    assert decision.reason == "subject_restricted"


# --- any history ------------------------------------------------------------------------------------------------------

EVENTS = st.tuples(st.sampled_from(LedgerEvent), st.sets(st.sampled_from(PurposeKey), min_size=1, max_size=3))
ANY_HISTORY = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@ANY_HISTORY
@given(history=st.lists(EVENTS, max_size=8))
def test_state_and_decision_follow_the_last_event_of_any_history(acme, history):
    person = acme.person(f"p-{time.monotonic_ns()}")
    last = {purpose.value: event for event, purposes in history for purpose in purposes}

    enter(person, *(statement(event, *sorted(purposes)) for event, purposes in history))

    with scope(acme.id), narrow(person.id):
        pseudonym = subject_pseudonym(acme.principal.tenant_epoch, person.ref_inside())
        reveal_pseudonym(pseudonym)
        ledger = list(ledger_of(pseudonym))
        standing = consents_of_person()
    assert {each.purpose: each.state for each in standing} == last
    assert {each.purpose: LedgerEvent(each.event) for each in ledger} == last  # later entries overwrite earlier ones
    assert {each.event_id for each in standing} <= {each.id for each in ledger}
    assert len(ledger) == sum(len(purposes) for _, purposes in history)
    for act, needed in TABLE.items():
        reasons = {REASON_AFTER[last[purpose]] if purpose in last else "consent_required" for purpose in needed}
        decision = person.decides(act)
        assert decision.allowed == (reasons <= {""})
        assert decision.reason in (reasons - {""} or {""})


def test_ledger_of_another_person_is_out_of_reach(acme):
    mia, max_ = acme.person("mia").consents(), acme.person("max").consents()
    assert max_.decides(Act.STORE).allowed

    with scope(acme.id), narrow(mia.id):
        pseudonym = subject_pseudonym(acme.principal.tenant_epoch, max_.ref_inside())
        assert list(ledger_of(pseudonym)) == []
        assert ConsentEvent.objects.count() == 0
