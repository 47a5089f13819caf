"""The page that every problem's `type` points to: docs/errors.md as it is, so a refusal explains itself offline."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse

ERRORS_PAGE = settings.BASE_DIR / "docs" / "errors.md"


def errors_page(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(ERRORS_PAGE.read_bytes(), content_type="text/markdown; charset=utf-8")
