"""DRF adapter: the method's scope must be among the key's. The view enters the refusal in the log."""

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.errors import MethodNotAllowed, ScopeMissing
from accounts.types import Principal

if TYPE_CHECKING:
    from rest_framework.views import APIView  # it imports this module through DRF's settings


class HasRequiredScope(BasePermission):
    def has_permission(self, request: Request, view: "APIView") -> bool:
        """True, or raises MethodNotAllowed for a method without a declared scope, ScopeMissing naming the scope."""
        method = "GET" if request.method == "HEAD" else request.method
        wanted = getattr(view, "required_scopes", {}).get(method)
        if wanted is None:
            raise MethodNotAllowed(f"{request.method} is not possible here.")
        if not isinstance(request.auth, Principal) or wanted.value not in request.auth.scopes:
            raise ScopeMissing(f"This needs the scope {wanted.value}.")
        return True
