"""What people said, entered over REST: evidence, notices, replays, and a ledger that only grows."""

import hashlib
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from accounts.scopes import Scope
from accounts.tenancy import scope
from consent.services.purposes import PurposeText, publish_purpose
from consent.types import PurposeKey
from tests.world import TEST_ACTOR

STORE_NOTICE = "Remember what you say, so that it need not be said twice."


def say(person, event="given", purposes=("memory.store",), **facts):
    body = {"event": event, "purposes": list(purposes), "evidence": "msg-1"} | facts
    return person.world.relay.post(f"{person.path}/consents", body)


def standing(person):
    answer = person.world.relay.get(f"{person.path}/consents").json()
    return {each["purpose"]: each["state"] for each in answer["consents"]}


def history(person):
    """Of the first page, newest first."""
    return person.world.relay.get(f"{person.path}/consents").json()["history"]


def code(answer):
    return answer.status_code, answer.json()["code"]


def publish(world, key, text):
    with scope(world.id):
        return publish_purpose(key, text, actor=TEST_ACTOR)


# --- who may say it, and what shows it --------------------------------------------------------------------------------


def test_key_without_the_scope_cannot_give_consent(mia):
    answer = mia.world.agent.post(
        f"{mia.path}/consents", {"event": "given", "purposes": ["memory.store"], "evidence": "trust me"}
    )

    assert code(answer) == (403, "scope_missing")
    assert "consent:relay" in answer.json()["detail"]
    assert standing(mia) == {}


def test_reading_consents_needs_its_own_scope(mia):
    writer = mia.world.key("writer", {Scope.CONSENT_RELAY})

    assert code(writer.get(f"{mia.path}/consents")) == (403, "scope_missing")


@pytest.mark.parametrize("facts", [{"evidence": ""}, {"evidence": "", "spoken_by": "agent"}])
def test_relayed_yes_without_evidence_is_refused(mia, facts):
    assert code(say(mia, **facts)) == (400, "evidence_missing")
    assert standing(mia) == {}


@pytest.mark.parametrize("event", ["refused", "withdrawn"])
def test_relayed_no_needs_no_evidence(mia, event):
    assert say(mia, event, evidence="").status_code == 201
    assert standing(mia) == {"memory.store": event}


@pytest.mark.parametrize("event", ["expired", "renewed", "imported"])
def test_what_the_system_enters_cannot_be_said_over_rest(mia, event):
    assert code(say(mia, event)) == (400, "validation_failed")


# --- what it does -----------------------------------------------------------------------------------------------------


def test_yes_opens_exactly_the_purposes_named(mia):
    answer = say(mia, purposes=["memory.store", "memory.personalise"])

    assert answer.status_code == 201
    assert [each["purpose"] for each in answer.json()["consents"]] == ["memory.personalise", "memory.store"]
    assert mia.tries("I like tea.").status_code == 201
    assert code(mia.tries("I am diabetic.", categories=["health"])) == (403, "consent_required")


def test_withdrawing_one_purpose_leaves_the_others(mia):
    mia.consents()
    kept = mia.remembers("Mia likes tea.")

    say(mia, "withdrawn", ["memory.personalise"])

    assert standing(mia) == {"memory.personalise": "withdrawn", "memory.store": "given"}
    assert mia.recall("tea")["personal"] == {"status": "refused", "code": "consent_withdrawn"}
    assert mia.listed() == [kept]
    assert mia.tries("Mia likes rusk.").status_code == 201


def test_refusal_gives_its_own_code(mia):
    say(mia, "refused")

    assert code(mia.tries("Mia likes tea.")) == (403, "consent_refused")


def test_withdrawal_closes_writing_listing_and_recall_at_once(mia):
    mia.consents()
    memory = mia.remembers("Mia likes tea.")

    say(mia, "withdrawn", ["memory.store", "memory.personalise"])

    assert code(mia.tries("Mia likes rusk.")) == (403, "consent_withdrawn")
    assert code(mia.world.agent.get(f"{mia.path}/memories")) == (403, "consent_withdrawn")
    assert code(mia.world.agent.get(f"{mia.path}/memories/{memory}")) == (403, "consent_withdrawn")
    assert mia.texts("tea") == []


def test_giving_again_after_a_withdrawal_brings_everything_back(mia):
    mia.consents()
    memory = mia.remembers("Mia likes tea.")
    mia.says("withdrawn")

    mia.says("given")

    assert mia.listed() == [memory]


