"""JSON Schemas that tenants write: compiled and applied without trusting them.

Nothing is fetched (`offline`), patterns run in linear time (no backtracking), and what does not compile is refused when
it is declared, never when a value comes. Source of the language: JSON Schema 2020-12.
"""

from typing import Any

from jsonschema_rs import Draft202012Validator, RegexOptions

# Bytes of a compiled pattern; a counted repetition such as `(a{1000}){1000}` would need far more.
PATTERN_BYTES = 1_000_000


class SchemaInvalid(ValueError):
    """Not a JSON Schema, or one that refers to something outside itself."""


def compiled(schema: dict[str, Any]) -> Draft202012Validator:
    """Raises SchemaInvalid with the first thing that is wrong."""
    try:
        return Draft202012Validator(schema, offline=True, pattern_options=RegexOptions(size_limit=PATTERN_BYTES))
    except ValueError as error:
        raise SchemaInvalid(str(error).partition("\n")[0]) from error


def violations(schema: dict[str, Any], value: Any) -> list[tuple[str, str]]:
    """Where the value breaks the schema and by which keyword: (JSON pointer into it, keyword); never the value."""
    errors = compiled(schema).iter_errors(value)
    return [("".join(f"/{step}" for step in each.instance_path), str(each.schema_path[-1])) for each in errors]
