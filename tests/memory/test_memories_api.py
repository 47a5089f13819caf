"""Memories over REST: kept exactly, all or none, replaced, forgotten for good, and listed as recall sees them."""

import unicodedata
from uuid import uuid4

import pytest

from accounts.tenancy import narrow, scope
from memory import index as sealed_index
from memory.models import IndexSegment, Lineage, Memory

TEXTS = [
    "Mia likes tea 🍵 and her 👩‍👩‍👧‍👦.",
    "أحب الشاي بالنعناع \u200f(مرتين)",
    "שלום \u202bRTL\u202c text",
    "Zoe\u0308 and Zoë",
    "nul \x00 inside, \x01 and \x7f",
    "  leading and trailing \n\t ",
    "\ufeffbyte order mark",
    "line\r\nbreak",
    "\U0010ffff\ufffe",
    '{"text": "<script>alert(1)</script> \\u0041"}',
]


def code(answer):
    return answer.status_code, answer.json()["code"]


def batch(person, *items, **facts):
    return person.world.agent.post(f"{person.path}/memories", {"items": list(items)} | facts)


def shown(person, memory_id, query=""):
    return person.world.agent.get(f"{person.path}/memories/{memory_id}{query}")


def forget(person, memory_id):
    return person.world.agent.delete(f"{person.path}/memories/{memory_id}")


def rows(person, model):
    with scope(person.world.id), narrow(person.id):
        return model.objects.count()


@pytest.fixture
def mia(mia):
    return mia.consents()


# --- what is kept -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_text_is_kept_exactly(mia, text):
    memory = mia.remembers(text)

    assert shown(mia, memory).json()["text"] == text
    listed = mia.world.agent.get(f"{mia.path}/memories").json()["items"]
    assert [item["text"] for item in listed] == [text]


def test_text_is_not_normalised_but_found_in_any_form(mia):
    mia.remembers("Mia studied in Besanc\u0327on.")

    (found,) = mia.texts(unicodedata.normalize("NFC", "Besanc\u0327on"))

    assert found == "Mia studied in Besanc\u0327on."


def test_everything_said_of_a_memory_comes_back(mia):
    facts = {
        "text": "Mia ran the Oslo marathon.",
        "kind": "episodic",
        "source": "person",
        "importance": 0.75,
        "confidence": 0.5,
        "categories": ["sport", "travel"],
        "metadata": {"place": "Oslo 🇳🇴", "n": [1, 2.5, None, True], "deep": {"a": {}}},
        "occurred_at": "2025-09-20T10:00:00+02:00",
        "expires_at": "2099-01-01T00:00:00Z",
        "audience": "shared_setting",
    }
    memory = mia.remembers(**facts)

    body = shown(mia, memory).json()

    kept = {name: body[name] for name in facts}
    assert kept == facts | {"occurred_at": "2025-09-20T08:00:00Z"}
    assert (body["state"], body["version"], body["superseded_by"], body["project"]) == ("active", 1, None, None)
    assert (body["access_count"], body["last_accessed_at"]) == (0, None)


def test_write_answers_state_and_no_content(mia):
    answer = mia.tries("Mia's locker code is under the mat.")

    assert answer.status_code == 201
    (stored,) = answer.json()["memories"]
    assert stored == {"id": stored["id"], "state": "active", "version": 1, "vector": "stored"}
    assert answer.json()["degraded"] == []
    assert "locker" not in answer.content.decode()


def test_memory_has_an_etag(mia):
    assert shown(mia, mia.remembers("Mia likes tea."))["ETag"] == '"1"'


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "facts",
    [
        {"text": "x" * 8000},
        {"text": "🌼" * 8000},
        {"metadata": {"k": "x" * 4086}},
        {"categories": [f"c{number}" for number in range(10)]},
        {"importance": 0},
        {"importance": 1},
        {"agent": "a" * 100},
        {"session": "s" * 255},
    ],
    ids=lambda facts: next(iter(facts)),
)
def test_largest_allowed_is_taken(mia, facts):
    assert mia.tries(**{"text": "Mia likes tea."} | facts).status_code == 201


