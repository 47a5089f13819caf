"""Addresses of the privacy centre."""

from django.urls import path

from memory.pages import privacy

urlpatterns = [
    path("privacy/", privacy.home, name="privacy"),
    path("privacy/open/<str:link>/", privacy.open_link, name="privacy-link"),
    path("privacy/leave/", privacy.leave, name="privacy-leave"),
    path("privacy/memories/<uuid:memory_id>/forget/", privacy.forget_memory, name="privacy-forget-memory"),
    path("privacy/profile/<uuid:entry_id>/forget/", privacy.forget_value, name="privacy-forget-value"),
]
