"""The audit log over REST: filters that narrow, never widen, pages, and that reading it is in it."""

from datetime import UTC, datetime, timedelta

import pytest

from accounts.scopes import Scope

URL = "/v1/audit/events"


def events(world, **query):
    answer = world.admin.get(f"{URL}?{'&'.join(f'{name}={value}' for name, value in query.items())}")
    assert answer.status_code == 200, answer.json()
    return answer.json()["items"]


def actions(world, **query):
    return [event["action"] for event in events(world, **query)]


def test_event_tells_who_did_what_to_whom_and_why(mia):
    mia.consents()
    memory = mia.remembers("Mia likes tea.")

    (event,) = events(mia.world, action="memory.memory.stored")

    assert event["actor"] == {"kind": "api_key", "id": str(mia.world.key_ids["agent"]), "on_behalf_of": ""}
    assert event["resource_kind"] == "memory"
    assert event["resource_ids"] == [memory]
    assert event["purposes"] == ["memory.store"]
    assert len(event["consent_refs"]) == 1
    assert (event["decision"], event["result"]) == ("allowed", "ok")
    assert event["counts"] == {"items": 1}
    assert len(event["subject_pseudonym"]) == 32
    assert "tea" not in str(event)


def test_request_id_of_the_answer_is_in_the_event_and_the_callers_is_not(mia):
    """The caller's is free text, for example about the person."""
    mia.consents()
    answer = mia.world.agent.post(f"{mia.path}/memories", {"text": "Mia likes tea."}, X_Request_Id="mia-likes-tea")

    (event,) = events(mia.world, action="memory.memory.stored")

    assert event["request_id"] == answer["X-Request-Id"]
    assert "likes" not in str(event)


def test_newest_event_comes_first(mia):
    mia.consents()
    mia.remembers("Mia likes tea.")

    assert actions(mia.world)[:3] == ["memory.memory.stored", "consent.statement.recorded", "accounts.subject.created"]


def test_reading_the_log_is_in_the_log(acme):
    first = events(acme, action="consent.log.read")
    second = events(acme, action="consent.log.read")

    assert first == []
    assert [event["counts"] for event in second] == [{"items": 0}]


def test_asking_for_one_persons_events_is_recorded_with_the_person(acme):
    acme.person("mia").consents()
    (said,) = events(acme, action="consent.statement.recorded", subject="mia")

    events(acme)
    everybody, of_mia = events(acme, action="consent.log.read")[:2]

    assert of_mia["subject_pseudonym"] == said["subject_pseudonym"] != ""
    assert everybody["subject_pseudonym"] == ""
    assert [event["id"] for event in events(acme, action="consent.log.read", subject="mia")] == [of_mia["id"]]


def test_refusals_can_be_asked_for(mia):
    mia.tries("Mia likes tea.")

    assert [(event["action"], event["reason"]) for event in events(mia.world, decision="refused")] == [
        ("consent.decision.refused", "consent_required")
    ]


def test_subject_filter_shows_one_persons_events_only(acme):
    for name in ("mia", "max"):
        acme.person(name).consents().remembers(f"{name} likes tea.")

    of_mia = events(acme, subject="mia")

    assert [event["action"] for event in of_mia] == [
        "memory.memory.stored",
        "consent.statement.recorded",
        "accounts.subject.created",
    ]
    assert len({event["subject_pseudonym"] for event in of_mia}) == 1


def test_subject_filter_takes_the_id_exactly(acme):
    """` mia` is another person than `mia`."""
    acme.person("mia").consents()
    answer = acme.admin.get(f"{URL}?subject=%20mia")

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_unknown_subject_is_not_found_rather_than_everybody(mia):
    answer = mia.world.admin.get(f"{URL}?subject=nobody")

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_actor_filter(mia):
    mia.consents()
    mia.remembers("Mia likes tea.")

    assert actions(mia.world, actor=mia.world.key_ids["agent"]) == ["memory.memory.stored"]
    assert actions(mia.world, actor=mia.world.key_ids["relay"]) == ["consent.statement.recorded"]


def test_since_and_before_bound_the_time(mia):
    mia.consents()
    (event,) = events(mia.world, action="consent.statement.recorded")
    at = datetime.fromisoformat(event["at"])
    later = (at + timedelta(microseconds=1)).isoformat().replace("+", "%2B")
    exactly = at.isoformat().replace("+", "%2B")

    assert actions(mia.world, action="consent.statement.recorded", since=exactly) == ["consent.statement.recorded"]
    assert actions(mia.world, action="consent.statement.recorded", since=later) == []
    assert actions(mia.world, action="consent.statement.recorded", before=exactly) == []
    assert actions(mia.world, action="consent.statement.recorded", before=later) == ["consent.statement.recorded"]


@pytest.mark.parametrize(("name", "found"), [("since", True), ("before", False)])
@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z"])
def test_moments_before_1970_are_moments_too(mia, name, found, moment):
    assert bool(events(mia.world, **{name: moment})) is found


@pytest.mark.parametrize(("name", "found"), [("since", False), ("before", True)])
def test_moments_at_the_end_of_the_calendar_are_moments_too(mia, name, found):
    assert bool(events(mia.world, **{name: "9999-12-31T23:59:59Z"})) is found


@pytest.mark.parametrize(
    "query",
    [
        "action=everything",
        "decision=maybe",
        "since=yesterday",
        "since=2026-05-03T14:20:00",
        "limit=0",
        "limit=201",
        "limit=many",
        "cursor=nonsense",
        "person=mia",
        "subject=a%2Fb",
        "subject=",
        "action=a.b.c&action=d.e.f",
    ],
)
def test_malformed_query_is_refused(acme, query):
    answer = acme.admin.get(f"{URL}?{query}")

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")


def test_pages_cover_everything_once(mia):
    mia.consents()
    for number in range(5):
        mia.remembers(f"Fact {number}.")

    seen, cursor = [], ""
    while cursor is not None:
        query = {"action": "memory.memory.stored", "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = mia.world.admin.get(f"{URL}?{'&'.join(f'{n}={v}' for n, v in query.items())}").json()
        seen += [event["id"] for event in page["items"]]
        cursor = page["next_cursor"]

    assert len(seen) == len(set(seen)) == 5
    assert seen == sorted(seen, reverse=True)


def test_other_tenants_events_are_out_of_reach(acme, zenith):
    at_zenith = {event["id"] for event in events(zenith)}
    assert at_zenith

    assert not at_zenith & {event["id"] for event in events(acme)}
    assert actions(acme, actor=zenith.key_ids["agent"]) == []


def test_log_needs_its_own_scope(acme):
    answer = acme.key("rest", set(Scope) - {Scope.AUDIT_READ}).get(URL)

    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")


def test_event_cannot_be_written_or_removed_over_rest(acme):
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert acme.admin.call(method, URL, {}).status_code == 405


def test_time_of_an_event_is_utc_to_the_microsecond(mia):
    (event,) = events(mia.world, action="accounts.subject.created")

    assert event["at"].endswith("Z")
    assert abs(datetime.fromisoformat(event["at"]) - datetime.now(UTC)) < timedelta(minutes=1)
