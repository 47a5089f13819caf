"""Addresses of consent. A person's id is the tenant's own: any bytes but `/`."""

from django.urls import path

from consent.api import audit, consents, people, portal

app_name = "consent"
urlpatterns = [
    path("subjects", people.Subjects.as_view(), name="subject-list"),
    path("subjects/<str:external_id>", people.OneSubject.as_view(), name="subject-one"),
    path("purposes", consents.Purposes.as_view(), name="purpose-list"),
    path("subjects/<str:external_id>/consents", consents.Consents.as_view(), name="consent-list"),
    path("subjects/<str:external_id>/portal-links", portal.PortalLinks.as_view(), name="portal-link-list"),
    path("audit/events", audit.AuditEvents.as_view(), name="audit-event-list"),
]