@pytest.mark.parametrize(
    ("facts", "pointer"),
    [
        ({"purposes": []}, "/purposes"),
        ({"purposes": ["memory.store", "memory.store"]}, "/purposes"),
        ({"purposes": ["memory.everything"]}, "/purposes/0"),
        ({"event": "maybe"}, "/event"),
        ({"spoken_by": "mia"}, "/spoken_by"),
        ({"language": "english please"}, "/language"),
        ({"surface": "A Form"}, "/surface"),
        ({"evidence": "x" * 2001}, "/evidence"),
        ({"evidence": 5}, "/evidence"),
        ({"occurred_at": "2026-05-03T14:20:00"}, "/occurred_at"),
        ({"notice_digests": ["short"]}, "/notice_digests/0"),
        ({"actor": "me"}, "/actor"),
    ],
)
def test_malformed_statement_is_named(mia, facts, pointer):
    answer = say(mia, **facts)

    assert code(answer) == (400, "validation_failed")
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_statement_from_the_future_is_refused(mia):
    answer = say(mia, occurred_at=(datetime.now(UTC) + timedelta(hours=1)).isoformat())

    assert code(answer) == (400, "validation_failed")
    assert answer.json()["errors"][0]["pointer"] == "/occurred_at"


def test_statement_that_has_run_out_already_is_refused(mia):
    answer = say(mia, valid_until=(datetime.now(UTC) - timedelta(seconds=1)).isoformat())

    assert answer.json()["errors"][0]["pointer"] == "/valid_until"
    assert standing(mia) == {}


# --- replays ----------------------------------------------------------------------------------------------------------


def test_old_yes_replayed_after_a_withdrawal_is_refused(mia):
    spoken = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    assert say(mia, occurred_at=spoken).status_code == 201
    say(mia, "withdrawn")

    answer = say(mia, occurred_at=spoken)

    assert code(answer) == (400, "validation_failed")
    assert answer.json()["errors"][0]["pointer"] == "/occurred_at"
    assert standing(mia) == {"memory.store": "withdrawn"}


def test_withdrawal_entered_late_is_not_undone_by_sending_its_yes_again(mia):
    yes_at = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    before_that = (datetime.now(UTC) - timedelta(hours=2)).isoformat()
    say(mia, occurred_at=yes_at)
    say(mia, "withdrawn", occurred_at=before_that)

    again = say(mia, occurred_at=yes_at)

    assert again.status_code == 400
    assert standing(mia) == {"memory.store": "withdrawn"}


def test_replay_naming_one_stale_purpose_enters_nothing(mia):
    spoken = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    say(mia, occurred_at=spoken)
    say(mia, "withdrawn")

    answer = say(mia, purposes=["memory.personalise", "memory.store"], occurred_at=spoken)

    assert answer.status_code == 400
    assert standing(mia) == {"memory.store": "withdrawn"}


def test_no_that_arrives_late_still_counts(mia):
    say(mia)

    say(mia, "withdrawn", occurred_at=(datetime.now(UTC) - timedelta(days=1)).isoformat())

    assert standing(mia) == {"memory.store": "withdrawn"}


# --- notices ----------------------------------------------------------------------------------------------------------


def test_purposes_show_the_exact_text_and_its_digest(acme):
    items = {item["key"]: item for item in acme.relay.get("/v1/purposes").json()["items"]}

    assert sorted(items) == sorted(key.value for key in PurposeKey)
    notice = items["memory.store"]["notices"][0]
    assert notice == {
        "language": "en",
        "text": STORE_NOTICE,
        "digest": hashlib.sha256(STORE_NOTICE.encode()).hexdigest(),
    }
    assert items["memory.sensitive"]["legal_basis"] == "explicit_consent"


def test_yes_to_an_older_notice_is_refused(mia):
    shown = hashlib.sha256(STORE_NOTICE.encode()).hexdigest()
    publish(mia.world, PurposeKey.STORE, PurposeText({"en": "We keep what you say for a year."}))

    answer = say(mia, notice_digests=[shown])

    assert code(answer) == (409, "notice_outdated")
    assert standing(mia) == {}


def test_yes_to_the_current_notice_names_its_version_and_language(mia):
    german = "Wir merken uns ein Jahr lang, was Sie sagen."
    text = PurposeText({"en": "We keep what you say for a year.", "de": german})
    assert publish(mia.world, PurposeKey.STORE, text) == 2

    assert say(mia, language="de-CH", notice_digests=[hashlib.sha256(german.encode()).hexdigest()]).status_code == 201

    (entry,) = history(mia)
    assert (entry["version"], entry["language"]) == (2, "de")
    assert entry["notice_digest"] == hashlib.sha256(german.encode()).hexdigest()


def test_every_purpose_named_needs_its_own_digest(mia):
    shown = hashlib.sha256(STORE_NOTICE.encode()).hexdigest()

    answer = say(mia, purposes=["memory.store", "memory.personalise"], notice_digests=[shown])

    assert code(answer) == (409, "notice_outdated")


def test_language_without_a_notice_falls_back_to_english(mia):
    say(mia, language="pt-BR")

    assert history(mia)[0]["language"] == "en"


def test_new_version_leaves_earlier_consents_in_force(mia):
    say(mia)
    publish(mia.world, PurposeKey.STORE, PurposeText({"en": "New words."}))

    assert mia.tries("Mia likes tea.").status_code == 201
    assert history(mia)[0]["version"] == 1


