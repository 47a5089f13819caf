"""The four scoring policies over REST: by request, by project, and that the order follows the formulas."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from accounts.tenancy import narrow, scope
from consent.policy import decide
from consent.types import Act
from memory import index as sealed_index
from memory.models import Memory

QUERY = "Which tea does Mia like?"
OLD_USED, IMPORTANT, NEW, CONFIRMED = "old and used", "important", "new", "confirmed"
DAYS = {OLD_USED: 90, IMPORTANT: 40, NEW: 0, CONFIRMED: 60}
NAMES = {"Mia likes green tea.": OLD_USED, "Mia likes black tea.": IMPORTANT, "Mia likes white tea.": NEW}
NAMES |= {"Mia likes mint tea.": CONFIRMED}


@pytest.fixture
def mia(mia):
    """Four memories alike in words: one old but used yesterday, one important, one new, one confirmed."""
    mia.consents()
    ids = {}
    for text, name in NAMES.items():
        ids[name] = mia.remembers(text, importance=0.8 if name == IMPORTANT else 0.1)
    now = datetime.now(UTC)
    with scope(mia.world.id), narrow(mia.id):
        decision = decide(mia.ref_inside(), Act.STORE, caller=mia.world.principal)
        by_id = {row.id: row for row in Memory.objects.all()}
        changes = {
            row_id: {"created_at": now - timedelta(days=DAYS[name]), "confirmed": name == CONFIRMED}
            for name, text_id in ids.items()
            for row_id in by_id
            if str(row_id) == text_id
        }
        assert len(sealed_index.change_entries(decision, changes=changes)) == 4
        used = Memory.objects.filter(id=ids[OLD_USED])
        used.update(access_count=30, last_accessed_at=now - timedelta(days=1))
    return mia


def ranked(person, **options):
    answer = person.recall(QUERY, limit=4, explain=True, **options)
    assert len(answer["memories"]) == 4
    return {NAMES[each["text"]]: each["explain"] for each in answer["memories"]}


def order(person, **options):
    """By score; the texts differ in one word, so relevance differs a little too and is taken out of the comparison."""
    return list(ranked(person, **options))


def test_evidence_is_relevance_with_small_boosts(mia):
    for name, explain in ranked(mia).items():
        terms = explain["terms"]
        assert explain["policy"] == "evidence"
        assert terms["relevance"] == pytest.approx(explain["relevance"])
        assert terms["importance"] == pytest.approx(0.05 * (0.8 if name == IMPORTANT else 0.1))
        assert terms["confirmation"] == pytest.approx(0.05 if name == CONFIRMED else 0.0)
        assert explain["score"] == pytest.approx(sum(terms.values()))


def test_weighted_counts_the_days_since_the_last_use(mia):
    idle = {OLD_USED: 1, IMPORTANT: 40, NEW: 0, CONFIRMED: 60}

    for name, explain in ranked(mia, scoring={"name": "weighted"}).items():
        importance = 0.8 if name == IMPORTANT else 0.1
        expected = 0.6 * explain["relevance"] + 0.2 * math.exp(-idle[name] / 7) + 0.2 * importance
        assert explain["score"] == pytest.approx(expected, abs=0.002)


def test_recency_counts_the_days_since_it_was_made(mia):
    for name, explain in ranked(mia, scoring={"name": "recency"}).items():
        expected = 0.8 * explain["relevance"] + 0.2 * math.exp(-DAYS[name] / 30)
        assert explain["score"] == pytest.approx(expected, abs=0.002)


def test_decay_halves_in_thirty_days_and_use_is_capped(mia):
    access = {OLD_USED: 2.0, IMPORTANT: 1.0, NEW: 1.0, CONFIRMED: 1.0}  # 1 + 0.1 * 30 would be 4

    for name, explain in ranked(mia, scoring={"name": "decay"}).items():
        confirmed = 2 if name == CONFIRMED else 1
        expected = explain["relevance"] * 0.5 ** (DAYS[name] / 30) * access[name] * confirmed
        assert explain["score"] == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    ("scoring", "first", "last"),
    [
        (
            {"name": "weighted", "similarity_weight": 0.0, "recency_weight": 0.0, "importance_weight": 1.0},
            IMPORTANT,
            None,
        ),
        (
            {"name": "weighted", "similarity_weight": 0.0, "recency_weight": 1.0, "importance_weight": 0.0},
            NEW,
            CONFIRMED,
        ),
        ({"name": "recency", "recency_weight": 1.0}, NEW, OLD_USED),
        ({"name": "decay", "rate_per_day": 10.0}, NEW, None),
        ({"name": "decay", "rate_per_day": 0.0, "access_cap": 10.0}, OLD_USED, None),
        ({"name": "decay", "rate_per_day": 0.0, "access_cap": 1.0, "confirmation_factor": 10.0}, CONFIRMED, None),
    ],
)
def test_order_changes_as_the_formula_says(mia, scoring, first, last):
    names = order(mia, scoring=scoring)

    assert names[0] == first
    assert last in (None, names[-1])


def test_project_sets_the_policy_and_a_request_may_name_another(mia):
    created = mia.world.admin.post(
        "/v1/projects", {"name": "fresh", "scoring": {"name": "recency", "recency_weight": 1.0}}
    )
    project = created.json()["id"]

    assert created.status_code == 201
    assert {explain["policy"] for explain in ranked(mia, project=project).values()} == {"recency"}
    assert order(mia, project=project)[0] == NEW
    assert {explain["policy"] for explain in ranked(mia, project=project, scoring={"name": "decay"}).values()} == {
        "decay"
    }
    assert {explain["policy"] for explain in ranked(mia).values()} == {"evidence"}


BAD = [
    {"name": "magic"},
    {"name": "weighted", "similarity": 0.5},
    {"name": "weighted", "similarity_weight": 1.5},
    {"name": "weighted", "similarity_weight": "0.5"},
    {"name": "weighted", "similarity_weight": True},
    {"name": "weighted", "similarity_weight": None},
    {"name": "recency", "recency_days": 0},
    {"name": "decay", "access_cap": 0.5},
    {"name": "evidence", "importance_boost": 0.5},
    {"name": 5},
    {"name": ["weighted"]},
    {"recency_weight": 0.5},
]


@pytest.mark.parametrize("scoring", BAD, ids=str)
def test_policy_that_does_not_exist_is_refused(mia, scoring):
    answer = mia.world.agent.post(f"{mia.path}/recall", {"query": QUERY, "scoring": scoring})

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/scoring"]


@pytest.mark.parametrize("scoring", BAD, ids=str)
def test_project_with_such_a_policy_is_refused(acme, scoring):
    """Stored, it would fail every recall in the project."""
    answer = acme.admin.post("/v1/projects", {"name": "broken", "scoring": scoring})

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
    assert acme.admin.get("/v1/projects").json()["items"] == []


def test_ranking_looks_from_the_moment_asked_about(mia):
    """As of 30 days ahead everything is 30 days older."""
    ahead = (datetime.now(UTC) + timedelta(days=30)).isoformat()

    explain = ranked(mia, scoring={"name": "decay"}, as_of=ahead)[NEW]

    assert explain["terms"]["decay"] == pytest.approx(0.5, abs=0.001)
