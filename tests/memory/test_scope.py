"""Project, agent and session: what may appear where, and that list and recall follow one rule."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.scopes import AGENT_SCOPES

QUERY = "Which convention about bananas holds?"


def code(answer):
    return answer.status_code, answer.json()["code"]


def note(name):
    """A text every one of which the query finds by its words."""
    return f"Convention {name} about bananas holds."


def recalled(person, **options):
    return sorted(text.split()[1] for text in person.texts(QUERY, limit=50, **options))


def titles(person, **query):
    answer = person.world.agent.get(f"{person.path}/memories?{'&'.join(f'{n}={v}' for n, v in query.items())}")
    return sorted(item["text"].split()[1] for item in answer.json()["items"])


@pytest.fixture
def mia(mia):
    return mia.consents()


@pytest.fixture
def projects(acme):
    return {name: str(acme.project(name)) for name in ("alpha", "beta")}


@pytest.fixture
def spread(mia, projects):
    """One memory without a project, one in each of two."""
    mia.remembers(note("nowhere"))
    mia.remembers(note("alpha"), project=projects["alpha"])
    mia.remembers(note("beta"), project=projects["beta"])
    return mia


# --- projects ---------------------------------------------------------------------------------------------------------


def test_omitted_project_means_unscoped_only(spread):
    assert recalled(spread) == ["nowhere"]
    assert titles(spread) == ["nowhere"]


def test_project_sees_its_own_and_the_unscoped(spread, projects):
    assert recalled(spread, project=projects["alpha"]) == ["alpha", "nowhere"]
    assert titles(spread, project=projects["beta"]) == ["beta", "nowhere"]


def test_memory_of_another_project_is_not_found_by_its_id(spread, projects):
    alpha = spread.remembers(note("alpha-2"), project=projects["alpha"])
    url = f"{spread.path}/memories/{alpha}"

    assert spread.world.agent.get(f"{url}?project={projects['alpha']}").status_code == 200
    assert code(spread.world.agent.get(url)) == (404, "not_found")
    assert code(spread.world.agent.get(f"{url}?project={projects['beta']}")) == (404, "not_found")


@pytest.mark.parametrize("unknown", ["2aaf68ba-158b-4559-ac80-38f195e7c9d1", "zenith"])
def test_unknown_project_is_not_found_everywhere(mia, zenith, unknown):
    project = str(zenith.project("theirs")) if unknown == "zenith" else unknown

    answers = [
        mia.tries("Mia likes tea.", project=project),
        mia.world.agent.post(f"{mia.path}/recall", {"query": "tea", "project": project}),
        mia.world.agent.get(f"{mia.path}/memories?project={project}"),
        mia.world.agent.get(f"{mia.path}/profile?project={project}"),
        mia.world.agent.post("/v1/knowledge/search", {"query": "tea", "project": project}),
        mia.world.admin.post("/v1/knowledge/documents", {"name": "n", "text": "t", "project": project}),
    ]

    assert [code(answer) for answer in answers] == [(404, "not_found")] * 6
    assert mia.listed() == []


# --- keys bound to a project ------------------------------------------------------------------------------------------


@pytest.fixture
def bound(acme, projects):
    return acme.key("bound", AGENT_SCOPES, project_id=projects["alpha"])


def test_bound_key_writes_and_reads_in_its_project(spread, projects, bound):
    stored = bound.post(f"{spread.path}/memories", {"text": note("bound")})
    recall = bound.post(f"{spread.path}/recall", {"query": QUERY, "limit": 50}).json()

    assert stored.status_code == 201
    assert recalled(spread, project=projects["alpha"]) == ["alpha", "bound", "nowhere"]
    assert sorted(item["text"].split()[1] for item in recall["memories"]) == ["alpha", "bound", "nowhere"]
    assert {item["project"] for item in recall["memories"]} == {projects["alpha"], None}


def test_bound_key_may_name_no_other_project(spread, projects, bound):
    beta = projects["beta"]
    answers = [
        bound.post(f"{spread.path}/memories", {"text": "x", "project": beta}),
        bound.post(f"{spread.path}/recall", {"query": QUERY, "project": beta}),
        bound.get(f"{spread.path}/memories?project={beta}"),
        bound.post("/v1/knowledge/search", {"query": QUERY, "project": beta}),
    ]

    assert [code(answer) for answer in answers] == [(403, "project_forbidden")] * 4


def test_bound_key_never_looks_across_projects(spread, bound):
    spread.consents("memory.share")

    assert code(bound.post(f"{spread.path}/recall", {"query": QUERY, "across_projects": True})) == (
        403,
        "project_forbidden",
    )
    assert code(bound.get(f"{spread.path}/memories?across_projects=true")) == (403, "project_forbidden")


def test_bound_key_forgets_in_its_project_only(mia, projects, bound):
    theirs = mia.remembers(note("beta"), project=projects["beta"])
    own = mia.remembers(note("alpha"), project=projects["alpha"])

    assert bound.delete(f"{mia.path}/memories/{theirs}").status_code == 404
    assert bound.delete(f"{mia.path}/memories/{own}").status_code == 200
    assert titles(mia, project=projects["beta"]) == ["beta"]


# --- across projects --------------------------------------------------------------------------------------------------


def test_across_projects_needs_its_own_consent(spread):
    answer = spread.recall(QUERY, across_projects=True)

    assert answer["personal"] == {"status": "refused", "code": "consent_required"}
    assert answer["memories"] == []
    assert code(spread.world.agent.get(f"{spread.path}/memories?across_projects=true")) == (403, "consent_required")


def test_across_projects_shows_all_of_them_with_consent(spread):
    spread.consents("memory.share")

    assert recalled(spread, across_projects=True) == ["alpha", "beta", "nowhere"]
    assert titles(spread, across_projects="true") == ["alpha", "beta", "nowhere"]
    assert recalled(spread) == ["nowhere"]


def test_refused_sharing_says_so(spread):
    spread.says("refused", "memory.share")

    assert spread.recall(QUERY, across_projects=True)["personal"]["code"] == "consent_refused"


# --- agents and sessions ----------------------------------------------------------------------------------------------


def test_memory_for_an_agent_is_seen_by_that_agent_only(mia):
    mia.remembers(note("kit"), agent="kit")
    mia.remembers(note("all"))

    assert recalled(mia) == ["all"]
    assert recalled(mia, agent="kit") == ["all", "kit"]
    assert recalled(mia, agent="kim") == ["all"]
    assert recalled(mia, agent="Kit") == ["all"]
    assert titles(mia, agent="kit") == ["all", "kit"]
    assert titles(mia) == ["all"]


def test_sharing_between_projects_does_not_open_what_is_for_one_agent(mia):
    mia.consents("memory.share").remembers(note("kit"), agent="kit")

    assert recalled(mia, across_projects=True) == []


def test_agent_is_named_exactly_in_lists_too(mia):
    mia.remembers(note("spaced"), agent=" kit ")

    assert recalled(mia, agent=" kit ") == ["spaced"]
    assert titles(mia, agent="%20kit%20") == ["spaced"]
    assert titles(mia, agent="kit") == []


def test_session_filter_shows_what_came_from_it(mia):
    mia.remembers(note("monday"), session="chat-1")
    mia.remembers(note("tuesday"), session="chat-2 🌼")
    mia.remembers(note("none"))

    assert recalled(mia, session="chat-1") == ["monday"]
    assert recalled(mia, session="chat-2 🌼") == ["tuesday"]
    assert recalled(mia, session="chat-3") == []
    assert recalled(mia) == ["monday", "none", "tuesday"]


def test_sessions_of_the_same_name_are_each_persons_own(mia):
    other = mia.world.person("max").consents()
    mia.remembers(note("mia"), session="chat-1")
    other.remembers(note("max"), session="chat-1")

    assert recalled(mia, session="chat-1") == ["mia"]
    assert recalled(other, session="chat-1") == ["max"]


def test_memories_of_one_new_session_written_at_once_share_it(mia):
    writes = [lambda n=n: mia.tries(note(f"n{n}"), session="brand new") for n in range(6)]

    answers = mia.world.at_once(*writes)

    assert [answer.status_code for answer in answers] == [201] * 6
    assert len(recalled(mia, session="brand new")) == 6


# --- one rule ---------------------------------------------------------------------------------------------------------

MEMORY = st.fixed_dictionaries(
    {
        "project": st.sampled_from([None, "alpha", "beta"]),
        "agent": st.sampled_from(["", "kit", "kim"]),
        "source": st.sampled_from(["person", "agent_inference", "tool", "import"]),
        "kind": st.sampled_from(["semantic", "episodic", "procedural"]),
        "categories": st.sampled_from([[], ["food"], ["health"], ["food", "religion"]]),
        "importance": st.sampled_from([0.0, 0.5, 1.0]),
        "occurred_at": st.sampled_from([None, "2020-01-01T00:00:00Z"]),
        "expires_at": st.sampled_from([None, "2021-01-01T00:00:00Z", "2999-01-01T00:00:00Z"]),
        "fate": st.sampled_from(["kept", "kept", "replaced", "forgotten"]),
    }
)
VIEW = st.fixed_dictionaries(
    {
        "project": st.sampled_from([None, "alpha", "beta"]),
        "agent": st.sampled_from(["", "kit"]),
        "across_projects": st.booleans(),
        "kind": st.sampled_from([None, None, "episodic"]),
        "category": st.sampled_from([None, None, "food", "health"]),
    }
)
_numbers = itertools.count()


def expected(memory, view, *, sensitive):
    """The rule in plain words, for one memory."""
    return (
        memory["fate"] == "kept"
        and memory["source"] != "tool"
        and memory["expires_at"] != "2021-01-01T00:00:00Z"
        and (sensitive or not {"health", "religion"} & set(memory["categories"]))
        and memory["agent"] in ("", view["agent"])
        and (view["across_projects"] or memory["project"] in (None, view["project"]))
        and view["kind"] in (None, memory["kind"])
        and (view["category"] is None or view["category"] in memory["categories"])
    )


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    memories=st.lists(MEMORY, min_size=1, max_size=8),
    views=st.lists(VIEW, min_size=3, max_size=3),
    sensitive=st.booleans(),
)
def test_list_shows_exactly_what_recall_can_reach(acme, projects, memories, views, sensitive):
    person = acme.person(f"p{next(_numbers)}").consents(
        "memory.store", "memory.personalise", "memory.share", "memory.sensitive"
    )
    ids = [write(person, number, memory, projects) for number, memory in enumerate(memories)]
    if not sensitive:
        person.says("withdrawn", "memory.sensitive")

    for view in views:
        asked = {name: value for name, value in view.items() if value} | (
            {"project": projects[view["project"]]} if view["project"] else {}
        )
        kind, category = asked.pop("kind", None), asked.pop("category", None)
        only = ({"kinds": [kind]} if kind else {}) | ({"categories": [category]} if category else {})
        recall = {item["id"] for item in person.recall(QUERY, limit=50, **asked, **only)["memories"]}
        query = asked | ({"kind": kind} if kind else {}) | ({"category": category} if category else {})
        listed = set(person.listed(limit=200, **query))

        assert listed == recall
        should = {ids[n] for n, memory in enumerate(memories) if expected(memory, view, sensitive=sensitive)}
        assert {each for each in listed if each in ids} == should


def write(person, number, memory, projects):
    facts = {name: value for name, value in memory.items() if value is not None and name != "fate"}
    facts |= {"project": projects[memory["project"]]} if memory["project"] else {}
    stored = person.remembers(note(f"n{number}"), **facts)
    if memory["fate"] == "forgotten":
        assert person.world.agent.delete(f"{person.path}/memories/{stored}").status_code == 200
    if memory["fate"] == "replaced" and memory["source"] != "tool":
        person.remembers(note(f"r{number}"), **{**facts, "source": "person", "supersedes": [stored]})
    elif memory["fate"] == "replaced":
        memory["fate"] = "kept"
    return stored
