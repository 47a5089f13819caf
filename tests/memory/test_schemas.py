"""Schemas of tenants: what one may cost, what it may refer to, and that a refusal repeats nothing of it."""

import json

import pytest

from memory.schemas import SchemaInvalid, compiled, excess, nodes_of, violations

SECRET = "peanuts-and-penicillin"


def chain(count, part, last):
    """count parts, each made from the reference to the next; the last stands at the end."""
    parts = {f"d{number}": part(f"#/$defs/d{number + 1}") for number in range(count)}
    return {"$ref": "#/$defs/d0", "$defs": parts | {f"d{count}": last}}


RICH = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.com/address-book",
    "type": "object",
    "required": ["name", "contacts"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 100},
        "language": {"enum": ["de", "en", "fr", "it", "nb", "pt"]},
        "contacts": {"type": "array", "items": {"$ref": "#/$defs/contact"}, "maxItems": 20, "uniqueItems": True},
        "home": {"$ref": "#address"},
        "work": {"$ref": "#address"},
    },
    "additionalProperties": False,
    "$defs": {
        "contact": {
            "type": "object",
            "oneOf": [{"required": ["email"]}, {"required": ["phone"]}],
            "properties": {
                "email": {"type": "string", "pattern": "^[^@]+@[^@]+$"},
                "phone": {"type": "string", "pattern": "^\\+[0-9 ]+$"},
            },
            "unevaluatedProperties": False,
        },
        "address": {
            "$anchor": "address",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            "if": {"required": ["street"]},
            "then": {"required": ["city"]},
        },
    },
}


def test_rich_schema_is_taken_and_holds():
    good = {
        "name": "Mia",
        "contacts": [{"email": "mia@example.com"}],
        "home": {"street": "High Street", "city": "Bath"},
    }

    assert nodes_of(RICH) < 100
    assert violations(RICH, good) == []
    assert violations(RICH, good | {"contacts": [{"email": SECRET}]}) == [("/contacts/0/email", "pattern")]
    assert violations(RICH, good | {"home": {"street": "High Street"}}) == [("/home", "required")]
    assert violations(RICH, {"contacts": []}) == [("", "required")]


def test_enum_of_all_countries_is_taken():
    assert compiled({"enum": [f"{first}{second}" for first in "ABCDEFGHIJKLM" for second in "ABCDEFGHIJKLMNOPQRS"]})


TREES = {
    "by pointer": {"properties": {"name": {"type": "string"}, "children": {"items": {"$ref": "#"}}}},
    "by anchor": {
        "$anchor": "node",
        "properties": {"name": {"type": "string"}, "children": {"items": {"$ref": "#node"}}},
    },
    "dynamically": {
        "$dynamicAnchor": "node",
        "properties": {"name": {"type": "string"}, "children": {"items": {"$dynamicRef": "#node"}}},
    },
    "mutually": {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {"properties": {"name": {"type": "string"}, "children": {"$ref": "#/$defs/nodes"}}},
            "nodes": {"items": {"$ref": "#/$defs/node"}},
        },
    },
}


@pytest.mark.parametrize("schema", TREES.values(), ids=TREES)
def test_schema_that_refers_to_itself_inside_the_value_is_taken(schema):
    assert violations(schema, {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}) == []
    assert violations(schema, {"children": [{"children": [{"name": 5}]}]}) == [("/children/0/children/0/name", "type")]


LOOPS = {
    "by pointer": {"$ref": "#"},
    "dynamically": {"$dynamicAnchor": "node", "allOf": [{"$dynamicRef": "#node"}]},
    "mutually": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}},
    },
    "inside": {"properties": {"a": {"if": {"$ref": "#/properties/a"}}}},
    "dependent": {"dependentSchemas": {"a": {"$ref": "#"}}},
    "after 400 steps": chain(400, lambda following: {"$ref": following}, {"type": "string"}),
}


@pytest.mark.parametrize("schema", LOOPS.values(), ids=LOOPS)
def test_schema_that_refers_to_itself_in_one_place_is_refused(schema):
    with pytest.raises(SchemaInvalid, match="without going into the value"):
        compiled(schema)


