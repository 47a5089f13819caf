"""Serializer fields that take exactly the JSON type they name, and serializers that refuse what they do not know."""

import json
import re
from collections.abc import Mapping
from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers
from rest_framework.fields import empty

# So many errors an answer names; the last one says how many more there are.
MAX_ERRORS = 20


def and_more(count: int) -> str:
    return f"And {count} more."


# What `str.strip` takes for white space, as a class that every regular expression engine understands alike.
_SPACE = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_PATTERNS = {
    (True, False): r"^[^\x00]*$",
    (False, True): rf"[^{_SPACE}]",
    (True, True): rf"[^\x00{_SPACE}]",
}


class ExactText(serializers.CharField):
    """A JSON string kept exactly as sent: not trimmed, NUL and all. `max_length` counts code points.

    `plain=True` for what goes into an ordinary text column, an id or a key: there NUL is refused.
    `says_something=True` refuses what is white space only.

    `schema_facets`, here and on other fields, is what the API's schema says beyond what the library reads off a field.
    """

    default_error_messages = {
        "not_text": "Must be a string.",
        "null_characters_not_allowed": "Must not hold NUL.",
        "empty": "Must say something.",
    }

    def __init__(self, *, plain: bool = False, says_something: bool = False, example: str = "", **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)
        self.says_something = says_something
        pattern = _PATTERNS.get((plain, says_something))
        self.schema_facets: dict[str, Any] = {"pattern": pattern} if pattern else {}
        self.schema_facets |= {"examples": [example]} if example else {}
        if not plain:
            self.validators = [v for v in self.validators if type(v).__name__ != "ProhibitNullCharactersValidator"]

    def run_validation(self, data: Any = empty) -> Any:
        value = super().run_validation(data)
        if self.says_something and isinstance(value, str) and not value.strip():
            self.fail("empty")
        return value

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("not_text")
        return data


class ExactPattern(ExactText):
    """A JSON string that matches a pattern as a whole."""

    default_error_messages = {"pattern": "Does not have the right form."}

    def __init__(self, pattern: str, **options: Any) -> None:
        super().__init__(plain=True, **options)
        self.schema_facets = {}
        self.pattern = re.compile(pattern)
        # The schema reads the pattern off this validator; the check is the stricter fullmatch below.
        self.validators.append(RegexValidator(self.pattern))

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not self.pattern.fullmatch(text):
            self.fail("pattern")
        return text


class ExactChoice(serializers.ChoiceField):
    """One of a closed set of strings. The refusal names the set, not what was sent."""

    default_error_messages = {"invalid_choice": "Must be one of: {allowed}."}

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("invalid_choice", allowed=", ".join(map(str, self.choices)))
        return data


class ExactId(serializers.UUIDField):
    default_error_messages = {"invalid": "Must be a UUID."}

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class ExactEmail(serializers.EmailField):
    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class ExactList(serializers.ListField):
    """A JSON array. Its length is looked at before its elements: a body of a hundred thousand is refused at once.

    `unique=True` for elements that can be compared: the same one twice is refused.
    """

    default_error_messages = {"twice": "The same value stands in it twice."}

    def __init__(self, *, unique: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.unique = unique
        self.schema_facets: dict[str, Any] = {"uniqueItems": True} if unique else {}

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            self.fail("not_a_list", input_type=type(data).__name__)
        if self.max_length is not None and len(data) > self.max_length:
            self.fail("max_length", max_length=self.max_length)
        value: list[Any] = super().to_internal_value(data)
        if self.unique and len(set(value)) != len(value):
            self.fail("twice")
        return value


_DIGITS = re.compile(r"-?[0-9]{1,18}")
# `\\u0000` with an even number of backslashes before it; an odd one is the text of a backslash and `u0000`.
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class SmallObject(serializers.DictField):
    """A JSON object of bounded size. NUL has no place in it: it goes into columns that cannot hold it."""

    default_error_messages = {"too_large": "At most {limit} bytes as JSON.", "nul": "Must not hold NUL."}

    def __init__(self, *, max_bytes: int = 4096, **options: Any) -> None:
        super().__init__(**options)
        self.max_bytes = max_bytes

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value: dict[str, Any] = super().to_internal_value(data)
        encoded = json.dumps(value, ensure_ascii=False)
        if len(encoded.encode()) > self.max_bytes:
            self.fail("too_large", limit=self.max_bytes)
        if _ESCAPED_NUL.search(encoded):
            self.fail("nul")
        return value


class ExactInteger(serializers.IntegerField):
    """A JSON number that is whole: JSON knows no integers, and some clients write 5 as 5.0."""

    def to_internal_value(self, data: Any) -> int:
        if type(data) is float and data.is_integer():
            data = int(data)
        if type(data) is not int:
            self.fail("invalid")
        return super().to_internal_value(data)


class QueryInteger(serializers.IntegerField):
    """An integer in an address, in ASCII digits and nothing else: Python would read `1_0`, `٣` and `5.0` as well."""

    def to_internal_value(self, data: Any) -> int:
        if not _DIGITS.fullmatch(str(data)):
            self.fail("invalid")
        return super().to_internal_value(data)


class ExactNumber(serializers.FloatField):
    def to_internal_value(self, data: Any) -> float:
        if type(data) not in (int, float):
            self.fail("invalid")
        return super().to_internal_value(data)


class ExactBoolean(serializers.BooleanField):
    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class ExactInstant(serializers.DateTimeField):
    """ISO 8601 with an offset; without one it is refused, since nobody can say which day was meant."""

    default_error_messages = {"offset": "Give the instant with an offset, for example 2026-05-03T14:20:00Z."}

    def __init__(self, **options: Any) -> None:
        super().__init__(input_formats=["iso-8601"], **options)

    def enforce_timezone(self, value: Any) -> Any:
        if value.tzinfo is None:
            self.fail("offset")
        return super().enforce_timezone(value)

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid", format="ISO 8601")
        return super().to_internal_value(data)


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses names it does not declare: a misspelt filter must not widen a search."""

    default_error_messages = {"unknown": "Not a known name here."}

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            unknown = sorted(set(data) - set(self.fields))
            if unknown:
                raise serializers.ValidationError(self._refusals(unknown))
        return super().to_internal_value(data)

    def _refusals(self, unknown: list[str]) -> dict[str, list[str]]:
        """Cut here already: an error for each of the hundred thousand names a body can hold takes seconds to make."""
        message = str(self.error_messages["unknown"])
        if len(unknown) <= MAX_ERRORS:
            return {name: [message] for name in unknown}
        shown = unknown[: MAX_ERRORS - 1]
        rest = {"non_field_errors": [and_more(len(unknown) - len(shown))]}
        return {name: [message] for name in shown} | rest
