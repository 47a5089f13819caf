"""Shared knowledge: documents taken in, replaced in one commit, found by meaning and by words, and never personal."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.keys import NotGranted
from accounts.scopes import AGENT_SCOPES
from accounts.tenancy import scope
from consent.access import record_read
from consent.policy import decide_for_tenant
from consent.types import Act
from memory.encoding import encode
from memory.knowledge import KnowledgeQuery, find_chunks, open_chunks
from memory.tasks import ingest_document

HANDBOOK = """# Coffee machine

## Cleaning

Descale the machine on the first Monday of each month. Use citric acid, never vinegar.

## Errors

Error E4711-B means that the water tank is empty.

# Travel

Trains are booked through the portal. Flights need the approval of a manager.
"""


def code(answer):
    return answer.status_code, answer.json()["code"]


def search(world, query, **options):
    answer = world.agent.post("/v1/knowledge/search", {"query": query} | options)
    assert answer.status_code == 200, answer.json()
    return answer.json()["knowledge"]


def texts(world, query, **options):
    return [passage["text"] for passage in search(world, query, **options)]


def job(world, stored):
    return world.agent.get(f"/v1/jobs/{stored['job']['id']}").json()


# --- taking in --------------------------------------------------------------------------------------------------------


def test_document_is_accepted_and_taken_in_by_a_job(acme):
    answer = acme.admin.post("/v1/knowledge/documents", {"name": "handbook", "text": HANDBOOK, "format": "markdown"})
    stored = answer.json()
    assert (answer.status_code, stored["state"], stored["version"]) == (202, "pending", 1)
    assert (stored["job"]["state"], stored["job"]["kind"]) == ("queued", "document")
    assert texts(acme, "coffee machine") == []

    acme.takes_in(stored)

    done = job(acme, stored)
    assert done["state"] == "succeeded"
    assert done["done"] == done["total"] == done["result"]["chunks"] == 3
    assert done["result"]["document_id"] == stored["id"]
    assert acme.agent.get(f"/v1/knowledge/documents/{stored['id']}").json()["state"] == "ready"


def test_document_comes_back_exactly(acme):
    body = {
        "name": "Ünïcode 🌼 name",
        "title": "A title",
        "text": "  spaces kept \r\n\u202e and all 🌼\n",
        "format": "text",
        "source": "https://example.com/x?y=1",
        "tags": ["hr", "de: intern"],
    }
    document = acme.knows(**body)

    shown = acme.agent.get(f"/v1/knowledge/documents/{document}").json()

    assert {name: shown[name] for name in body} == body
    (listed,) = acme.agent.get("/v1/knowledge/documents").json()["items"]
    assert "text" not in listed
    assert listed["id"] == document


def test_title_is_the_name_when_none_is_given(acme):
    acme.knows("handbook", "Bees live on the roof.")

    assert search(acme, "bees")[0]["title"] == "handbook"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"text": ""}, "/text"),
        ({"text": " \n\t "}, "/text"),
        ({"text": None}, "/text"),
        ({"text": "x" * 500_001}, "/text"),
        ({"text": "nul \x00"}, "/text"),
        ({"name": ""}, "/name"),
        ({"name": "x" * 201}, "/name"),
        ({"format": "pdf"}, "/format"),
        ({"tags": ["-"]}, "/tags/0"),
        ({"tags": [5]}, "/tags/0"),
        ({"tags": ["t"] * 21}, "/tags"),
        ({"project": "alpha"}, "/project"),
        ({"subject": "mia"}, "/subject"),
    ],
)
def test_malformed_document_is_named(acme, body, pointer):
    answer = acme.admin.post("/v1/knowledge/documents", {"name": "n", "text": "t"} | body)

    assert code(answer) == (400, "validation_failed")
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_long_document_reports_its_progress_to_the_end(acme):
    text = "\n\n".join(f"Rule {n}. " + "The harbour master keeps the log of every boat. " * 8 for n in range(90))

    stored = acme.stores("rules", text)
    acme.takes_in(stored)

    done = job(acme, stored)
    assert done["done"] == done["total"] > 32  # more than one batch
    assert done["state"] == "succeeded"


def test_taking_in_twice_doubles_nothing(acme):
    stored = acme.stores("handbook", "Bees live on the roof.")

    acme.takes_in(stored)
    acme.takes_in(stored)

    assert texts(acme, "bees roof") == ["Bees live on the roof."]


# --- replacing --------------------------------------------------------------------------------------------------------


def test_replaced_document_is_found_in_its_new_version_alone(acme):
    first = acme.stores("handbook", "Bees live on the roof.")
    acme.takes_in(first)

    second = acme.stores("handbook", "Bees live in the garden.")

    assert (second["id"], second["version"]) == (first["id"], 2)
    assert texts(acme, "bees") == ["Bees live on the roof."]  # until the new one is in
    acme.takes_in(second)
    (passage,) = search(acme, "bees")
    assert (passage["text"], passage["document_version"]) == ("Bees live in the garden.", 2)
    assert texts(acme, "roof") == []


def test_passage_of_the_version_before_is_cited_as_that_version(acme):
    acme.knows("handbook", "Bees live on the roof.")
    acme.stores("handbook", "Bees live in the garden.")

    (passage,) = search(acme, "bees")

    assert (passage["text"], passage["document_version"]) == ("Bees live on the roof.", 1)


def test_late_job_of_an_old_version_changes_nothing_new(acme):
    first = acme.stores("handbook", "Bees live on the roof.")
    second = acme.stores("handbook", "Bees live in the garden.")

    acme.takes_in(second)
    acme.takes_in(first)

    assert texts(acme, "bees") == ["Bees live in the garden."]


def test_names_are_each_projects_own(acme):
    alpha = str(acme.project("alpha"))
    one = acme.stores("handbook", "Bees live on the roof.")
    two = acme.stores("handbook", "Bees live in alpha's garden.", project=alpha)

    assert one["id"] != two["id"]
    assert (one["version"], two["version"]) == (1, 1)


def test_same_document_stored_by_many_at_once_is_one(acme):
    answers = acme.at_once(
        *[
            lambda n=n: acme.admin.post("/v1/knowledge/documents", {"name": "handbook", "text": f"Version {n}."})
            for n in range(6)
        ]
    )

    assert [answer.status_code for answer in answers] == [202] * 6
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sorted(answer.json()["version"] for answer in answers) == [1, 2, 3, 4, 5, 6]


# --- removing ---------------------------------------------------------------------------------------------------------


def test_removed_document_is_found_no_more(acme, connect_as):
    document = acme.knows("handbook", HANDBOOK, format="markdown")
    assert texts(acme, "descale")

    answer = acme.admin.delete(f"/v1/knowledge/documents/{document}")

    assert (answer.status_code, answer.json()) == (200, {"id": document, "state": "removed"})
    assert texts(acme, "descale") == []
    assert code(acme.agent.get(f"/v1/knowledge/documents/{document}")) == (404, "not_found")
    assert code(acme.admin.delete(f"/v1/knowledge/documents/{document}")) == (404, "not_found")
    with connect_as("fmn_backup") as connection:
        for table in ("memory_chunk", "memory_posting"):
            count = connection.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = %s", [acme.id]).fetchone()
            assert count == (0,)


def test_job_of_a_removed_document_ends(acme):
    stored = acme.stores("handbook", "Bees live on the roof.")
    acme.admin.delete(f"/v1/knowledge/documents/{stored['id']}")

    ingest_document(tenant_id=str(acme.id), document_id=stored["id"], job_id=stored["job"]["id"])

    assert (job(acme, stored)["state"], job(acme, stored)["message"]) == ("failed", "document_removed")


def test_removing_needs_the_right_to_write(acme):
    document = acme.knows("handbook", "Bees live on the roof.")

    assert code(acme.agent.delete(f"/v1/knowledge/documents/{document}")) == (403, "scope_missing")


# --- finding ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def stocked(acme):
    acme.knows("coffee", HANDBOOK, format="markdown", tags=["kitchen", "office"], source="wiki/coffee")
    acme.knows("harbour", "The harbour master keeps the log of every boat.", tags=["harbour"])
    acme.knows("roof", "Bees live on the roof.", tags=["office"])
    return acme


@pytest.mark.parametrize(
    ("query", "inside"),
    [
        ("How do I remove limescale from the espresso maker?", "citric acid"),
        ("E4711-B", "water tank is empty"),
        ("Who must sign off on air travel?", "approval of a manager"),
        ("honey insects on top of the building", "Bees live on the roof."),
        ("harbour master", "log of every boat"),
    ],
)
def test_passage_is_found_by_meaning_and_by_exact_words(stocked, query, inside):
    assert inside in texts(stocked, query)[0]


def test_unrelated_question_finds_nothing(stocked):
    assert texts(stocked, "Who won the chess olympiad of 1978?") == []


def test_passage_says_where_it_comes_from(stocked):
    (first, *_) = search(stocked, "E4711-B")

    assert (first["title"], first["source"]) == ("coffee", "wiki/coffee")
    assert first["heading"] == "Coffee machine › Errors"
    assert first["document_version"] == 1
    assert 0 < first["score"] <= 1


def test_tags_narrow(stocked):
    assert texts(stocked, "bees roof", tags=["office"]) == ["Bees live on the roof."]
    assert texts(stocked, "bees roof", tags=["harbour"]) == []
    assert texts(stocked, "bees roof", tags=["harbour", "office"]) == ["Bees live on the roof."]


def test_created_after_narrows(stocked):
    items = {item["name"]: item for item in stocked.agent.get("/v1/knowledge/documents").json()["items"]}

    assert texts(stocked, "bees roof", created_after=items["harbour"]["created_at"]) == ["Bees live on the roof."]
    assert texts(stocked, "bees roof", created_after=items["roof"]["created_at"]) == []


def test_limit_bounds_the_passages(stocked):
    for number in range(4):
        stocked.knows(f"hive-{number}", f"Hive number {number} holds bees.")

    assert len(texts(stocked, "bees", limit=2)) == 2
    assert len(texts(stocked, "bees", limit=50)) == 5


def test_limit_of_nothing_asks_the_database_nothing(stocked):
    query = KnowledgeQuery("bees roof", encode(["bees roof"]), limit=0)

    with scope(stocked.id), CaptureQueriesContext(connection) as asked:
        found = find_chunks(query)

    assert (found, list(asked)) == ([], [])


def test_passage_is_opened_with_the_grant_that_names_it_alone(stocked):
    with scope(stocked.id):
        bees, harbour = (find_chunks(KnowledgeQuery(text, None, limit=1)) for text in ("bees roof", "harbour master"))
        tenant = decide_for_tenant(Act.TENANT, caller=stocked.principal)
        grant = record_read(tenant, [bees[0].id], action="memory.knowledge.read", counts={"knowledge": 1})

        opened = open_chunks(bees, grant)
        with pytest.raises(NotGranted):
            open_chunks([*bees, *harbour], grant)

    assert [passage.text for passage in opened] == ["Bees live on the roof."]


def test_project_sees_its_documents_and_the_unscoped(acme):
    alpha, beta = str(acme.project("alpha")), str(acme.project("beta"))
    acme.knows("all", "Bees live on the roof.")
    acme.knows("a", "Bees live in alpha's garden.", project=alpha)
    acme.knows("b", "Bees live in beta's cellar.", project=beta)

    assert texts(acme, "where do bees live") == ["Bees live on the roof."]
    assert sorted(texts(acme, "where do bees live", project=alpha)) == [
        "Bees live in alpha's garden.",
        "Bees live on the roof.",
    ]


def test_key_bound_to_a_project_sees_its_documents_only(acme):
    alpha, beta = str(acme.project("alpha")), str(acme.project("beta"))
    acme.knows("all", "Bees live on the roof.")
    own = acme.knows("a", "Bees live in alpha's garden.", project=alpha)
    theirs = acme.knows("b", "Bees live in beta's cellar.", project=beta)
    bound = acme.key("bound", AGENT_SCOPES, project_id=alpha)

    names = [item["name"] for item in bound.get("/v1/knowledge/documents").json()["items"]]
    found = bound.post("/v1/knowledge/search", {"query": "where do bees live"}).json()["knowledge"]

    assert names == ["all", "a"]
    assert sorted(each["text"] for each in found) == ["Bees live in alpha's garden.", "Bees live on the roof."]
    assert bound.get(f"/v1/knowledge/documents/{own}").status_code == 200
    assert code(bound.get(f"/v1/knowledge/documents/{theirs}")) == (404, "not_found")


def test_other_tenants_documents_are_never_found(acme, zenith):
    theirs = zenith.knows("secret", "The blue flowerpot hides the spare key.")
    assert texts(zenith, "flowerpot spare key")

    assert texts(acme, "flowerpot spare key") == []
    assert code(acme.agent.get(f"/v1/knowledge/documents/{theirs}")) == (404, "not_found")
    assert acme.agent.get("/v1/knowledge/documents").json()["items"] == []
    assert acme.person("mia").recall("flowerpot spare key")["knowledge"] == []


def test_personal_memories_are_never_in_knowledge(acme):
    mia = acme.person("mia").consents()
    mia.remembers("Mia hides the spare key under the blue flowerpot.", audience="shared_setting")
    assert mia.texts("flowerpot")

    assert texts(acme, "Mia spare key blue flowerpot") == []
    assert acme.person("max").recall("Mia spare key blue flowerpot")["knowledge"] == []


def test_search_is_recorded_with_what_it_opened(stocked):
    answer = stocked.agent.post("/v1/knowledge/search", {"query": "bees roof"}).json()

    (event,) = stocked.admin.get("/v1/audit/events?action=memory.knowledge.read&limit=1").json()["items"]

    assert event["id"] == answer["search_id"]
    assert event["resource_ids"] == [passage["id"] for passage in answer["knowledge"]]
    assert event["subject_pseudonym"] == ""


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": " "},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 51},
        {"query": "x", "limit": "5"},
        {"query": "x", "tags": "office"},
        {"query": "x", "tags": [5]},
        {"query": "x", "tag": "office"},
        {"query": "x", "project": 5},
    ],
    ids=str,
)
def test_malformed_search_is_refused(acme, body):
    assert code(acme.agent.post("/v1/knowledge/search", body)) == (400, "validation_failed")
