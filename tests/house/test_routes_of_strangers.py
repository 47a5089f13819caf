"""On every route, what belongs to another tenant or another person answers exactly as what does not exist.

The rows below are checked against the URL conf and the API's schema: a route or an id without one fails.
"""

import json
import re
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from drf_spectacular.generators import SchemaGenerator

from accounts.scopes import Scope
from memory.tasks import ingest_document
from tests.house.filled import expect
from tests.house.routes import routes
from tests.world import open_world


@dataclass(frozen=True)
class Route:
    """`{names}` in path, query and body are ids."""

    method: str
    path: str
    body: Any = None
    query: str = ""
    # Names of one's own choosing: a new one makes something new, so there is nothing to be refused.
    chosen: frozenset[str] = frozenset()

    @property
    def names(self):
        return set(re.findall(r"\{(\w+)\}", self.path + self.query + json.dumps(self.body)))

    def __str__(self):
        return f"{self.method} {self.path}{self.query} {sorted(self.names)}"


PERSON = "/v1/subjects/{external_id}"
PROJECT = "?project={project}"
MEMORY = {"text": "Likes the window seat.", "supersedes": ["{supersedes}"], "derived_from": ["{derived_from}"]}
ROUTES = [
    Route("GET", "/v1/jobs/{job_id}"),
    Route("GET", "/v1/projects/{project_id}"),
    Route("PUT", "/v1/projects/{project_id}", {"name": "renamed"}),
    Route("POST", "/v1/knowledge/documents", {"name": "n", "text": "Soup.", "project": "{project}"}),
    Route("GET", "/v1/knowledge/documents/{document_id}"),
    Route("DELETE", "/v1/knowledge/documents/{document_id}"),
    Route("POST", "/v1/knowledge/search", {"query": "soup", "project": "{project}"}),
    Route("PUT", "/v1/profile-keys/{key}", {}, PROJECT, chosen=frozenset({"key"})),
    Route("GET", "/v1/audit/events", query="?subject={external_id}"),
    Route("GET", PERSON),
    Route("PUT", PERSON, {}, chosen=frozenset({"external_id"})),
    Route("GET", PERSON + "/consents"),
    Route("POST", PERSON + "/consents", {"event": "given", "purposes": ["memory.infer"], "evidence": "msg-2"}),
    Route("POST", PERSON + "/portal-links", {}),
    Route("GET", PERSON + "/memories", query=PROJECT),
    Route("POST", PERSON + "/memories", MEMORY | {"project": "{project}"}),
    Route(
        "POST",
        PERSON + "/memories",
        {"items": [MEMORY | {"supersedes": ["{replaces}"]}], "project": "{project}"},
    ),
    Route("GET", PERSON + "/memories/{memory_id}", query=PROJECT),
    Route("DELETE", PERSON + "/memories/{memory_id}"),
    Route("POST", PERSON + "/recall", {"query": "tea", "project": "{project}"}),
    Route("GET", PERSON + "/profile", query=PROJECT),
    Route("GET", PERSON + "/profile/{key}", query=PROJECT),
    Route("PUT", PERSON + "/profile/{key}", {"value": "de"}, PROJECT, chosen=frozenset({"key"})),
    Route("DELETE", PERSON + "/profile/{key}"),
    Route("DELETE", PERSON + "/profile/{key}", query=PROJECT, chosen=frozenset({"key"})),
]


@dataclass(frozen=True)
class Ids:
    """Of each name: Mia's (or Acme's) own, and what belongs to a stranger; whatever is unknown is made up anew."""

    acme: Any
    own: dict[str, str]
    strangers: dict[str, list[str]]

    def unknown(self, name):
        return {"external_id": "nobody", "key": "preferences.unset"}.get(name, str(uuid4()))


@pytest.fixture(scope="module")
def ids():
    return _ids()


@pytest.fixture
def fresh_ids():
    return _ids()


