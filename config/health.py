"""How this process is: `ok`, `degraded` (REST works, something beside it does not), or 503."""

from django.db import Error, connections
from django.http import HttpRequest, HttpResponse, JsonResponse

from accounts.usage import lossy_store

# What each part's absence costs; docs/operations.md says more.
_NEEDED = ("default", "audit")


def healthz(_request: HttpRequest) -> HttpResponse:
    parts = {alias: _answers(alias) for alias in ("default", "audit", "keys")}
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
        connections[alias].close()
        return False
