"""Keyset pages: `limit` and an opaque `cursor` that is the id of the last row seen, so inserts never shift a page."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers

from accounts.errors import FieldError, ValidationFailed
from accounts.http.fields import ExactPattern, QueryInteger, StrictSerializer

MAX_LIMIT = 200
DEFAULT_LIMIT = 50


class PageQuery(StrictSerializer):
    """Query parameters of every list. Lists with filters extend it."""

    limit = QueryInteger(min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT)
    cursor = ExactPattern(r"^[A-Za-z0-9_-]{22}$", required=False, help_text="`next_cursor` of the page before.")


@dataclass(frozen=True, slots=True)
class Page:
    limit: int
    after: UUID | None

    @classmethod
    def of(cls, query: dict[str, Any]) -> "Page":
        return cls(limit=query["limit"], after=decode_cursor(query["cursor"]) if "cursor" in query else None)

    def answer[T](
        self, rows: Sequence[T], render: Callable[[T], dict[str, Any]], id_of: Callable[[T], UUID]
    ) -> dict[str, Any]:
        """The page from up to limit + 1 rows; the row too many only says that there is a next page."""
        shown = rows[: self.limit]
        more = len(rows) > self.limit
        return {
            "items": [render(row) for row in shown],
            "next_cursor": encode_cursor(id_of(shown[-1])) if more else None,
        }


def page_of(item: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    """The shape of a page of these, for the schema."""
    fields: dict[str, Any] = {
        "items": item(many=True),
        "next_cursor": serializers.CharField(allow_null=True, help_text="None on the last page."),
    }
    page: serializers.Serializer[Any] = inline_serializer(f"{item.__name__}Page", fields)
    return page


def encode_cursor(last: UUID) -> str:
    return base64.urlsafe_b64encode(last.bytes).rstrip(b"=").decode()


def decode_cursor(text: str) -> UUID:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return UUID(bytes=raw)
    except (binascii.Error, ValueError) as error:
        raise ValidationFailed(errors=[FieldError("cursor", "Not a cursor of this list.")]) from error
