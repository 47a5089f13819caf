"""The addresses of the URL conf, in the form of the API's schema: `/v1/subjects/{external_id}`."""

import re
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, get_resolver


@dataclass(frozen=True)
class Route:
    path: str
    view: Any

    @property
    def declared_methods(self):
        """What a REST view says it takes; a page says so by its decorators alone."""
        return frozenset(getattr(getattr(self.view, "view_class", None), "required_scopes", ()))


def routes(patterns=None, prefix="/"):
    for entry in get_resolver().url_patterns if patterns is None else patterns:
        path = prefix + _as_written(str(entry.pattern))
        if isinstance(entry, URLPattern):
            yield Route(path, entry.callback)
        else:
            yield from routes(entry.url_patterns, path)


def _as_written(pattern):
    """`<uuid:job_id>` and `(?P<job_id>…)` as `{job_id}`."""
    named = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"{\1}", pattern.removeprefix("^").removesuffix("$"))
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", named)
