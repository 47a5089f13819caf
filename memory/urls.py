"""Addresses of memory."""

app_name = "memory"
urlpatterns: list[object] = []
