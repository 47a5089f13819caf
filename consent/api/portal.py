"""Links to a person's own page."""

from typing import ClassVar

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.http.views import ApiView
from accounts.scopes import Scope
from accounts.services.portal import create_link
from consent.api.serializers import PortalLinkAnswer, PortalLinkInput


class PortalLinks(ApiView):
    required_scopes: ClassVar = {"POST": Scope.PORTAL_WRITE}
    answers_anew: ClassVar = frozenset({"POST"})

    @extend_schema(operation_id="create_portal_link", request=PortalLinkInput, responses={201: PortalLinkAnswer})
    def post(self, request: Request, external_id: str) -> Response:
        """Make a link to the person's own page. It opens once, within 15 minutes; calling again makes another."""
        self.parse(PortalLinkInput)
        with self.person(external_id) as subject:
            link = create_link(subject, caller=self.principal)
        address = request.build_absolute_uri(reverse("privacy-link", kwargs={"link": link.text}))
        return Response(PortalLinkAnswer({"url": address, "expires_at": link.expires_at}).data, status=201)
