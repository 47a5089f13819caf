"""Whatever is written comes back as it was written, wherever it is kept; what is no text is refused everywhere."""

from urllib.parse import quote

import pytest

from tests.hostile.texts import KEPT, LONE_SURROGATES, WITHOUT_NUL
from tests.house.filled import expect
from tests.world import open_world


@pytest.fixture(scope="module")
def mia():
    """Of what is refused nothing stays, so that one person does for all of it."""
    mia = open_world("Acme").person("mia").consents("memory.store", "memory.personalise", "memory.sensitive")
    expect(200, mia.world.admin.put("/v1/profile-keys/preferences.note", {}))
    return mia


def code(answer):
    return answer.status_code, answer.json()["code"]


def ids_of(answer):
    assert answer.status_code == 201, answer.json()
    return [memory["id"] for memory in answer.json()["memories"]]


# --- kept exactly -----------------------------------------------------------------------------------------------------


def test_memory_is_shown_listed_and_recalled_as_it_was_written(mia):
    agent, texts = mia.world.agent, list(KEPT.values())

    ids = ids_of(agent.post(f"{mia.path}/memories", {"items": [{"text": text} for text in texts]}))

    assert [agent.get(f"{mia.path}/memories/{each}").json()["text"] for each in ids] == texts
    written = dict(zip(ids, texts, strict=True))
    listed = {item["id"]: item["text"] for item in agent.get(f"{mia.path}/memories?limit=200").json()["items"]}
    assert {each: listed[each] for each in ids} == written
    recalled = [item for text in texts for item in mia.recall(text, limit=50)["memories"]]
    found = {item["id"]: item["text"] for item in recalled if item["id"] in written}
    assert found == {each: written[each] for each in found}
    assert len(found) > len(texts) // 2


def test_question_may_be_any_text_too(mia):
    mia.remembers("Mia sits at the window.")

    assert [mia.recall(text)["personal"]["status"] for text in KEPT.values()] == ["answered"] * len(KEPT)


def test_metadata_is_kept_as_it_was_written(mia):
    nested = {"list": [1, -0.5, True, None, "é", {"": "empty name"}], "large": 2**64, "small": 5e-324}

    (memory,) = ids_of(
        mia.world.agent.post(f"{mia.path}/memories", {"text": "x", "metadata": nested | {"t": WITHOUT_NUL}})
    )

    assert mia.world.agent.get(f"{mia.path}/memories/{memory}").json()["metadata"] == nested | {"t": WITHOUT_NUL}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_profile_value_and_name_are_kept_as_they_were_written(mia, text):
    profile = f"{mia.path}/profile/preferences.note"
    assert mia.world.admin.put(profile, {"value": {"said": [text]}}).status_code == 200
    assert mia.world.admin.put(mia.path, {"name": text}).status_code == 200

    assert mia.world.admin.get(profile).json()["value"] == {"said": [text]}
    assert mia.world.admin.get(mia.path).json()["name"] == text


def test_persons_id_is_whatever_the_tenant_calls_them(acme):
    """Byte for byte: `Zoe` with a combining mark and `Zoë` are two people. `/` would part the path."""
    ids = [text.replace("/", "|") for text in WITHOUT_NUL.values() if "\ufffd" not in text]
    paths = [f"/v1/subjects/{quote(each, safe='')}" for each in ids]

    made = [acme.admin.put(path, {}).status_code for path in paths]

    assert made == [201] * len(ids)
    assert [acme.admin.get(path).json()["external_id"] for path in paths] == ids
    assert [each["external_id"] for each in acme.admin.get("/v1/subjects").json()["items"]] == ids


def test_character_that_stands_for_a_broken_one_is_in_no_id(acme):
    assert code(acme.admin.put(f"/v1/subjects/{quote('a\ufffdb')}", {})) == (400, "validation_failed")


def test_document_and_its_labels_are_kept_as_they_were_written(acme):
    text = "\n\n".join(WITHOUT_NUL.values())
    for name in WITHOUT_NUL.values():
        labels = {"name": name[:200], "title": name[:300], "source": name[:1000]}
        stored = acme.stores(text=text, **labels)
        shown = acme.admin.get(f"/v1/knowledge/documents/{stored['id']}").json()

        assert {field: shown[field] for field in ("name", "title", "source", "text")} == labels | {"text": text}


