"""DRF adapter: the method's scope must be among the key's. Refusals are recorded."""

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.errors import MethodNotAllowed, ScopeMissing
from accounts.types import Principal
from audit import services as audit

if TYPE_CHECKING:
    from rest_framework.views import APIView  # it imports this module through DRF's settings


class HasRequiredScope(BasePermission):
    def has_permission(self, request: Request, view: "APIView") -> bool:
        """True, or raises MethodNotAllowed for a method without a declared scope, ScopeMissing naming the scope."""
        method = "GET" if request.method == "HEAD" else request.method
        wanted = getattr(view, "required_scopes", {}).get(method)
        if wanted is None:
            raise MethodNotAllowed(f"{request.method} is not possible here.")
        principal = request.auth
        if not isinstance(principal, Principal) or wanted.value not in principal.scopes:
            if isinstance(principal, Principal):
                refuse(principal)
            raise ScopeMissing(f"This needs the scope {wanted.value}.")
        return True


def refuse(principal: Principal) -> None:
    audit.record_refusal(
        tenant_id=principal.tenant_id,
        actor=principal.actor,
        action="accounts.request.refused",
        reason="scope_missing",
        resource_ids=[principal.key_id],
    )
