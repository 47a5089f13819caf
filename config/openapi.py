"""What the OpenAPI schema says beyond the views: the bearer key, refusals, idempotency, scopes.

The scope a method needs is read from the view, so the page and the permission cannot come apart.
"""

import inspect
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import force_instance
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from accounts.errors import DomainError
from accounts.http.fields import StrictSerializer
from accounts.http.views import MAX_EXTERNAL_ID_BYTES
from accounts.services.idempotency import MAX_KEY_LENGTH as MAX_IDEMPOTENCY_KEY
from memory.services.profile import KEY_PATTERN, MAX_KEY_LENGTH

PROBLEM = "Problem"
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class BearerKey(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # the library has no annotations
    target_class = "accounts.authentication.ApiKeyAuthentication"
    name = "ApiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "fmn_<live|sandbox>_…"}


_JSON_BUT_NULL = ["string", "number", "boolean", "array", "object"]
# Printable, as far as a header can carry it.
_IDEMPOTENCY_KEY = {"type": "string", "maxLength": MAX_IDEMPOTENCY_KEY, "pattern": r"^[\x20-\x7e\xa1-\xac\xae-\xff]*$"}
# What an address holds where the URL conf says `<str:…>`.
_IN_PATHS = {
    "external_id": {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_EXTERNAL_ID_BYTES,
        "pattern": r"^[^/\x00\ufffd]+$",
    },
    "key": {"type": "string", "maxLength": MAX_KEY_LENGTH, "pattern": f"^{KEY_PATTERN.pattern}$"},
}


class Schema(AutoSchema):
    """One operation: its scope in words, the headers every write takes, and exactly what is taken."""

    def get_description(self) -> str:  # type: ignore[override] # DRF's own takes the path, this library's does not
        needed = getattr(self.view, "required_scopes", {}).get(self.method)
        scope = f"Needs the scope `{needed.value}`." if needed else ""
        handler = getattr(self.view, self.method.lower(), None)
        return "\n\n".join(filter(None, (inspect.getdoc(handler), scope)))

    def get_override_parameters(self) -> list[Any]:
        parameters = list(super().get_override_parameters())
        asked = getattr(self.view, "queries", {}).get(self.method)
        parameters += [asked] if asked else []
        parameters += [
            OpenApiParameter(name, shape, OpenApiParameter.PATH)
            for name, shape in _IN_PATHS.items()
            if f"{{{name}}}" in self.path
        ]
        if self._is_kept_under_a_key():
            parameters.append(
                OpenApiParameter(
                    "Idempotency-Key",
                    _IDEMPOTENCY_KEY,
                    OpenApiParameter.HEADER,
                    description="Makes a retry safe for 24 hours: the same request gets the same answer, done once.",
                )
            )
        return parameters

    def _is_kept_under_a_key(self) -> bool:
        """A question is sent by POST too; it changes nothing, and its answer is not kept."""
        needed = getattr(self.view, "required_scopes", {}).get(self.method)
        anew = self.method in getattr(self.view, "answers_anew", ())
        return self.method in _WRITES and needed is not None and not needed.value.endswith(":read") and not anew

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: bool = False) -> Any:
        schema = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]
        if type(field) is serializers.JSONField and not field.allow_null:
            schema = {"type": _JSON_BUT_NULL} | schema
        facets = getattr(field, "schema_facets", {})
        # A reference says all there is about its type.
        return schema if "$ref" in schema else schema | facets

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        schema: dict[str, Any] = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        serializer = force_instance(serializer)  # type: ignore[no-untyped-call]
        if isinstance(serializer, StrictSerializer):
            schema["additionalProperties"] = False
            for name, field in serializer.fields.items():
                if getattr(field, "schema_facets", None) and "oneOf" in schema["properties"].get(name, {}):
                    schema["properties"][name] = _blank_taken_too(schema["properties"][name])
        return schema


def _blank_taken_too(shape: dict[str, Any]) -> dict[str, Any]:
    """The library writes "exactly one of the pattern and nothing"; a pattern that nothing satisfies too says it all."""
    given: dict[str, Any] = shape.pop("oneOf")[0]
    return given | shape


def describe_refusals(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A post-processing hook: every operation may answer with a problem (RFC 9457), and what codes there are.

    A body that is declared must be sent, be it `{}`.
    """
    result["components"]["schemas"][PROBLEM] = _problem_schema()
    reference = {"$ref": f"#/components/schemas/{PROBLEM}"}
    answer = {"description": "Refused", "content": {"application/problem+json": {"schema": reference}}}
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"]["default"] = answer
            if "requestBody" in operation:
                operation["requestBody"]["required"] = True
    return result


def _problem_schema() -> dict[str, Any]:
    text = {"type": "string"}
    error = {"type": "object", "properties": {"pointer": text, "detail": text}, "required": ["pointer", "detail"]}
    properties: dict[str, Any] = dict.fromkeys(("type", "title", "detail", "instance", "request_id"), text)
    properties |= {
        "status": {"type": "integer"},
        "code": {"type": "string", "enum": sorted(error_codes())},
        "errors": {"type": "array", "items": error},
    }
    return {"type": "object", "properties": properties, "required": sorted(properties)}


def error_codes() -> set[str]:
    """The stable code of every refusal there is."""
    pending, codes = [DomainError], set[str]()
    while pending:
        error = pending.pop()
        pending += error.__subclasses__()
        codes.add(error.code)
    return codes - {DomainError.code}
