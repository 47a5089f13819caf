"""The audit log over REST. Reading it is recorded in it."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.http.paging import encode_cursor, page_of
from accounts.http.views import ApiView, checked_external_id
from accounts.scopes import Scope
from audit.selectors import EventFilter
from consent.api.serializers import AuditEventAnswer, AuditQuery
from consent.services.log import read_log


class AuditEvents(ApiView):
    required_scopes: ClassVar = {"GET": Scope.AUDIT_READ}
    queries: ClassVar = {"GET": AuditQuery}

    @extend_schema(operation_id="list_audit_events", responses=page_of(AuditEventAnswer))
    def get(self, request: Request) -> Response:
        """List the audit log, newest first. Reading it is recorded in it."""
        page = self.page()
        with self.tenant() as principal:
            found = read_log(
                _filter(self.query),
                caller=principal,
                external_id=checked_external_id(self.query["subject"]) if "subject" in self.query else None,
                after=page.after,
                limit=page.limit,
            )
        cursor = encode_cursor(found.last_id) if found.last_id else None
        return Response({"items": AuditEventAnswer(found.events, many=True).data, "next_cursor": cursor})


def _filter(query: dict[str, Any]) -> EventFilter:
    asked = {name: query.get(name) for name in ("action", "decision", "since", "before")}
    return EventFilter(actor_id=query.get("actor"), **asked)
