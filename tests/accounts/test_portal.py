"""Links to a person's page: opened once, for one person, told apart from nothing."""

from datetime import UTC, datetime, timedelta

import pytest

from accounts.credentials import PassKind, make_pass, parse_pass
from accounts.errors import LinkUnusable, VisitRequired
from accounts.models import PortalPass, Subject
from accounts.services import portal
from accounts.tenancy import ALL, narrow, scope
from accounts.types import SubjectState


@pytest.fixture
def link(acme, mia):
    with scope(acme.id), narrow(mia.id):
        return portal.create_link(mia.ref_inside(), caller=acme.principal).text


def expire(acme, **times):
    with scope(acme.id, ALL):
        PortalPass.objects.update(**times)


def past():
    return datetime.now(UTC) - timedelta(seconds=1)


def test_a_link_becomes_a_visit_once(mia, link):
    visit = portal.open_link(link)
    with portal.visiting(visit.text) as visitor:
        assert (visitor.subject.id, visitor.organisation) == (mia.id, "Acme")
        assert visitor.actor.kind == "person"
    with pytest.raises(LinkUnusable):
        portal.open_link(link)


def test_looking_at_a_link_does_not_use_it_up(link):
    assert portal.is_usable(link)
    assert portal.is_usable(link)
    portal.open_link(link)
    assert not portal.is_usable(link)


def test_of_two_who_open_it_at_once_one_gets_in(acme, link):
    def outcome():
        try:
            return portal.open_link(link) is not None
        except LinkUnusable:
            return False

    assert sorted(acme.at_once(outcome, outcome, outcome)) == [False, False, True]


def test_a_link_runs_out(acme, link):
    expire(acme, link_expires_at=past())
    assert not portal.is_usable(link)
    with pytest.raises(LinkUnusable):
        portal.open_link(link)


def test_a_visit_runs_out(acme, link):
    visit = portal.open_link(link)
    expire(acme, visit_expires_at=past())
    with pytest.raises(VisitRequired), portal.visiting(visit.text):
        pass


def test_an_ended_visit_opens_nothing_and_ending_it_again_is_harmless(link):
    visit = portal.open_link(link)
    portal.end_visit(visit.text)
    portal.end_visit(visit.text)
    with pytest.raises(VisitRequired), portal.visiting(visit.text):
        pass


@pytest.mark.parametrize("kind", list(PassKind))
def test_a_pass_for_another_person_or_tenant_opens_nothing(acme, zenith, mia, kind):
    noa = acme.person("noa")
    for tenant_id, subject_id in ((acme.id, noa.id), (zenith.id, mia.id), (zenith.id, noa.id)):
        forged = make_pass(kind, tenant_id, subject_id)
        assert not portal.is_usable(forged)
        with pytest.raises(LinkUnusable):
            portal.open_link(forged)
        with pytest.raises(VisitRequired), portal.visiting(forged):
            pass


def test_a_link_is_no_visit_and_a_visit_no_link(link):
    visit = portal.open_link(link)
    with pytest.raises(VisitRequired), portal.visiting(link):
        pass
    with pytest.raises(LinkUnusable):
        portal.open_link(visit.text)


@pytest.mark.parametrize("text", ["", "x", "fmn_link_", "fmn_visit_\x00", "é" * 300], ids=range(5))
def test_what_is_no_pass_opens_nothing(text):
    assert parse_pass(PassKind.LINK, text) is None
    assert not portal.is_usable(text)
    with pytest.raises(VisitRequired), portal.visiting(text):
        pass


def test_after_erasure_neither_link_nor_visit_opens_anything(acme, mia, link):
    visit = portal.open_link(link)
    with scope(acme.id), narrow(mia.id):
        other = portal.create_link(mia.ref_inside(), caller=acme.principal).text
    with scope(acme.id):
        Subject.objects.filter(id=mia.id).update(state=SubjectState.ERASED)
    with pytest.raises(LinkUnusable):
        portal.open_link(other)
    with pytest.raises(VisitRequired), portal.visiting(visit.text):
        pass


def test_only_digests_are_kept(acme, mia, link, connect_as):
    visit = portal.open_link(link)
    with connect_as("postgres", "forgetmenot") as superuser:
        rows = superuser.execute("SELECT row_to_json(p)::text FROM accounts_portalpass p").fetchall()
    kept = " ".join(row for (row,) in rows)
    assert str(mia.id) in kept
    assert link.split("_")[-2] not in kept
    assert visit.text.split("_")[-2] not in kept


def test_what_has_run_out_is_swept(acme, link):
    with scope(acme.id, ALL):
        assert portal.forget_old_passes() == 0
    expire(acme, link_expires_at=past())
    with scope(acme.id, ALL):
        assert portal.forget_old_passes() == 1


def test_making_and_opening_a_link_is_in_the_log_under_the_pseudonym_alone(acme, mia, link):
    portal.open_link(link)
    events = acme.admin.get("/v1/audit/events?subject=mia").json()["items"]
    made, opened = (
        next(e for e in events if e["action"] == f"accounts.portal_link.{verb}") for verb in ("created", "opened")
    )
    assert made["actor"]["kind"] == "api_key"
    assert opened["actor"] == {"kind": "person", "id": opened["subject_pseudonym"], "on_behalf_of": ""}
    assert str(mia.id) not in str(events)


def test_an_agent_cannot_make_the_link_that_would_let_it_act_as_the_person(acme, mia):
    answer = acme.agent.post(f"{mia.path}/portal-links", {})
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")
