"""One memory replacing another, where memories come from, and forgetting one for good."""

from uuid import uuid4

import pytest

from accounts.tenancy import narrow, scope
from consent.policy import decide
from consent.types import Act
from memory import index as sealed_index
from memory.models import IndexSegment, Lineage, Memory


def code(answer):
    return answer.status_code, answer.json()["code"]


def shown(person, memory_id):
    return person.world.agent.get(f"{person.path}/memories/{memory_id}")


def forget(person, memory_id):
    return person.world.agent.delete(f"{person.path}/memories/{memory_id}")


def rows(person, model):
    with scope(person.world.id), narrow(person.id):
        return model.objects.count()


@pytest.fixture
def mia(mia):
    return mia.consents()


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

    both = [{"text": "Oslo.", "supersedes": [old]}, {"text": "Rome.", "supersedes": [old]}]
    answer = mia.world.agent.post(f"{mia.path}/memories", {"items": both})

    assert code(answer) == (409, "supersession_refused")
    assert mia.listed() == [old]


def test_memory_of_another_project_cannot_be_replaced(mia):
    alpha, beta = mia.world.project("alpha"), mia.world.project("beta")
    old = mia.remembers("Use tabs.", project=str(alpha))

    assert code(mia.tries("Use spaces.", project=str(beta), supersedes=[old])) == (404, "not_found")
    assert code(mia.tries("Use spaces.", supersedes=[old])) == (404, "not_found")
    assert mia.tries("Use spaces.", project=str(alpha), supersedes=[old]).status_code == 201


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

    assert statuses == [404, 404, 404]
    assert mia.listed() == []


def test_descent_from_another_project_is_refused(mia):
    alpha, beta = mia.world.project("alpha"), mia.world.project("beta")
    source = mia.remembers("Use tabs.", project=str(alpha))

    assert code(mia.tries("Tabs it is.", project=str(beta), derived_from=[source])) == (404, "not_found")
    assert mia.tries("Tabs it is.", project=str(alpha), derived_from=[source]).status_code == 201


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
