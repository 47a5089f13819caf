"""DRF adapter: a bearer key becomes a Principal, in a short scope of the tenant the key claims."""

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts import selectors
from accounts.credentials import parse_key
from accounts.errors import Unauthenticated
from accounts.types import Principal
from accounts.usage import note_key_use, note_refused_key


class ApiKeyAuthentication(BaseAuthentication):
    """Raises Unauthenticated for every key that is not in force; the answer never says what was wrong with it."""

    def authenticate(self, request: Request) -> tuple[None, Principal]:
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        claimed = parse_key(text.strip()) if scheme.lower() == "bearer" else None
        if claimed is None:
            raise Unauthenticated
        principal = selectors.principal_of(claimed)
        if principal is None:
            note_refused_key(claimed.tenant_id)
            raise Unauthenticated
        note_key_use(principal)
        return None, principal

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="forget-me-not"'
