"""The privacy centre as a browser without JavaScript sees it."""

import re
from html import unescape
from urllib.parse import urlsplit

import pytest
from django.test import Client

from accounts.credentials import PassKind, make_pass

HOSTILE = '<img src=x onerror="alert(1)"> {{ 7|add:7 }} \u202e \u0000 "quoted" & plain'


def text_of(answer):
    return unescape(answer.content.decode())


def what_differs(answer, link):
    """The page without what is new in every answer, and without what the reader typed."""
    text = text_of(answer).replace(answer["X-Request-Id"], "").replace(link, "")
    return re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", text)


@pytest.fixture
def page(mia):
    """Mia's browser, in which she opened her link."""
    return mia.browser()


def test_a_link_opens_by_a_button_and_only_once(mia):
    link, browser = mia.link(), Client()
    assert browser.get(link).status_code == browser.get(link).status_code == 200
    opened = browser.post(link)
    assert (opened.status_code, opened["Location"]) == (302, "/privacy/")
    cookie = opened.cookies["fmn_visit"]
    assert (cookie["path"], cookie["httponly"], cookie["samesite"]) == ("/privacy/", True, "Lax")
    assert browser.get("/privacy/").status_code == 200
    other = Client()
    assert other.get(link).status_code == other.post(link).status_code == 404
    assert other.get("/privacy/").status_code == 403


def test_every_link_that_opens_nothing_is_answered_alike(acme, zenith, mia):
    used, forged = mia.link(), make_pass(PassKind.LINK, zenith.id, mia.id)
    Client().post(used)
    links = [used, f"/privacy/open/{forged}/", "/privacy/open/nonsense/", used.replace("fmn_link", "fmn_visit")]
    answers = [Client(headers={"accept": "text/html"}).get(link) for link in links]
    assert {answer.status_code for answer in answers} == {404}
    said = {what_differs(answer, link) for answer, link in zip(answers, links, strict=True)}
    assert len(said) == 1


def test_a_visit_needs_no_session_of_a_member_and_gives_none(page):
    assert page.get("/console/").status_code == 302
    assert "sessionid" not in page.cookies


def test_nothing_is_remembered(page):
    assert "Nothing is remembered about you" in text_of(page.get("/privacy/"))


def test_what_is_used_and_what_is_not(mia, page):
    mia.consents("memory.store", "memory.personalise", "memory.sensitive")
    old = mia.remembers("Mia lives in Leeds.", source="person")
    mia.remembers("Mia lives in Bristol.", source="person", supersedes=[old])
    mia.remembers("Mia has a peanut allergy.", categories=["health"], source="agent_inference")
    mia.says("withdrawn", "memory.sensitive")
    shown = text_of(page.get("/privacy/"))
    assert "Acme’s assistant remembers 3 things about you" in shown
    in_use, _, kept = shown.partition("Kept, but not used now")
    assert "Mia lives in Bristol." in in_use
    assert "Mia lives in Leeds." in kept
    assert "Replaced by something newer" in kept
    assert "Mia has a peanut allergy." in kept
    assert "Guessed by the assistant, not said by you" in kept
    assert "Sensitive, and you do not allow" in kept


def test_what_was_stored_is_shown_as_text(mia, page):
    mia.consents()
    mia.remembers(HOSTILE)
    answer = page.get("/privacy/")
    assert b"<img src=x" not in answer.content
    assert HOSTILE in text_of(answer)


def test_forgetting_is_reviewed_done_and_said(mia, page):
    mia.consents()
    memory_id = mia.remembers("Mia keeps bees.")
    address = f"/privacy/memories/{memory_id}/forget/"
    assert "Mia keeps bees." in text_of(page.get(address))
    assert mia.texts("What does Mia keep?") == ["Mia keeps bees."]
    done = page.post(address, follow=True)
    assert "Forgotten." in text_of(done)
    assert "Mia keeps bees." not in text_of(done)
    assert mia.texts("What does Mia keep?") == []
    assert page.post(address).status_code == page.get(address).status_code == 404


def test_a_profile_value_is_forgotten_too(acme, mia, page):
    mia.consents()
    acme.admin.put("/v1/profile-keys/food.likes", {"schema": {}})
    entry = acme.admin.put(f"{mia.path}/profile/food.likes", {"value": "rye"}).json()["id"]
    assert "rye" in text_of(page.get("/privacy/"))
    assert page.post(f"/privacy/profile/{entry}/forget/").status_code == 302
    assert "rye" not in text_of(page.get("/privacy/"))


def test_another_persons_things_cannot_be_seen_or_forgotten(acme, page):
    noa = acme.person("noa").consents()
    theirs = noa.remembers("Noa keeps goats.")
    for address in (f"/privacy/memories/{theirs}/forget/", f"/privacy/profile/{theirs}/forget/"):
        assert page.get(address).status_code == page.post(address).status_code == 404
    assert noa.texts("What does Noa keep?") == ["Noa keeps goats."]


def test_a_forged_form_of_another_site_forgets_nothing(mia):
    mia.consents()
    memory_id = mia.remembers("Mia keeps bees.")
    browser = Client(enforce_csrf_checks=True)
    link = urlsplit(mia.link()).path
    browser.get(link)
    opened = browser.post(link, {"csrfmiddlewaretoken": browser.cookies["csrftoken"].value})
    assert opened.status_code == 302
    assert browser.post(f"/privacy/memories/{memory_id}/forget/").status_code == 403
    assert mia.texts("What does Mia keep?") == ["Mia keeps bees."]


def test_leaving_ends_the_visit_everywhere(page):
    cookie = page.cookies["fmn_visit"].value
    assert page.post("/privacy/leave/").status_code == 200
    stolen = Client()
    stolen.cookies["fmn_visit"] = cookie
    assert stolen.get("/privacy/").status_code == 403


def test_pages_go_on_to_the_oldest(mia, page):
    mia.consents()
    for number in range(51):
        mia.remembers(f"Mia knows number {number:02}.")
    first = text_of(page.get("/privacy/"))
    older = first.partition('href="?cursor=')[2].partition('"')[0]
    second = text_of(page.get(f"/privacy/?cursor={older}"))
    assert "Mia knows number 50." in first
    assert "Mia knows number 00." not in first
    assert "Mia knows number 00." in second
    assert page.get("/privacy/?cursor=nonsense").status_code == 400


def test_an_erased_persons_page_is_closed(acme, mia, page):
    from accounts.models import Subject
    from accounts.tenancy import scope

    with scope(acme.id):
        Subject.objects.filter(id=mia.id).update(state="erased")
    assert page.get("/privacy/").status_code == 403


def test_a_look_costs_the_same_statements_with_one_memory_and_with_ten(mia, page, django_statements):
    mia.consents()
    mia.remembers("Mia keeps bees.")
    page.get("/privacy/")
    one = django_statements(lambda: page.get("/privacy/"))
    for number in range(9):
        mia.remembers(f"Mia keeps {number} hens.")
    page.get("/privacy/")  # the index is opened once and held
    ten = django_statements(lambda: page.get("/privacy/"))
    assert one == ten