def _ids():
    acme, zenith = open_world("Acme"), open_world("Zenith")
    mia, noa, zoe = acme.person("mia").consents(), acme.person("noa").consents(), zenith.person("zoe").consents()
    for world, keys in ((acme, ("language", "unset", "diet")), (zenith, ("language", "pet"))):
        for key in keys:
            expect(200, world.admin.put(f"/v1/profile-keys/preferences.{key}", {}))
    for person, key in ((mia, "language"), (noa, "diet"), (zoe, "pet")):
        expect(200, person.world.admin.put(f"{person.path}/profile/preferences.{key}", {"value": "de"}))
    mine, hers = _things(acme), _things(zenith)
    expect(200, acme.admin.put(f"{mia.path}/profile/preferences.language?project={mine['project']}", {"value": "pl"}))
    own = {
        name: mia.remembers(f"Mia keeps a {name}.") for name in ("memory_id", "supersedes", "replaces", "derived_from")
    }
    others = [noa.remembers("Noa prefers coffee."), zoe.remembers("Zoe prefers water.")]
    return Ids(
        acme,
        own | mine | {"external_id": "mia", "key": "preferences.language", "project_id": mine["project"]},
        dict.fromkeys(own, others)
        | {name: [value] for name, value in hers.items()}
        | {"external_id": ["zoe"], "key": ["preferences.diet", "preferences.pet"], "project_id": [hers["project"]]},
    )


def _things(world):
    """A project, a document and its job."""
    stored = expect(202, world.admin.post("/v1/knowledge/documents", {"name": "menu", "text": "Soup every day."}))
    return {"project": str(world.project("p")), "document_id": stored["id"], "job_id": stored["job"]["id"]}


def call(rest, route, values):
    """The answer, with what must be equal for strangers and unknowns alike: status, headers and body."""
    body = json.loads(_filled(json.dumps(route.body), values)) if route.body is not None else None
    answer = rest.call(route.method, _filled(route.path + route.query, values), body)
    told = {name: value for name, value in answer.json().items() if name not in ("request_id", "instance")}
    headers = {name: value for name, value in answer.headers.items() if name not in ("X-Request-Id", "Content-Length")}
    return answer.status_code, headers, told


def _filled(text, values):
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def refusable():
    return [(route, name) for route in ROUTES for name in sorted(route.names - route.chosen)]


# --- the list is whole ------------------------------------------------------------------------------------------------


REST = [route for route in routes() if route.path.startswith("/v1/")]


def test_rows_cover_every_route_with_an_id_in_its_path():
    found = {(method, route.path) for route in REST if "{" in route.path for method in route.declared_methods}

    assert found == {(route.method, route.path) for route in ROUTES if "{" in route.path}


def test_routes_without_rows_are_lists_without_ids():
    listed = {route.path for route in ROUTES}
    without = {route.path for route in REST} - listed

    assert without == {"/v1/schema", "/v1/projects", "/v1/subjects", "/v1/purposes", "/v1/profile-keys"}


def test_rows_cover_every_id_in_queries_and_bodies():
    schema = SchemaGenerator().get_schema(public=True)
    found = set()
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            names = {each["name"] for each in operation.get("parameters", []) if _is_id(each["schema"])}
            for content in operation.get("requestBody", {}).get("content", {}).values():
                names |= set(_ids_in(content["schema"], schema))
            found |= {(method.upper(), path, name) for name in names}

    assert found <= {(route.method, route.path, name) for route in ROUTES for name in route.names}
    assert ("POST", "/v1/subjects/{external_id}/memories", "supersedes") in found


def _is_id(schema):
    return schema.get("format") == "uuid"


def _ids_in(shape, schema, name=""):
    while "$ref" in shape:
        shape = schema["components"]["schemas"][shape["$ref"].rsplit("/", 1)[1]]
    if _is_id(shape):
        yield name
    for inner in (*shape.get("oneOf", ()), *shape.get("allOf", ()), *filter(None, [shape.get("items")])):
        yield from _ids_in(inner, schema, name)
    for inner_name, inner in shape.get("properties", {}).items():
        yield from _ids_in(inner, schema, inner_name)


# --- what strangers' ids answer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("route", "name"), refusable(), ids=str)
def test_stranger_answers_as_the_unknown(ids, route, name):
    unknown = call(ids.acme.admin, route, ids.own | {name: ids.unknown(name)})
    strangers = [call(ids.acme.admin, route, ids.own | {name: each}) for each in ids.strangers[name]]

    status, _, body = unknown
    assert (status, body["code"]) == (404, "not_found")
    assert strangers == [unknown] * len(strangers)