COSTLY = {
    "doubling": chain(26, lambda following: {"allOf": [{"$ref": following}] * 2}, {"type": "string"}),
    "doubling by anchor": {
        "$ref": "#d0",
        "$defs": {
            f"d{number}": {"$anchor": f"d{number}", "anyOf": [{"$ref": f"#d{min(number + 1, 26)}"}] * 2}
            if number < 26
            else {"$anchor": "d26", "type": "string"}
            for number in range(27)
        },
    },
    "doubling dynamically": chain(
        26,
        lambda following: {"allOf": [{"$ref": following}], "anyOf": [{"$dynamicRef": following}]},
        {"type": "string"},
    ),
    "twice itself inside": {"items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}},
    "twice mutually inside": {
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {"properties": {"x": {"$ref": "#/$defs/b"}}, "additionalProperties": {"$ref": "#/$defs/b"}},
            "b": {"items": {"$ref": "#/$defs/a"}, "contains": {"$ref": "#/$defs/a"}},
        },
    },
    "unevaluated properties": chain(
        18,
        lambda following: {"anyOf": [{"$ref": following}], "unevaluatedProperties": False},
        {"properties": {"a": {}}},
    ),
    "unevaluated items": chain(
        18, lambda following: {"oneOf": [{"$ref": following}], "unevaluatedItems": False}, {"prefixItems": [True]}
    ),
    "a property of a telling name": {
        "properties": {
            "$defs": chain(26, lambda following: {"allOf": [{"$ref": f"#/properties/$defs{following[1:]}"}] * 2}, {})
            | {"$ref": "#/properties/$defs/$defs/d0"}
        }
    },
    "a long list compared often": {
        "items": {"allOf": [{"$ref": "#/$defs/many"}] * 100},
        "$defs": {"many": {"enum": list(range(100))}},
    },
}


@pytest.mark.parametrize("schema", COSTLY.values(), ids=COSTLY)
def test_schema_that_costs_too_much_is_refused_when_it_is_declared(schema):
    """One value took five seconds with the first of these, and would never end with a longer one."""
    with pytest.raises(SchemaInvalid, match="more than 1000 parts"):
        compiled(schema)


def test_value_that_breaks_a_schema_a_million_times_is_named_as_a_whole():
    """To name every place took 25 seconds; so only the whole is named."""
    schema = {"items": {"allOf": [{"$ref": "#/$defs/one"}] * 330}, "$defs": {"one": {"const": 1}}}

    assert violations(schema, [2] * 2000) == [("", "")]


def test_at_most_twenty_places_are_named_each_once():
    schema = {"items": {"allOf": [{"type": "string"}, {"type": "string"}]}}

    assert violations(schema, [1] * 50) == [(f"/{place}", "type") for place in range(20)]


def test_names_in_a_pointer_are_escaped():
    assert violations({"additionalProperties": {"type": "string"}}, {"a/b~c": 1}) == [("/a~1b~0c", "type")]


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"properties": {"a/b": {"type": SECRET}}}, "/properties/a~1b/type"),
        ({"pattern": f"({SECRET}"}, "/pattern"),
        ({"pattern": "(a{1000}){1000}"}, "/pattern"),
        ({"maxLength": -1}, "/maxLength"),
        ({"$ref": f"http://{SECRET}/"}, ""),
        ({"$dynamicRef": SECRET}, ""),
        ({"$ref": f"#/$defs/{SECRET}"}, ""),
        ({"$ref": f"#{SECRET}"}, ""),
        ({"$defs": {"a": {"$id": SECRET}}}, ""),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, ""),
        ({"$defs": {"a": {"$anchor": SECRET}, "b": {"$dynamicAnchor": SECRET}}}, ""),
    ],
    ids=str,
)
def test_refusal_names_the_place_and_repeats_nothing(schema, pointer):
    with pytest.raises(SchemaInvalid) as refused:
        compiled(schema)

    assert refused.value.pointer == pointer
    assert SECRET not in str(refused.value)


def nested(levels):
    value = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("x" * 4094, ""),
        ("x" * 4095, "At most 4096 bytes as JSON."),
        ([1] * 2047, ""),
        ([1] * 2048, "At most 4096 bytes as JSON."),
        (nested(16), ""),
        (nested(17), "At most 16 levels deep."),
        ("\ud800", ""),
    ],
    ids=lambda value: json.dumps(value)[:12],
)
def test_value_is_bounded(value, why):
    assert excess(value) == why