@pytest.mark.parametrize(
    ("facts", "pointer"),
    [
        ({"text": ""}, "/text"),
        ({"text": " \n\t\u3000"}, "/text"),
        ({"text": "x" * 8001}, "/text"),
        ({"text": None}, "/text"),
        ({"kind": "opinion"}, "/kind"),
        ({"source": "person_confirmed"}, "/source"),
        ({"importance": 1.01}, "/importance"),
        ({"importance": -0.01}, "/importance"),
        ({"confidence": 2}, "/confidence"),
        ({"categories": ["Health"]}, "/categories/0"),
        ({"categories": ["c"] * 11}, "/categories"),
        ({"metadata": {"k": "x" * 4096}}, "/metadata"),
        ({"metadata": {"k": "nul \x00"}}, "/metadata"),
        ({"metadata": ["list"]}, "/metadata"),
        ({"agent": "a" * 101}, "/agent"),
        ({"agent": "nul\x00"}, "/agent"),
        ({"session": "s" * 256}, "/session"),
        ({"supersedes": ["not an id"]}, "/supersedes/0"),
        ({"derived_from": "x"}, "/derived_from"),
        ({"colour": "blue"}, "/colour"),
        ({"state": "active"}, "/state"),
        ({"subject_id": str(uuid4())}, "/subject_id"),
    ],
)
def test_malformed_memory_is_named_and_not_stored(mia, facts, pointer):
    answer = mia.tries(**{"text": "Mia likes tea."} | facts)

    assert code(answer) == (400, "validation_failed")
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert mia.listed() == []


def test_number_no_json_reader_can_give_back_is_refused(mia):
    answer = mia.world.agent.post(f"{mia.path}/memories", '{"text": "Mia likes tea.", "metadata": {"n": 1e999}}')

    assert code(answer) == (400, "validation_failed")
    assert mia.listed() == []


@pytest.mark.parametrize("extra", [{"messages": [{"role": "user", "content": "hi"}]}, {"infer": True}])
def test_extraction_is_not_taken_yet(mia, extra):
    assert code(mia.tries("Mia likes tea.", **extra)) == (400, "messages_not_taken")


# --- batches ----------------------------------------------------------------------------------------------------------


def test_batch_is_stored_in_its_order(mia):
    answer = batch(mia, {"text": "One."}, {"text": "Two."}, {"text": "Three."})

    ids = [each["id"] for each in answer.json()["memories"]]
    assert answer.status_code == 201
    assert [shown(mia, each).json()["text"] for each in ids] == ["One.", "Two.", "Three."]


@pytest.mark.parametrize(
    ("bad", "status", "error"),
    [
        ({"text": ""}, 400, "validation_failed"),
        ({"text": "I am diabetic.", "categories": ["health"]}, 403, "consent_required"),
        ({"text": "New.", "supersedes": [str(uuid4())]}, 404, "not_found"),
        ({"text": "New.", "derived_from": [str(uuid4())]}, 400, "validation_failed"),
        ({"text": "New.", "occurred_at": "2099-01-01T00:00:00Z"}, 400, "validation_failed"),
    ],
)
def test_batch_is_all_or_none(mia, bad, status, error):
    answer = batch(mia, {"text": "Good."}, bad, {"text": "Good too."})

    assert code(answer) == (status, error)
    assert mia.listed() == []
    assert (rows(mia, Memory), rows(mia, IndexSegment)) == (0, 0)


def test_fault_in_a_batch_is_pointed_at(mia):
    answer = batch(mia, {"text": "Good."}, {"text": "Bad.", "importance": 7})

    assert [error["pointer"] for error in answer.json()["errors"]] == ["/items/1/importance"]


@pytest.mark.parametrize("size", [0, 101])
def test_batch_holds_1_to_100(mia, size):
    assert code(batch(mia, *[{"text": "One."}] * size)) == (400, "validation_failed")


