"""Who reads a page, as far as it shows: language, zone of times, light or dark. REST is left as it is.

`Reader` is the middleware, `preferences` the form's address, `page_context` what every template is given.
"""

from collections.abc import Callable
from zoneinfo import available_timezones

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from audit.context import request_id

type GetResponse = Callable[[HttpRequest], HttpResponse]

THEMES = ("system", "light", "dark")
THEME_COOKIE = "fmn_theme"
ZONE_COOKIE = "fmn_zone"  # set by static/js/page.js
YEAR_SECONDS = 365 * 24 * 3600
_ZONES = available_timezones()
# What a page has no use for, so that nothing brought into one has it either.
PERMISSIONS = ", ".join(
    f"{feature}=()" for feature in ("camera", "display-capture", "geolocation", "microphone", "payment", "usb")
)


class Reader:
    """Pages speak the reader's language and tell times in their zone. An answer of REST is the same for everybody."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_page(request):
            return self.get_response(request)
        language = translation.get_language_from_request(request)
        with translation.override(language), timezone.override(_zone_of(request)):
            response = self.get_response(request)
        response.setdefault("Content-Language", language)
        response.setdefault("Permissions-Policy", PERMISSIONS)
        response.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        patch_vary_headers(response, ("Accept-Language", "Cookie"))
        return response


def is_page(request: HttpRequest) -> bool:
    return not request.path.startswith("/v1/") and request.path != "/healthz"


def _zone_of(request: HttpRequest) -> str | None:
    zone = request.COOKIES.get(ZONE_COOKIE, "")
    return zone if zone in _ZONES else None


@login_not_required
@require_POST
def preferences(request: HttpRequest) -> HttpResponse:
    """Keeps the theme or the language in a cookie, and goes back to where the form was."""
    response = HttpResponseRedirect(_way_back(request))
    theme, language = request.POST.get("theme"), request.POST.get("language")
    if theme in THEMES:
        _keep(response, THEME_COOKIE, theme)
    if language in dict(settings.LANGUAGES):
        _keep(response, settings.LANGUAGE_COOKIE_NAME, language)
    return response


def _way_back(request: HttpRequest) -> str:
    back = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure())
    return back if ours else "/"


def _keep(response: HttpResponse, name: str, value: str) -> None:
    secure = settings.SESSION_COOKIE_SECURE
    response.set_cookie(name, value, max_age=YEAR_SECONDS, secure=secure, httponly=True, samesite="Lax")


def page_context(request: HttpRequest) -> dict[str, object]:
    """For every template. Nothing here asks a database: error pages use it too."""
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return {
        "theme": theme if theme in THEMES else "system",
        "page_language": translation.get_language() or settings.LANGUAGE_CODE,
        "page_dir": "rtl" if translation.get_language_bidi() else "ltr",
        "page_languages": [(code, translation.get_language_info(code)["name_local"]) for code, _ in settings.LANGUAGES],
        "page_zone": timezone.get_current_timezone_name(),
        # Only a page that was asked for can be gone back to.
        "way_back": request.get_full_path() if request.method in {"GET", "HEAD"} else "/",
        "request_id": request_id.get(),
    }
