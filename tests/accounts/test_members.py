"""Members: who is one of a tenant, where a user belongs, and who made them known."""

import pytest

from accounts import selectors
from accounts.errors import NotFound, ValidationFailed
from accounts.models import User
from accounts.services.members import add_member
from accounts.tenancy import scope, user_scope
from accounts.types import Mode, Role
from consent.services.purposes import open_furnished_tenant
from tests.world import TEST_ACTOR


def test_a_user_sees_their_own_memberships_and_no_others(acme, zenith):
    ada = acme.members["ada"]
    live = open_furnished_tenant(acme.tenant.organisation_id, Mode.LIVE, actor=TEST_ACTOR)
    add_member(ada.email, Role.AUDITOR, tenant_id=live.id, actor=TEST_ACTOR)
    with user_scope(ada.id):
        found = selectors.workplaces()
    assert [(each.tenant_id, each.organisation, each.mode, each.role) for each in found] == [
        (live.id, "Acme", Mode.LIVE, Role.AUDITOR),
        (acme.id, "Acme", Mode.SANDBOX, Role.OWNER),
    ]


def test_a_stranger_is_not_found(acme, zenith):
    with scope(acme.id), pytest.raises(NotFound):
        selectors.member_of_tenant(zenith.members["ada"].id)


def test_a_member_acts_as_a_user(acme):
    with scope(acme.id):
        member = selectors.member_of_tenant(acme.members["ben"].id)
    assert (member.role, member.mode, member.organisation) == (Role.AUDITOR, Mode.SANDBOX, "Acme")
    assert (member.actor.kind, member.actor.id) == ("user", str(acme.members["ben"].id))
    assert member.sees(None)
    assert member.owns(None)


def test_adding_somebody_again_changes_the_role_and_makes_nobody_new(acme):
    email = acme.members["ben"].email
    add_member(email.upper(), Role.ADMIN, tenant_id=acme.id, actor=TEST_ACTOR)
    assert User.objects.filter(email__iexact=email).count() == 1
    with scope(acme.id):
        assert selectors.member_of_tenant(acme.members["ben"].id).role is Role.ADMIN


def test_what_is_no_address_is_refused(acme):
    with pytest.raises(ValidationFailed):
        add_member("nobody", Role.ADMIN, tenant_id=acme.id, actor=TEST_ACTOR)
