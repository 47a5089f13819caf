"""Ada owns Acme, Ben only reads there: a member's role is per tenant, and they find their own tenants and no others."""

from accounts.models import Membership
from accounts.services.tenants import grant_membership
from accounts.tenancy import scope
from accounts.types import Role
from tests.world import TEST_ACTOR


def roles_in(world):
    with scope(world.id):
        return dict(Membership.objects.values_list("user_id", "role"))


def test_roles_are_those_of_the_tenant(acme, zenith):
    assert roles_in(acme) == {acme.members["ada"].id: "owner", acme.members["ben"].id: "auditor"}
    assert set(roles_in(zenith)) == {zenith.members["ada"].id, zenith.members["ben"].id}


def test_granting_again_changes_the_role(acme):
    with scope(acme.id):
        grant_membership(acme.members["ben"], Role.DEVELOPER, actor=TEST_ACTOR)

    assert roles_in(acme)[acme.members["ben"].id] == "developer"


def test_a_user_finds_their_own_memberships_elsewhere_and_nobody_elses(acme, zenith, connect_as):
    with scope(zenith.id):
        grant_membership(acme.members["ada"], Role.AUDITOR, actor=TEST_ACTOR)

    with connect_as("fmn_app") as app:
        app.execute("SELECT set_config('app.user_id', %s, true)", [str(acme.members["ada"].id)])
        found = app.execute("SELECT tenant_id, role FROM accounts_membership").fetchall()

    assert set(found) == {(acme.id, "owner"), (zenith.id, "auditor")}
