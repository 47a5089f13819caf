"""Event time and system time: when something held, when it runs out, and news that arrives late."""

from datetime import UTC, datetime, timedelta

import pytest

QUESTION = "Where does Mia work?"


@pytest.fixture
def mia(mia):
    return mia.consents()


def soon(**delta):
    return (datetime.now(UTC) + timedelta(**delta)).isoformat()


def code(answer):
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize("ahead", [{"minutes": 10}, {"days": 400}])
def test_what_has_not_happened_yet_is_refused(mia, ahead):
    answer = mia.tries("Mia moves to Oslo.", occurred_at=soon(**ahead))

    assert code(answer) == (400, "validation_failed")
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/occurred_at"]
    assert mia.listed() == []


def test_clock_that_runs_a_little_fast_is_tolerated(mia):
    assert mia.tries("Mia moved to Oslo.", occurred_at=soon(minutes=4)).status_code == 201


@pytest.mark.parametrize("field", ["occurred_at", "expires_at"])
@pytest.mark.parametrize(
    "value", ["2024-05-03T14:20:00", "2024-05-03", "yesterday", 1714746000, "2024-13-01T00:00:00Z", "", None]
)
def test_instant_without_offset_or_sense_is_refused(mia, field, value):
    assert code(mia.tries("Mia likes tea.", **{field: value})) == (400, "validation_failed")


@pytest.mark.parametrize("field", ["as_of", "created_after"])
def test_recall_wants_instants_with_offset_too(mia, field):
    answer = mia.world.agent.post(f"{mia.path}/recall", {"query": "tea", field: "2024-05-03T14:20:00"})

    assert code(answer) == (400, "validation_failed")


def test_offset_is_turned_into_utc(mia):
    memory = mia.remembers("Mia likes tea.", occurred_at="2024-05-03T01:20:00.123456+05:30")

    body = mia.world.agent.get(f"{mia.path}/memories/{memory}").json()

    assert body["occurred_at"] == "2024-05-02T19:50:00.123456Z"


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "1969-07-20T20:17:40Z"])
def test_the_far_past_is_kept(mia, moment):
    memory = mia.remembers("Mia's family came from Bergen.", occurred_at=moment)

    assert mia.world.agent.get(f"{mia.path}/memories/{memory}").json()["occurred_at"] == moment
    assert mia.texts("family Bergen") == ["Mia's family came from Bergen."]


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59-10:00"])
def test_instant_beyond_the_calendar_is_refused(mia, moment):
    assert code(mia.tries("Mia likes tea.", expires_at=moment)) == (400, "validation_failed")


def test_memory_runs_out(mia):
    parking = mia.remembers(
        "Mia parks at Oslo airport.", occurred_at="2024-05-01T00:00:00Z", expires_at="2024-05-08T00:00:00Z"
    )

    assert mia.texts("Oslo airport") == []
    assert mia.listed() == []
    assert mia.listed(history="true") == [parking]
    assert mia.texts("Oslo airport", as_of="2024-05-07T23:59:59Z") == ["Mia parks at Oslo airport."]
    assert mia.texts("Oslo airport", as_of="2024-05-08T00:00:00Z") == []


def test_memory_that_runs_out_later_is_current(mia):
    mia.remembers("Mia parks at Oslo airport.", expires_at=soon(hours=1))

    assert mia.texts("Oslo airport") == ["Mia parks at Oslo airport."]
    assert mia.texts("Oslo airport", as_of=soon(hours=2)) == []


def test_as_of_does_not_know_what_came_later(mia):
    mia.remembers("Mia works at the harbour.", occurred_at="2020-01-01T00:00:00Z")

    assert mia.texts(QUESTION, as_of="2019-12-31T23:59:59Z") == []
    assert mia.texts(QUESTION, as_of="2020-01-01T00:00:00Z") == ["Mia works at the harbour."]


def test_news_that_arrives_late_takes_its_place_in_the_past(mia):
    """Told today that Mia changed jobs in 2022."""
    harbour = mia.remembers("Mia works at the harbour.", occurred_at="2020-01-01T00:00:00Z")

    mia.remembers("Mia works at the library.", occurred_at="2022-01-01T00:00:00Z", supersedes=[harbour])

    assert mia.texts(QUESTION) == ["Mia works at the library."]
    assert mia.texts(QUESTION, as_of="2023-01-01T00:00:00Z") == ["Mia works at the library."]
    assert mia.texts(QUESTION, as_of="2021-01-01T00:00:00Z") == ["Mia works at the harbour."]


def test_correction_of_something_older_leaves_no_time_for_what_it_corrects(mia):
    """The replaced one began after the truth did, so at no moment did it hold."""
    wrong = mia.remembers("Mia works at the harbour.", occurred_at="2022-01-01T00:00:00Z")

    mia.remembers("Mia works at the library.", occurred_at="2020-01-01T00:00:00Z", supersedes=[wrong])

    for moment in ("2021-01-01T00:00:00Z", "2022-01-01T00:00:00Z", "2023-01-01T00:00:00Z"):
        assert mia.texts(QUESTION, as_of=moment) == ["Mia works at the library."]


def test_created_after_is_about_when_it_was_written(mia):
    first = mia.remembers("Mia likes green tea.", occurred_at="2024-01-01T00:00:00Z")
    written = mia.world.agent.get(f"{mia.path}/memories/{first}").json()["created_at"]
    mia.remembers("Mia likes black tea.", occurred_at="2020-01-01T00:00:00Z")

    assert mia.texts("tea", created_after=written) == ["Mia likes black tea."]


def test_everything_is_current_without_a_date(mia):
    mia.remembers("Mia likes green tea.")

    assert mia.texts("tea", as_of=soon(days=3650)) == ["Mia likes green tea."]
    assert mia.texts("tea", as_of=soon(minutes=-1)) == []
