"""How this process is: `ok`, `degraded` (REST works, something beside it does not), or 503."""

from concurrent.futures import ThreadPoolExecutor

from django.contrib.auth.decorators import login_not_required
from django.db import Error, connections
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from accounts.usage import lossy_store

# What each part's absence costs; docs/operations.md says more.
_DATABASES = ("default", "audit", "keys")
_NEEDED = ("default", "audit")


@login_not_required
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """All parts are asked at once: a probe waits for the slowest, not for their sum."""
    with ThreadPoolExecutor(len(_DATABASES)) as asking:
        parts = dict(zip(_DATABASES, asking.map(_answers, _DATABASES), strict=True))
    parts["valkey"] = lossy_store().available()
    serving = all(parts[alias] for alias in _NEEDED)
    status = "ok" if all(parts.values()) else "degraded" if serving else "unavailable"
    body = {"status": status, "parts": {name: "ok" if up else "down" for name, up in parts.items()}}
    return JsonResponse(body, status=200 if serving else 503)


def _answers(alias: str) -> bool:
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute("SELECT 1")
            return True
    except Error:
        return False
    finally:
        connections[alias].close()