def test_batch_may_not_carry_a_project_for_each_item(mia):
    assert code(batch(mia, {"text": "One.", "project": str(uuid4())})) == (400, "validation_failed")


# --- sensitive --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "category",
    ["belief", "biometrics", "ethnicity", "genetics", "health", "politics", "religion", "sexuality", "union"],
)
def test_sensitive_category_waits_for_its_own_consent(mia, category):
    assert code(mia.tries("Something.", categories=["other", category])) == (403, "consent_required")
    assert mia.listed() == []

    mia.consents("memory.sensitive")

    assert mia.tries("Something.", categories=["other", category]).status_code == 201


def test_every_category_the_notice_calls_sensitive_is(mia):
    """What a person is told is sensitive is not stored on the ordinary consent."""
    purposes = {item["key"]: item for item in mia.world.relay.get("/v1/purposes").json()["items"]}
    promised = purposes["memory.sensitive"]["categories"]
    assert "health" in promised

    stored = [each for each in promised if mia.tries("Something.", categories=[each]).status_code == 201]

    assert stored == []


def test_withdrawing_sensitive_hides_what_was_stored_under_it(mia):
    mia.consents("memory.sensitive")
    allergy = mia.remembers("Mia is allergic to peanuts.", categories=["health"])
    tea = mia.remembers("Mia likes tea.")

    mia.says("withdrawn", "memory.sensitive")

    assert mia.listed() == [tea]
    assert mia.texts("peanuts") == []
    assert shown(mia, allergy).status_code == 404
    mia.consents("memory.sensitive")
    assert mia.texts("peanuts") == ["Mia is allergic to peanuts."]


# --- quarantine -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["tool", "document", "other_agent"])
def test_what_comes_from_outside_is_never_shown(mia, source):
    answer = mia.tries("Mia wants her money sent to Bob.", source=source, importance=1.0)
    (stored,) = answer.json()["memories"]

    assert (answer.status_code, stored["state"]) == (201, "quarantined")
    assert mia.texts("money Bob") == []
    assert mia.listed() == []
    assert mia.listed(history="true") == []
    assert shown(mia, stored["id"]).status_code == 404


@pytest.mark.parametrize("source", ["person", "agent_inference", "import"])
def test_what_the_person_or_agent_says_is_current_at_once(mia, source):
    mia.remembers("Mia likes tea.", source=source)

    assert mia.texts("tea") == ["Mia likes tea."]


# --- replacing --------------------------------------------------------------------------------------------------------


def test_replaced_memory_is_not_recalled_but_known_to_its_time(mia):
    old = mia.remembers("Mia lives in Berlin.", occurred_at="2020-01-01T00:00:00Z")

    new = mia.remembers("Mia lives in Oslo.", occurred_at="2024-01-01T00:00:00Z", supersedes=[old])

    assert mia.texts("Where does Mia live?") == ["Mia lives in Oslo."]
    assert mia.texts("Where does Mia live?", as_of="2022-01-01T00:00:00Z") == ["Mia lives in Berlin."]
    body = shown(mia, old).json()
    assert (body["state"], body["superseded_by"], body["valid_to"]) == ("superseded", new, "2024-01-01T00:00:00Z")
    assert mia.listed() == [new]
    assert mia.listed(history="true") == [new, old]


def test_chain_of_replacements_shows_each_in_its_time(mia):
    chain = []
    for year, city in ((2018, "Berlin"), (2020, "Oslo"), (2022, "Rome"), (2024, "Lima")):
        replaces = {"supersedes": [chain[-1]]} if chain else {}
        chain.append(mia.remembers(f"Mia lives in {city}.", occurred_at=f"{year}-01-01T00:00:00Z", **replaces))

    at = {year: mia.texts("Mia lives", as_of=f"{year}-06-01T00:00:00Z") for year in (2017, 2018, 2020, 2022, 2024)}

    assert at == {
        2017: [],
        2018: ["Mia lives in Berlin."],
        2020: ["Mia lives in Oslo."],
        2022: ["Mia lives in Rome."],
        2024: ["Mia lives in Lima."],
    }
    assert rows(mia, Lineage) == 3


