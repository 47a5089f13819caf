"""What the OpenAPI schema says beyond the views: the bearer key, refusals, idempotency, scopes.

The scope a method needs is read from the view, so the page and the permission cannot come apart.
"""

import inspect
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from accounts.errors import DomainError

PROBLEM = "Problem"
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class BearerKey(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # the library has no annotations
    target_class = "accounts.authentication.ApiKeyAuthentication"
    name = "ApiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "fmn_<live|sandbox>_…"}


class Schema(AutoSchema):
    """One operation: its scope in words, the headers every write takes."""

    def get_description(self) -> str:  # type: ignore[override] # DRF's own takes the path, this library's does not
        needed = getattr(self.view, "required_scopes", {}).get(self.method)
        scope = f"Needs the scope `{needed.value}`." if needed else ""
        handler = getattr(self.view, self.method.lower(), None)
        return "\n\n".join(filter(None, (inspect.getdoc(handler), scope)))

    def get_override_parameters(self) -> list[Any]:
        parameters = list(super().get_override_parameters())
        asked = getattr(self.view, "queries", {}).get(self.method)
        parameters += [asked] if asked else []
        if self.method in _WRITES:
            parameters.append(
                OpenApiParameter(
                    "Idempotency-Key",
                    str,
                    OpenApiParameter.HEADER,
                    description="Makes a retry safe for 24 hours: the same request gets the same answer, done once.",
                )
            )
        return parameters


def describe_refusals(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A post-processing hook: every operation may answer with a problem (RFC 9457), and what codes there are."""
    result["components"]["schemas"][PROBLEM] = _problem_schema()
    reference = {"$ref": f"#/components/schemas/{PROBLEM}"}
    answer = {"description": "Refused", "content": {"application/problem+json": {"schema": reference}}}
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"]["default"] = answer
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
