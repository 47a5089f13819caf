"""JSON in, strictly: UTF-8, no lone surrogates, no duplicate names, no NaN, bounded depth and size."""

import json
import re
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from accounts.errors import FieldError, PayloadTooLarge, ValidationFailed

MAX_BODY_BYTES = 1024 * 1024
MAX_DEPTH = 32


class StrictJSONParser(BaseParser):
    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        return parse_json(stream.read(MAX_BODY_BYTES + 1))


class JsonOnly(DefaultContentNegotiation):
    """One representation: JSON, whatever Accept says; an error page must be readable too."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


def declared_too_large(content_length: str) -> bool:
    """What a Content-Length announces; one that is no number is left to the server, which refuses it."""
    # No number of more than 20 digits is made: Python refuses to make a very long one.
    return content_length.isdecimal() and (len(content_length) > 20 or int(content_length) > MAX_BODY_BYTES)


def parse_json(body: bytes) -> Any:
    """Raises ValidationFailed with what is wrong and where, PayloadTooLarge over 1 MiB."""
    if len(body) > MAX_BODY_BYTES:
        raise PayloadTooLarge
    try:
        text = body.decode("utf-8")
        _refuse_depth(text)
        value = json.loads(text, object_pairs_hook=_unique_names, parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise _invalid("The body holds a lone surrogate, which is not a character.") from error
    except UnicodeDecodeError as error:
        raise _invalid(f"The body is not UTF-8 (byte {error.start}).") from error
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        raise _invalid(f"The body is not JSON: {getattr(error, 'msg', str(error))}.") from error
    return value


# Possessive, and an unterminated string reaches to the end: no byte is looked at twice.
_STRINGS = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)


def _refuse_depth(text: str) -> None:
    """Count brackets outside strings before parsing, so that no nesting reaches the parser's own recursion."""
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", _STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise _invalid(f"The body is nested deeper than {MAX_DEPTH} levels.")


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _invalid("A name occurs twice in one object.")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise _invalid(f"{name} is not a JSON number.")


def _invalid(detail: str) -> ValidationFailed:
    return ValidationFailed(errors=[FieldError("", detail)])