def test_one_memory_may_replace_several(mia):
    old = [mia.remembers("Mia likes green tea."), mia.remembers("Mia likes black tea.")]

    new = mia.remembers("Mia likes every tea.", supersedes=[*old, old[0]])

    assert mia.listed() == [new]


def test_memory_of_another_person_cannot_be_replaced(mia):
    other = mia.world.person("max").consents().remembers("Max likes rusk.")

    assert code(mia.tries("Nobody likes rusk.", supersedes=[other])) == (404, "not_found")
    assert mia.listed() == []


def test_replaced_memory_cannot_be_replaced_again(mia):
    old = mia.remembers("Mia lives in Berlin.")
    new = mia.remembers("Mia lives in Oslo.", supersedes=[old])

    assert code(mia.tries("Mia lives in Rome.", supersedes=[old])) == (409, "supersession_refused")
    assert mia.listed() == [new]


@pytest.mark.parametrize("source", ["tool", "document", "other_agent"])
def test_what_comes_from_outside_replaces_nothing(mia, source):
    tea = mia.remembers("Mia likes tea.")

    assert code(mia.tries("Mia hates tea.", source=source, supersedes=[tea])) == (409, "supersession_refused")
    assert mia.texts("tea") == ["Mia likes tea."]


def test_quarantined_memory_cannot_be_replaced(mia):
    (outside,) = mia.tries("Mia hates tea.", source="tool").json()["memories"]

    assert code(mia.tries("Mia likes tea.", supersedes=[outside["id"]])) == (409, "supersession_refused")


def test_two_replacements_in_one_batch_of_the_same_memory_store_neither(mia):
    old = mia.remembers("Mia lives in Berlin.")

    answer = batch(mia, {"text": "Oslo.", "supersedes": [old]}, {"text": "Rome.", "supersedes": [old]})

    assert code(answer) == (409, "supersession_refused")
    assert mia.listed() == [old]


def test_memory_of_another_project_cannot_be_replaced(mia):
    alpha, beta = mia.world.project("alpha"), mia.world.project("beta")
    old = mia.remembers("Use tabs.", project=str(alpha))

    assert code(mia.tries("Use spaces.", project=str(beta), supersedes=[old])) == (409, "supersession_refused")
    assert code(mia.tries("Use spaces.", supersedes=[old])) == (409, "supersession_refused")


# --- descent ----------------------------------------------------------------------------------------------------------


def test_descent_is_written_down(mia):
    first, second = mia.remembers("Mia ran on Monday."), mia.remembers("Mia ran on Tuesday.")

    derived = mia.remembers("Mia runs often.", derived_from=[first, second])

    with scope(mia.world.id), narrow(mia.id):
        steps = {(str(row.memory_id), str(row.source_id), row.relation) for row in Lineage.objects.all()}
    assert steps == {(derived, first, "derived"), (derived, second, "derived")}


@pytest.mark.parametrize("relation", ["derived_from", "supersedes"])
def test_descent_from_somebody_elses_memory_is_refused(mia, zenith, relation):
    other = mia.world.person("max").consents().remembers("Max likes rusk.")
    stranger = zenith.admin.get("/v1/subjects/mia/memories").json()["items"][0]["id"]

    statuses = [mia.tries("Mia too.", **{relation: [each]}).status_code for each in (other, stranger, str(uuid4()))]

    assert statuses == [400 if relation == "derived_from" else 404] * 3
    assert mia.listed() == []


def test_unknown_source_is_pointed_at_by_its_field(mia):
    answer = mia.tries("Mia too.", derived_from=[str(uuid4())])

    assert [error["pointer"] for error in answer.json()["errors"]] == ["/derived_from"]


# --- forgetting -------------------------------------------------------------------------------------------------------