# --- no text ----------------------------------------------------------------------------------------------------------

PLACES = {
    "memory": ("POST", "/v1/subjects/mia/memories", '{"text": %s}'),
    "memory of many": ("POST", "/v1/subjects/mia/memories", '{"items": [{"text": %s}]}'),
    "metadata": ("POST", "/v1/subjects/mia/memories", '{"text": "x", "metadata": {"a": [%s]}}'),
    "name in metadata": ("POST", "/v1/subjects/mia/memories", '{"text": "x", "metadata": {%s: 1}}'),
    "agent": ("POST", "/v1/subjects/mia/memories", '{"text": "x", "agent": %s}'),
    "session": ("POST", "/v1/subjects/mia/memories", '{"text": "x", "session": %s}'),
    "category": ("POST", "/v1/subjects/mia/memories", '{"text": "x", "categories": [%s]}'),
    "question": ("POST", "/v1/subjects/mia/recall", '{"query": %s}'),
    "evidence": (
        "POST",
        "/v1/subjects/mia/consents",
        '{"event": "given", "purposes": ["improve"], "evidence": %s}',
    ),
    "name": ("PUT", "/v1/subjects/mia", '{"name": %s}'),
    "time zone": ("PUT", "/v1/subjects/mia", '{"time_zone": %s}'),
    "profile value": ("PUT", "/v1/subjects/mia/profile/preferences.note", '{"value": %s}'),
    "profile schema": ("PUT", "/v1/profile-keys/preferences.note", '{"schema": {"const": %s}}'),
    "document": ("POST", "/v1/knowledge/documents", '{"name": "n", "text": %s}'),
    "document's name": ("POST", "/v1/knowledge/documents", '{"name": %s, "text": "x"}'),
    "document's source": ("POST", "/v1/knowledge/documents", '{"name": "n", "text": "x", "source": %s}'),
    "tag": ("POST", "/v1/knowledge/documents", '{"name": "n", "text": "x", "tags": [%s]}'),
    "search": ("POST", "/v1/knowledge/search", '{"query": %s}'),
    "project": ("POST", "/v1/projects", '{"name": %s}'),
}
# Sealed or only looked for: there NUL is a character like any other.
TAKES_NUL = {"memory", "memory of many", "question", "evidence", "name", "profile value", "search"}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_lone_surrogate_is_refused_everywhere(mia, place):
    method, path, body = place

    answers = [mia.world.admin.call(method, path, body % text) for text in LONE_SURROGATES]

    assert [code(answer) for answer in answers] == [(400, "validation_failed")] * len(LONE_SURROGATES)


@pytest.mark.parametrize("name", PLACES)
def test_nul_is_taken_where_the_text_is_sealed_and_refused_where_a_column_holds_it(mia, name):
    method, path, body = PLACES[name]

    answer = mia.world.admin.call(method, path, body % '"a\\u0000b"')

    assert answer.status_code in (200, 201) if name in TAKES_NUL else code(answer) == (400, "validation_failed")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/subjects/a%00b",
        "/v1/subjects/mia/profile/a%00b",
        "/v1/audit/events?subject=a%00b",
        "/v1/audit/events?actor=a%00b",
        "/v1/audit/events?action=a%00b",
        "/v1/subjects/mia/memories?agent=a%00b",
        "/v1/subjects/mia/memories?category=a%00b",
        "/v1/subjects/mia/memories?kind=a%00b",
        "/v1/subjects/mia/memories?a%00b=1",
        "/v1/subjects?cursor=%00",
        "/v1/subjects?limit=1%00",
    ],
)
def test_nul_in_an_address_is_refused(mia, path):
    answer = mia.world.admin.get(path)

    assert code(answer) in ((400, "validation_failed"), (404, "not_found"))
    assert mia.world.admin.get(path.partition("?")[0].replace("%00", "")).status_code in (200, 404)
