"""Versions over HTTP: `ETag` out, `If-Match` in (RFC 9110, 13.1.1)."""

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from accounts.errors import FieldError, ValidationFailed

_MOST_DIGITS = 18
IF_MATCH = OpenApiParameter(
    "If-Match",
    {"type": "string", "pattern": rf'^(\*|"[0-9]{{1,{_MOST_DIGITS}}}")$'},
    OpenApiParameter.HEADER,
    description="The ETag of the version that may be replaced; another one is answered with 412.",
)


def etag(version: int) -> str:
    return f'"{version}"'


def if_match(request: Request) -> int | None:
    """The version If-Match names; None without the header and for `*`, which any version satisfies."""
    header = request.headers.get("If-Match", "*")
    if header == "*":
        return None
    number = header.removeprefix('"').removesuffix('"')
    if header != f'"{number}"' or not (number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS):
        raise ValidationFailed(errors=[FieldError("If-Match", "Not an ETag of this resource.")])
    return int(number)
