"""The audit log over REST. Reading it is recorded in it."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import selectors
from accounts.http.paging import page_of
from accounts.http.views import ApiView, checked_external_id
from accounts.keys import subject_pseudonym
from accounts.scopes import Scope
from accounts.types import Principal, SubjectRef
from audit.selectors import events_for_tenant
from audit.types import Event
from consent.access import record_read
from consent.api.serializers import AuditEventAnswer, AuditQuery
from consent.policy import decide_for_tenant
from consent.types import Act


class AuditEvents(ApiView):
    required_scopes: ClassVar = {"GET": Scope.AUDIT_READ}
    queries: ClassVar = {"GET": AuditQuery}

    @extend_schema(operation_id="list_audit_events", responses=page_of(AuditEventAnswer))
    def get(self, request: Request) -> Response:
        """List the audit log, newest first. Reading it is recorded in it."""
        query, page = self.query, self.page()
        with self.tenant() as principal:
            subject = _subject(principal, query.get("subject"))
            events = events_for_tenant(
                tenant_id=principal.tenant_id,
                action=query.get("action"),
                decision=query.get("decision"),
                actor_id=query.get("actor"),
                subject_pseudonym=subject_pseudonym(principal.tenant_epoch, subject) if subject else None,
                since=query.get("since"),
                before=query.get("before"),
                after=page.after,
                limit=page.limit + 1,
            )
            record_read(
                decide_for_tenant(Act.TENANT, caller=principal),
                [],
                action="consent.log.read",
                counts={"items": min(len(events), page.limit)},
                about=subject,
            )
        return Response(page.answer(events, _event, lambda event: event.id))


def _subject(principal: Principal, external_id: str | None) -> SubjectRef | None:
    """The person asked for; an unknown one is NotFound, never "all events"."""
    if external_id is None:
        return None
    return selectors.subject_by_external_id(principal, checked_external_id(external_id))


def _event(event: Event) -> dict[str, Any]:
    return dict(AuditEventAnswer(event).data)
