"""Every field of every body and every query, as the API's schema declares it, is refused a value of any other type.

The requests are made from the schema, so a new field is tried without a line here. `SOUND` holds a body for each
operation that takes one: it is taken as it is (the control), and then broken in one place at a time.
"""

import json
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from drf_spectacular.generators import SchemaGenerator

from tests.house.filled import expect
from tests.world import open_world

ANY = str(uuid4())
SOUND: dict[str, Any] = {
    "POST /v1/knowledge/documents": {"name": "n", "text": "x", "title": "t", "source": "s", "tags": ["t"]},
    "POST /v1/knowledge/search": {"query": "x", "tags": ["t"], "created_after": "2026-01-01T00:00:00Z", "limit": 5},
    "PUT /v1/profile-keys/{key}": {"schema": {"type": "string"}, "sensitive": False},
    "POST /v1/projects": {"name": "n", "scoring": {"name": "decay"}, "undeclared_profile_keys": True},
    "PUT /v1/projects/{project_id}": {"name": "m", "scoring": {}, "undeclared_profile_keys": False},
    "PUT /v1/subjects/{external_id}": {"email": "mia@acme.example", "name": "Mia", "time_zone": "Europe/Warsaw"},
    "POST /v1/subjects/{external_id}/consents": {"event": "given", "purposes": ["memory.infer"], "evidence": "m"},
    "POST /v1/subjects/{external_id}/memories": {"text": "x", "categories": ["food"], "metadata": {"a": 1}},
    "POST /v1/subjects/{external_id}/portal-links": {},
    "PUT /v1/subjects/{external_id}/profile/{key}": {"value": "de"},
    "POST /v1/subjects/{external_id}/recall": {"query": "x", "kinds": ["semantic"], "scoring": {"name": "recency"}},
}
NO_NUL = r"^[^\x00]*$"
# A value of every type JSON has, and some that look like another.
VALUES: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, 10**40, 0.5, 1e308, "", "x", "5", "true", "null", "2026-01-01", ANY,
    [], [None], ["x"], [1], [[]], {}, {"x": "y"}, {"": None}, [{}],
)  # fmt: skip


def operations():
    schema = SchemaGenerator().get_schema(public=True)
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation, schema["components"]["schemas"]


def resolved(shape, schemas):
    while "$ref" in shape:
        shape = schemas[shape["$ref"].rpartition("/")[2]]
    return shape


def properties(shape, schemas):
    """(name, shape) of each field of a body; of a choice between bodies, those of the first."""
    shape = resolved(shape, schemas)
    return properties(shape["oneOf"][0], schemas) if "oneOf" in shape else shape.get("properties", {}).items()


def types_of(shape, schemas):
    """The JSON types a shape lets through."""
    shape = resolved(shape, schemas)
    inner = [types_of(each, schemas) for name in ("oneOf", "anyOf", "allOf") for each in shape.get(name, ())]
    own = shape.get("type", [])
    return set(own if isinstance(own, list) else [own]).union(*inner)


def type_of(value):
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def is_wrong(value, allowed):
    return type_of(value) not in allowed | ({"integer"} if "number" in allowed else set())


BODIES = {
    name: (operation["requestBody"]["content"]["application/json"]["schema"], schemas)
    for name, operation, schemas in operations()
    if "requestBody" in operation
}
FIELDS = [
    (name, field, types_of(shape, schemas))
    for name, (body, schemas) in BODIES.items()
    for field, shape in properties(body, schemas)
]
QUERIES = [
    (name, parameter["name"], parameter["schema"])
    for name, operation, _ in operations()
    for parameter in operation.get("parameters", ())
    if parameter["in"] == "query"
]


class Target:
    """Where requests go: names in braces filled in, what is stored shared by all."""

    def __init__(self):
        self.acme = open_world("Acme")
        self.acme.person("mia").consents("memory.store", "memory.personalise", "memory.sensitive")
        expect(200, self.acme.admin.put("/v1/profile-keys/preferences.language", {}))
        self.ids = {
            "external_id": "mia",
            "key": "preferences.language",
            "project_id": self.acme.project("p"),
            "memory_id": ANY,
            "document_id": ANY,
            "job_id": ANY,
        }

    def send(self, name, body=None, query=""):
        method, path = name.split(" ")
        return self.acme.admin.call(method, path.format(**self.ids) + query, body)


@pytest.fixture(scope="module")
def target():
    return Target()


def refusal(answer):
    return answer.status_code, answer.json()["code"]


def test_there_is_a_sound_body_for_every_operation_that_takes_one(target):
    assert set(SOUND) == set(BODIES)
    answers = {name: target.send(name, body).status_code for name, body in SOUND.items()}
    assert {name: status for name, status in answers.items() if status not in (200, 201, 202)} == {}


@pytest.mark.parametrize(("name", "field", "allowed"), FIELDS, ids=lambda part: part if isinstance(part, str) else "")
def test_field_is_refused_every_value_of_another_type(target, name, field, allowed):
    wrong = [value for value in VALUES if is_wrong(value, allowed)]

    answers = {json.dumps(value): target.send(name, SOUND[name] | {field: value}) for value in wrong}

    assert {value: refusal(answer) for value, answer in answers.items()} == dict.fromkeys(
        answers, (400, "validation_failed")
    )
    assert wrong


@pytest.mark.parametrize("name", BODIES)
def test_body_that_is_no_object_is_refused(target, name):
    answers = {json.dumps(value): target.send(name, json.dumps(value)) for value in VALUES if type(value) is not dict}
    answers |= {"nothing": target.send(name), "empty": target.send(name, b"")}

    assert {value: refusal(answer) for value, answer in answers.items()} == dict.fromkeys(
        answers, (400, "validation_failed")
    )


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize(
    "unknown", ["colour", "Text", "text ", "", "__proto__", "constructor", "project_id", "tenant_id"]
)
def test_name_nobody_declared_is_refused(target, name, unknown):
    assert refusal(target.send(name, SOUND[name] | {unknown: 1})) == (400, "validation_failed")


@pytest.mark.parametrize(
    ("name", "parameter", "shape"), QUERIES, ids=lambda part: part if isinstance(part, str) else ""
)
def test_parameter_is_refused_what_is_none(target, name, parameter, shape):
    """Those that take any text take that, and nothing is found by it."""
    takes_text = (
        shape.get("type") == "string" and shape.get("pattern") in (None, NO_NUL) and not {"format", "enum"} & set(shape)
    )
    wrong = (
        "x" * 300,
        "[]",
        "{}",
        "-1",
        "1e3",
        "0x1",
        "1_0",
        "٣",
        " 1",
        "1;2",
        "../x",
        "%00",
        "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    )

    answers = [target.send(name, None, f"?{urlencode({parameter: value})}") for value in wrong]

    got = {refusal(answer) if answer.status_code >= 400 else answer.status_code for answer in answers}
    assert got <= (
        {200, (400, "validation_failed"), (404, "not_found")} if takes_text else {(400, "validation_failed")}
    )


@pytest.mark.parametrize("name", [name for name, operation, _ in operations()])
def test_parameter_nobody_declared_is_refused(target, name):
    for query in ("?porject=5", "?limit[]=1", "?=", "?%00=1", "?q[$ne]=1", "?a;b=1"):
        assert refusal(target.send(name, SOUND.get(name), query)) == (400, "validation_failed")
