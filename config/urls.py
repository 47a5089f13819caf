"""All addresses: REST under /v1/, its schema, health."""

from django.urls import include, path
from drf_spectacular.views import SpectacularJSONAPIView

from config.docs import errors_page
from config.health import healthz
from config.home import home
from config.reader import preferences
from config.style import style_page

urlpatterns = [
    path("", home, name="home"),
    path("healthz", healthz, name="healthz"),
    path("preferences", preferences, name="preferences"),
    path("docs/style", style_page, name="style"),
    path("docs/errors", errors_page, name="docs-errors"),
    path(
        "v1/schema",
        SpectacularJSONAPIView.as_view(authentication_classes=[], permission_classes=[]),
        name="schema",
    ),
    path("", include("accounts.pages.urls")),
    path("", include("consent.pages.urls")),
    path("", include("memory.pages.urls")),
    path("v1/", include("accounts.urls")),
    path("v1/", include("consent.urls")),
    path("v1/", include("memory.urls")),
]

handler400 = "config.refusals.bad_request"
handler403 = "config.refusals.forbidden"
handler404 = "config.refusals.not_found"
handler500 = "config.refusals.server_error"
