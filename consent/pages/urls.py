"""Addresses of the compliance desk."""

from django.urls import path

from consent.pages import desk

urlpatterns = [
    path("desk/<tenant:tenant_id>/", desk.events, name="desk"),
    path("desk/<tenant:tenant_id>/events/<uuid:event_id>/", desk.event, name="desk-event"),
]
