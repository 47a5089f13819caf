"""The page that every problem's `type` points to: docs/errors.md as it is, so a refusal explains itself offline."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

ERRORS_PAGE = settings.BASE_DIR / "docs" / "errors.md"


@login_not_required
@require_safe
def errors_page(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(ERRORS_PAGE.read_bytes(), content_type="text/markdown; charset=utf-8")
