"""Doors of the pages: who may open one. A page for members says which roles; one for the person needs their visit.

A stranger to a tenant gets 404, a member without the role 403; what was refused to a member is entered in the log. The
address names the tenant, so that a tab of the sandbox never acts on the live tenant.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, cast
from uuid import UUID

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts import selectors
from accounts.credentials import ID_PATTERN, id_from_text, id_text
from accounts.errors import RoleForbidden
from accounts.models import User
from accounts.services.portal import visiting
from accounts.services.refusals import record_refused_request
from accounts.tenancy import NONE, Reach, scope, user_scope
from accounts.types import Member, Role, Visitor

VISIT_COOKIE = "fmn_visit"
LAST_TENANT = "last_tenant"
EVERY_ROLE = frozenset(Role)
DESK_ROLES = frozenset({Role.PRIVACY_OFFICER, Role.AUDITOR})


class TenantConverter:
    """A tenant in an address: its id in base62, as in its API keys."""

    regex = ID_PATTERN

    def to_python(self, value: str) -> UUID:
        tenant_id = id_from_text(value)
        if tenant_id is None:
            raise ValueError(value)
        return tenant_id

    def to_url(self, value: UUID) -> str:
        return id_text(value)


def member_page[**P](
    roles: frozenset[Role],
) -> Callable[[Callable[Concatenate[HttpRequest, Member, P], HttpResponse]], Callable[..., HttpResponse]]:
    """`view(request, member, …)` for members in these roles; its address holds `<tenant:tenant_id>`."""

    def decorate(view: Callable[Concatenate[HttpRequest, Member, P], HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(view)
        def page(request: HttpRequest, *, tenant_id: UUID, **arguments: Any) -> HttpResponse:
            member = _member(request, tenant_id)
            request.session[LAST_TENANT] = id_text(tenant_id)
            if member.role not in roles:
                record_refused_request(member, RoleForbidden.code)
                raise RoleForbidden
            return cast("Callable[..., HttpResponse]", view)(request, member, **arguments)

        return page

    return decorate


def _member(request: HttpRequest, tenant_id: UUID) -> Member:
    """Raises NotFound for a stranger, as for a tenant that is none."""
    user = cast("User", request.user)
    with scope(tenant_id):
        return selectors.member_of_tenant(user.id)


@contextmanager
def tenant_of(member: Member, reach: Reach = NONE) -> Iterator[None]:
    """The rows of the member's tenant, in one transaction."""
    with scope(member.tenant_id, reach):
        yield


def member_render(request: HttpRequest, member: Member, template: str, context: dict[str, Any]) -> HttpResponse:
    """A page inside the frame that says organisation, tenant and mode, with where else the user belongs."""
    with user_scope(member.user_id):
        workplaces = selectors.workplaces()
    frame = {"member": member, "tenant_id": member.tenant_id, "workplaces": workplaces}
    return render(request, template, frame | {"may_open_desk": member.role in DESK_ROLES} | context)


def visitor_page[**P](
    view: Callable[Concatenate[HttpRequest, Visitor, P], HttpResponse],
) -> Callable[..., HttpResponse]:
    """`view(request, visitor, …)` in the person's scope, for the browser that opened their link."""

    @login_not_required
    @wraps(view)
    def page(request: HttpRequest, *arguments: P.args, **named: P.kwargs) -> HttpResponse:
        with visiting(request.COOKIES.get(VISIT_COOKIE, "")) as visitor:
            return view(request, visitor, *arguments, **named)

    return page
