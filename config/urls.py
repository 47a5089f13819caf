"""All addresses: REST under /v1/, its schema, health."""

from django.urls import include, path
from drf_spectacular.views import SpectacularJSONAPIView

from config.docs import errors_page
from config.health import healthz
from config.home import home

urlpatterns = [
    path("", home, name="home"),
    path("healthz", healthz, name="healthz"),
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

handler400 = "config.problems.bad_request"
handler404 = "config.problems.not_found"
handler500 = "config.problems.server_error"
