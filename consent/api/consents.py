"""Purposes, and what people said about them."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.http.paging import PageQuery, page_of
from accounts.http.views import ApiView
from accounts.scopes import Scope
from accounts.services.idempotency import Answer
from consent import selectors
from consent.api.serializers import (
    ConsentAnswer,
    ConsentInput,
    ConsentsAnswer,
    ConsentsState,
    LedgerEntry,
    PurposeAnswer,
)
from consent.models import ConsentEvent
from consent.services import ledger
from consent.services.statements import record_statement
from consent.types import ConsentActor, ConsentRef, LedgerEvent, PurposeKey, Statement


class Purposes(ApiView):
    required_scopes: ClassVar = {"GET": Scope.CONSENT_READ}

    @extend_schema(operation_id="list_purposes", responses=page_of(PurposeAnswer))
    def get(self, request: Request) -> Response:
        """List what people are asked about, each in its current version with its notices."""
        with self.tenant():
            rows = selectors.current_purposes()
        return Response({"items": PurposeAnswer(rows, many=True).data, "next_cursor": None})


class Consents(ApiView):
    required_scopes: ClassVar = {"GET": Scope.CONSENT_READ, "POST": Scope.CONSENT_RELAY}
    queries: ClassVar = {"GET": PageQuery}

    @extend_schema(operation_id="list_consents", responses=ConsentsAnswer)
    def get(self, request: Request, external_id: str) -> Response:
        """Show where a person stands on each purpose, and what they said about it, newest first."""
        page = self.page()
        with self.person(external_id) as subject:
            standing, events = ledger.read_ledger(subject, caller=self.principal, after=page.after, limit=page.limit)
        history = page.answer(events, _entry, lambda event: event.id)
        return Response(_consents(standing) | {"history": history["items"], "next_cursor": history["next_cursor"]})

    @extend_schema(operation_id="record_consent", request=ConsentInput, responses={201: ConsentsState})
    def post(self, request: Request, external_id: str) -> Response:
        """Enter what a person said. A yes needs evidence; a no and a withdrawal take effect at the next statement."""
        statement = _statement(self.parse(ConsentInput))
        with self.person(external_id) as subject:

            def record() -> Answer:
                standing = record_statement(subject, statement, caller=self.principal)
                entered = [str(consent.event_id) for consent in standing if consent.purpose in statement.purposes]
                return Answer({"event_ids": entered}, 201)

            answer = self.once(record, subject)
            # Not kept with the answer: a replay must say where the person stands now, not where they stood then.
            answer.data |= _consents(selectors.consents_of_person())
            return answer


def _statement(body: dict[str, Any]) -> Statement:
    return Statement(
        event=LedgerEvent(body["event"]),
        purposes=tuple(PurposeKey(key) for key in body["purposes"]),
        language=body["language"],
        surface=body["surface"],
        method=body["method"],
        spoken_by=ConsentActor(body["spoken_by"]),
        evidence=body["evidence"],
        occurred_at=body.get("occurred_at"),
        valid_until=body.get("valid_until"),
        notice_digests=tuple(body["notice_digests"]),
    )


def _entry(event: ConsentEvent) -> dict[str, Any]:
    return dict(LedgerEntry(event).data)


def _consents(standing: list[ConsentRef]) -> dict[str, Any]:
    return {"consents": [dict(ConsentAnswer(consent).data) for consent in standing]}