def test_forgotten_memory_is_gone_from_row_index_and_descent(mia):
    old = mia.remembers("Mia lives in Berlin.")
    new = mia.remembers("Mia lives in Oslo.", supersedes=[old])
    kept = mia.remembers("Mia likes Oslo.", derived_from=[new])

    answer = forget(mia, new)

    assert (answer.status_code, answer.json()) == (200, {"id": new, "state": "forgotten"})
    assert shown(mia, new).status_code == 404
    assert "Mia lives in Oslo." not in mia.texts("Where does Mia live? Oslo")
    assert shown(mia, old).json()["superseded_by"] is None
    assert rows(mia, Lineage) == 0
    with scope(mia.world.id), narrow(mia.id):
        assert {str(row) for row in Memory.objects.values_list("id", flat=True)} == {old, kept}
        index = sealed_index.open_whole(_listing(mia))
        assert {str(index.id_at(row)) for row in range(len(index))} == {old, kept}


def _listing(person):
    from consent.policy import decide
    from consent.types import Act

    return decide(person.ref_inside(), Act.LIST, caller=person.world.principal)


def test_forgetting_twice_is_not_found(mia):
    memory = mia.remembers("Mia likes tea.")
    forget(mia, memory)

    assert code(forget(mia, memory)) == (404, "not_found")


def test_forgetting_the_last_memory_leaves_no_segment(mia):
    forget(mia, mia.remembers("Mia likes tea."))

    assert rows(mia, IndexSegment) == 0
    assert mia.texts("tea") == []


def test_forgetting_needs_no_consent(mia):
    memory = mia.remembers("Mia likes tea.")
    mia.says("withdrawn")

    assert forget(mia, memory).status_code == 200
    mia.says("given")
    assert mia.listed() == []


def test_forgetting_leaves_no_text_and_no_vector_behind(mia, connect_as):
    memory = mia.remembers("Mia likes tea.")
    with connect_as("fmn_backup") as connection:
        query = "SELECT content_sealed FROM memory_memory WHERE id = %s"
        assert len(connection.execute(query, [memory]).fetchall()) == 1  # the look-up finds what is there
        connection.rollback()

        forget(mia, memory)

        assert connection.execute(query, [memory]).fetchall() == []
        bodies = connection.execute(
            "SELECT count(*) FROM memory_indexsegment WHERE subject_id = %s", [mia.id]
        ).fetchone()
    assert bodies == (0,)


def test_memory_of_another_person_is_not_found(mia):
    other = mia.world.person("max").consents()
    memory = other.remembers("Max likes rusk.")

    assert code(shown(mia, memory)) == (404, "not_found")
    assert code(forget(mia, memory)) == (404, "not_found")
    assert other.listed() == [memory]


# --- lists ------------------------------------------------------------------------------------------------------------


def test_list_is_newest_first_and_pages_stay_put(mia):
    ids = [each["id"] for each in batch(mia, *[{"text": f"Fact {n}."} for n in range(7)]).json()["memories"]]
    url = f"{mia.path}/memories?limit=3"

    first = mia.world.agent.get(url).json()
    mia.remembers("A newcomer.")
    forget(mia, ids[3])
    second = mia.world.agent.get(f"{url}&cursor={first['next_cursor']}").json()

    assert [item["id"] for item in first["items"]] == [ids[6], ids[5], ids[4]]
    assert [item["id"] for item in second["items"]] == [ids[2], ids[1], ids[0]]
    assert second["next_cursor"] is None


def test_list_filters_narrow(mia):
    run = mia.remembers("Mia ran.", kind="episodic", categories=["sport"])
    tea = mia.remembers("Mia likes tea.", categories=["food", "drink"])

    assert mia.listed(kind="episodic") == [run]
    assert mia.listed(category="drink") == [tea]
    assert mia.listed(category="drink", kind="episodic") == []
    created = shown(mia, run).json()["created_at"]
    assert mia.listed(created_after=created) == [tea]


@pytest.mark.parametrize(
    "query", ["kinds=episodic", "limit=0", "limit=201", "kind=opinion", "category=Sport", "cursor=x", "history=perhaps"]
)
def test_malformed_list_query_is_refused(mia, query):
    assert code(mia.world.agent.get(f"{mia.path}/memories?{query}")) == (400, "validation_failed")