def test_own_ids_answer_otherwise(fresh_ids):
    """The control: with one's own ids the very same requests succeed. Deletions come last."""
    in_order = sorted(ROUTES, key=lambda route: route.method == "DELETE")

    answers = {str(route): call(fresh_ids.acme.admin, route, fresh_ids.own) for route in in_order}

    assert {name: answer for name, answer in answers.items() if answer[0] not in (200, 201, 202)} == {}


# --- a key bound to one project ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """A key of project A with every scope, and what stands in project B of the same tenant."""

    key: Any
    own: dict[str, str]
    others: dict[str, str]


@pytest.fixture(scope="module")
def bound():
    acme = open_world("Acme")
    mia = acme.person("mia").consents()
    projects = {letter: acme.project(letter) for letter in "AB"}
    return Bound(
        acme.key("bound", set(Scope), project_id=projects["A"]),
        *(_in_project(acme, mia, str(projects[letter])) for letter in "AB"),
    )


def _in_project(acme, mia, project):
    document = {"name": "menu", "text": f"Soup of {project}.", "project": project}
    stored = expect(202, acme.admin.post("/v1/knowledge/documents", document))
    ingest_document(tenant_id=str(acme.id), document_id=stored["id"], job_id=stored["job"]["id"])
    expect(200, acme.admin.put(f"/v1/profile-keys/preferences.language?project={project}", {}))
    expect(200, acme.admin.put(f"{mia.path}/profile/preferences.language?project={project}", {"value": project}))
    memory = mia.remembers(f"Mia ordered soup in {project}.", project=project)
    return {
        "external_id": "mia",
        "project": project,
        "project_id": project,
        "document_id": stored["id"],
        "job_id": stored["job"]["id"],
        "memory_id": memory,
    }


@pytest.mark.parametrize(
    ("route", "name"),
    [
        (Route("GET", "/v1/projects/{project_id}"), "project_id"),
        (Route("PUT", "/v1/projects/{project_id}", {"name": "taken over"}), "project_id"),
        (Route("GET", "/v1/knowledge/documents/{document_id}"), "document_id"),
        (Route("DELETE", "/v1/knowledge/documents/{document_id}"), "document_id"),
        (Route("GET", PERSON + "/memories/{memory_id}"), "memory_id"),
        (Route("DELETE", PERSON + "/memories/{memory_id}"), "memory_id"),
        (Route("POST", PERSON + "/memories", {"text": "Likes soup.", "derived_from": ["{memory_id}"]}), "memory_id"),
        (Route("POST", PERSON + "/memories", {"text": "Likes soup.", "supersedes": ["{memory_id}"]}), "memory_id"),
        (Route("GET", "/v1/jobs/{job_id}"), "job_id"),
    ],
    ids=str,
)
def test_bound_key_finds_the_other_projects_things_as_little_as_the_unknown(bound, route, name):
    unknown = call(bound.key, route, bound.own | {name: str(uuid4())})
    other = call(bound.key, route, bound.own | {name: bound.others[name]})

    assert (unknown[0], unknown[2]["code"]) == (404, "not_found")
    assert other == unknown


@pytest.mark.parametrize("route", [route for route in ROUTES if "project" in route.names], ids=str)
def test_bound_key_may_name_no_other_project_known_or_not(bound, route):
    memories = dict.fromkeys(("supersedes", "replaces", "derived_from"), bound.own["memory_id"])
    values = bound.own | memories | {"key": "preferences.language"}
    unknown, other = (
        call(bound.key, route, values | {"project": each}) for each in (str(uuid4()), bound.others["project"])
    )

    assert (other[0], other[2]["code"]) == (403, "project_forbidden")
    assert other == unknown


def test_bound_key_lists_and_finds_its_own_project_only(bound):
    seen = [
        expect(200, bound.key.get("/v1/projects")),
        expect(200, bound.key.get("/v1/knowledge/documents")),
        expect(200, bound.key.get("/v1/profile-keys")),
        expect(200, bound.key.get("/v1/subjects/mia/memories")),
        expect(200, bound.key.get("/v1/subjects/mia/profile")),
        expect(200, bound.key.post("/v1/subjects/mia/recall", {"query": "Which soup did Mia order?"})),
        expect(200, bound.key.post("/v1/knowledge/search", {"query": "soup"})),
    ]

    told = [json.dumps(answer) for answer in seen]
    assert [bound.own["project"] in each for each in told] == [True] * len(told)
    assert [bound.others["project"] in each for each in told] == [False] * len(told)
