"""JSON Schemas that tenants write: compiled and applied without trusting them.

Nothing is fetched (`offline`), patterns run in linear time (no backtracking), and a schema that could cost more than a
bounded number of steps is refused when it is declared, never when a value comes. Source of the language: JSON Schema
2020-12. Start at `compiled` and `violations`; what a schema costs is in `_Unfolded`.
"""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

# Bytes of a compiled pattern; a counted repetition such as `(a{1000}){1000}` would need far more.
PATTERN_BYTES = 1_000_000
MAX_VALUE_BYTES = 4096
MAX_VALUE_DEPTH = 16
MAX_NODES = 1000
DIALECT = "https://json-schema.org/draft/2020-12/schema"

# Steps (schema nodes times value nodes) up to which single errors are looked for: each found costs about 15 µs.
_EXPLAINED_STEPS = 10_000
_MAX_ERRORS = 20
# References and branches one inside the other at one place of the value.
_MAX_IN_PLACE = 64

_LISTS_IN_PLACE = ("allOf", "anyOf", "oneOf")
_SINGLE_IN_PLACE = ("not", "if", "then", "else")
_MAPS_IN_PLACE = ("dependentSchemas", "dependencies")
_LISTS_INSIDE = ("prefixItems",)
_SINGLE_INSIDE = (
    "additionalProperties",
    "contains",
    "contentSchema",
    "items",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_MAPS_INSIDE = ("properties", "patternProperties")
_REFERENCES = ("$ref", "$dynamicRef")
_COMPARED = ("const", "dependentRequired", "enum", "required", "type")


class SchemaInvalid(ValueError):
    """Not a JSON Schema, one that refers to something outside itself, or one that costs too much.

    `pointer` leads into the schema; the message repeats nothing of it.
    """

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer


def compiled(schema: dict[str, Any]) -> Draft202012Validator:
    """Raises SchemaInvalid with the first thing that is wrong."""
    nodes_of(schema)
    return _validator(schema)


def violations(schema: dict[str, Any], value: Any) -> list[tuple[str, str]]:
    """Where the value breaks the schema and by which keyword: (JSON pointer into it, keyword); never the value.

    Up to 20, and only ("", "") for the whole where finding the places would take long. Raises SchemaInvalid.
    """
    steps = nodes_of(schema) * _size(value)
    validator = _validator(schema)
    if validator.is_valid(value):
        return []
    if steps > _EXPLAINED_STEPS:
        return [("", "")]
    errors = validator.iter_errors(value)
    places = ((_pointer(each.instance_path), str(each.schema_path[-1]) if each.schema_path else "") for each in errors)
    return list(dict.fromkeys(places))[:_MAX_ERRORS]


def excess(value: Any) -> str:
    """Why a value is too large to be kept or checked, or ""."""
    if _depth(value) > MAX_VALUE_DEPTH:
        return f"At most {MAX_VALUE_DEPTH} levels deep."
    encoded = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(encoded.encode("utf-8", "surrogatepass")) > MAX_VALUE_BYTES:
        return f"At most {MAX_VALUE_BYTES} bytes as JSON."
    return ""


def nodes_of(schema: dict[str, Any]) -> int:
    """How many schema nodes apply to a value at most, every reference unfolded; to all values of MAX_VALUE_DEPTH.

    Raises SchemaInvalid above MAX_NODES, for a reference that leaves the schema, and for one that comes back to
    itself without going into the value.
    """
    unfolded = _Unfolded(schema)
    nodes = unfolded.nodes(schema, MAX_VALUE_DEPTH)
    if nodes > MAX_NODES:
        raise SchemaInvalid(f"With its references unfolded it has more than {MAX_NODES} parts.")
    return nodes


def _validator(schema: dict[str, Any]) -> Draft202012Validator:
    try:
        return Draft202012Validator(schema, offline=True, pattern_options=RegexOptions(size_limit=PATTERN_BYTES))
    except ValidationError as error:
        keyword = f" It breaks `{error.schema_path[-1]}`." if error.schema_path else ""
        raise SchemaInvalid(f"Not a JSON Schema.{keyword}", _pointer(error.instance_path)) from error
    except ValueError as error:
        raise SchemaInvalid("Not a JSON Schema.") from error


class _Unfolded:
    """Counts what a schema costs as a tree, without building it: every part is counted once for each depth.

    nodes(part, d) = own + Σ nodes(in place, d) + Σ nodes(inside, d - 1), plus unevaluated(part, d) where the part asks
    what was not evaluated: the validator then runs the branches again to find out (measured: 2.7 times per level).
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._anchors = _anchors(root)
        self._counted: dict[tuple[int, int, bool], int] = {}
        self._open: set[tuple[int, int]] = set()

    def nodes(self, part: Any, depth: int) -> int:
        """Capped a little above MAX_NODES. `depth`: how far the value may still go down."""
        if depth < 0 or not isinstance(part, dict):
            return int(depth >= 0)
        return self._count(part, depth, again=False)

    def _again(self, part: Any, depth: int) -> int:
        """What finding the unevaluated costs: each branch is run, and its own branches again."""
        return self._count(part, depth, again=True) if isinstance(part, dict) else 0

    def _count(self, part: dict[str, Any], depth: int, *, again: bool) -> int:
        place = (id(part), depth, again)
        if place not in self._counted:
            self._counted[place] = min(MAX_NODES + 1, self._sum_again(part, depth) if again else self._sum(part, depth))
        return self._counted[place]

    def _sum(self, part: dict[str, Any], depth: int) -> int:
        here = (id(part), depth)
        if here in self._open or len({each for each in self._open if each[1] == depth}) >= _MAX_IN_PLACE:
            raise SchemaInvalid("It refers to itself, or too deep, without going into the value.")
        self._open.add(here)
        nodes = 1 + sum(_size(part[keyword]) for keyword in _COMPARED if keyword in part)
        nodes += sum(self.nodes(each, depth) for each in self._in_place(part))
        nodes += sum(self.nodes(each, depth - 1) for each in _inside(part))
        if "unevaluatedProperties" in part or "unevaluatedItems" in part:
            nodes += self._again(part, depth)
        self._open.discard(here)
        return nodes

    def _sum_again(self, part: dict[str, Any], depth: int) -> int:
        return sum(self.nodes(each, depth) + self._again(each, depth) for each in self._in_place(part))

    def _in_place(self, part: dict[str, Any]) -> Iterator[Any]:
        """The parts that apply to the same place of the value."""
        yield from (self._target(part[name]) for name in _REFERENCES if name in part)
        yield from _parts(part, _LISTS_IN_PLACE, _SINGLE_IN_PLACE, _MAPS_IN_PLACE)

    def _target(self, reference: Any) -> Any:
        """What a reference names. With one document and no base of its own, a dynamic one is a plain one."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise SchemaInvalid("A reference must begin with `#`: nothing outside the schema is read.")
        name = unquote(reference[1:])
        try:
            return _at(self._root, name) if name[:1] in ("", "/") else self._anchors[name]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise SchemaInvalid("A reference names what is not in the schema.") from error


def _inside(part: dict[str, Any]) -> Iterator[Any]:
    """The parts that apply one level further down in the value."""
    yield from _parts(part, _LISTS_INSIDE, _SINGLE_INSIDE, _MAPS_INSIDE)


def _parts(
    part: dict[str, Any], lists: tuple[str, ...], singles: tuple[str, ...], maps: tuple[str, ...]
) -> Iterator[Any]:
    yield from (part[name] for name in singles if name in part)
    for name in lists:
        yield from part[name] if isinstance(part.get(name), list) else ()
    for name in maps:
        yield from part[name].values() if isinstance(part.get(name), dict) else ()


def _anchors(root: dict[str, Any]) -> dict[str, Any]:
    """Every named part. Raises SchemaInvalid where a part would give its references another base or language."""
    named: dict[str, Any] = {}
    for part in _objects(root):
        if isinstance(part.get("$id"), str) and part is not root:
            raise SchemaInvalid("`$id` may stand at the top only.")
        if isinstance(part.get("$schema"), str) and part["$schema"].rstrip("#") != DIALECT:
            raise SchemaInvalid("Only JSON Schema 2020-12 is taken.")
        for name in {part[key] for key in ("$anchor", "$dynamicAnchor") if isinstance(part.get(key), str)}:
            if name in named:
                raise SchemaInvalid("An anchor is named twice.")
            named[name] = part
    return named


def _objects(root: Any) -> Iterator[dict[str, Any]]:
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
        waiting.extend(_members(each))


def _at(root: Any, pointer: str) -> Any:
    """What an RFC 6901 pointer leads to."""
    found = root
    for step in pointer.split("/")[1:]:
        found = found[int(step)] if isinstance(found, list) else found[step.replace("~1", "/").replace("~0", "~")]
    return found


def _pointer(path: list[str | int]) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def _members(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _size(value: Any) -> int:
    """Nodes of a JSON value, itself included."""
    size, waiting = 0, [value]
    while waiting:
        size += 1
        waiting.extend(_members(waiting.pop()))
    return size


def _depth(value: Any) -> int:
    """Levels of arrays and objects; 0 for what is neither."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [member for each in level for member in _members(each)]
    return depth