# --- the ledger -------------------------------------------------------------------------------------------------------


def test_ledger_keeps_everything_that_was_said_in_order(mia):
    said = ["given", "withdrawn", "given", "refused", "given"]
    for event in said:
        say(mia, event)

    entries = history(mia)

    assert [entry["event"] for entry in entries] == said[::-1]
    assert len({entry["id"] for entry in entries}) == 5
    assert all(entry["notice_digest"] == hashlib.sha256(STORE_NOTICE.encode()).hexdigest() for entry in entries)


def test_person_who_said_nothing_has_an_empty_ledger(mia):
    answer = mia.world.relay.get(f"{mia.path}/consents").json()

    assert answer == {"consents": [], "history": [], "next_cursor": None}


def test_pages_of_the_ledger_cover_it_once_and_name_what_they_show_in_the_log(mia):
    entered = [say(mia, event).json()["event_ids"][0] for event in ("given", "withdrawn", "given", "refused", "given")]

    pages, cursor = [], ""
    while cursor is not None:
        page = mia.world.relay.get(f"{mia.path}/consents?limit=2{f'&cursor={cursor}' if cursor else ''}").json()
        pages.append([entry["id"] for entry in page["history"]])
        cursor = page["next_cursor"]
        assert [each["state"] for each in page["consents"]] == ["given"]

    newest = entered[::-1]
    assert pages == [newest[:2], newest[2:4], newest[4:]]
    events = mia.world.admin.get("/v1/audit/events?action=consent.ledger.read").json()["items"]
    read = [event["resource_ids"] for event in events[::-1]]
    # Where the person stands is shown with each page, and named by the event it rests on.
    assert read == [newest[:2], [*newest[2:4], newest[0]], [newest[4], newest[0]]]
    assert [event["counts"]["items"] for event in events[::-1]] == [2, 2, 1]


def test_statement_sent_again_says_where_the_person_stands_now(mia):
    body = {"event": "given", "purposes": ["memory.store"], "evidence": "msg-1"}
    first = mia.world.relay.post(f"{mia.path}/consents", body, Idempotency_Key="one")
    say(mia, "withdrawn")

    again = mia.world.relay.post(f"{mia.path}/consents", body, Idempotency_Key="one")

    assert (again.status_code, again["Idempotency-Replayed"]) == (201, "true")
    assert again.json()["event_ids"] == first.json()["event_ids"]
    assert [each["state"] for each in first.json()["consents"]] == ["given"]
    assert [each["state"] for each in again.json()["consents"]] == ["withdrawn"]
    assert len(history(mia)) == 2


@pytest.mark.parametrize(
    ("role", "refusal"),
    [("fmn_app", psycopg.errors.InsufficientPrivilege), ("postgres", psycopg.errors.RaiseException)],
)
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE consent_consentevent SET event = 'given'",
        "DELETE FROM consent_consentevent",
        "TRUNCATE consent_consentevent CASCADE",
    ],
)
def test_ledger_is_append_only_in_the_database(mia, connect_as, role, refusal, sql):
    """The application lacks the right; whoever has every right meets the trigger."""
    say(mia, "withdrawn")

    with connect_as(role) as connection:
        connection.execute("SELECT set_config('app.tenant_id', %s, true)", [str(mia.world.id)])
        connection.execute("SELECT set_config('app.subject_id', '*', true)")
        with pytest.raises(refusal):
            connection.execute(sql)

    assert [entry["event"] for entry in history(mia)] == ["withdrawn"]


def test_evidence_is_sealed_and_never_shown(mia, connect_as):
    secret = "chat 4711: yes, please remember my birthday"

    answer = say(mia, evidence=secret)

    assert secret not in answer.content.decode()
    assert secret not in mia.world.relay.get(f"{mia.path}/consents").content.decode()
    with connect_as("fmn_backup") as connection:
        rows = connection.execute(
            "SELECT evidence_sealed, c::text FROM consent_consentevent c WHERE tenant_id = %s", [mia.world.id]
        ).fetchall()
    assert len(rows) == 1
    assert secret.encode() not in bytes(rows[0][0])
    assert secret not in rows[0][1]


def test_ledger_names_the_person_by_pseudonym_alone(mia, connect_as):
    say(mia)

    with connect_as("fmn_backup") as connection:
        pseudonym, row = connection.execute(
            "SELECT subject_pseudonym, c::text FROM consent_consentevent c WHERE tenant_id = %s", [mia.world.id]
        ).fetchone()
    assert len(pseudonym) == 32
    assert str(mia.id) not in row
    assert mia.id.hex not in row
    assert "mia" not in row


def test_reading_a_ledger_is_recorded(mia):
    say(mia)
    history(mia)

    events = mia.world.admin.get("/v1/audit/events?action=consent.ledger.read&subject=mia").json()["items"]

    assert [event["counts"] for event in events] == [{"items": 1}]
