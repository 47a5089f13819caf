"""Every page by method by actor gets what the matrix in `permissions.py` says; without its token no form is taken."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import count
from uuid import uuid4

import pytest
from django.test import Client

from accounts.credentials import id_text
from accounts.http.pages import VISIT_COOKIE
from accounts.models import User
from accounts.services.portal import create_link, open_link
from accounts.tenancy import narrow, scope
from tests.house.filled import expect
from tests.house.permissions import PAGE_ROWS, without_rows
from tests.world import open_world

PASSWORD = "four small blue petals"
FORMS = {
    "POST /preferences": {"theme": "dark"},
    "POST /accounts/login/": {"login": "{email}", "password": PASSWORD},
    "POST /accounts/password/": {"oldpassword": PASSWORD, "password1": PASSWORD, "password2": PASSWORD},
    "POST /accounts/password/reset/": {"email": "{name:new}@acme.example"},
}
TOKEN = "t" * 32
SIGNED_IN = ("owner", "dev", "officer", "auditor", "zoe")
FOR_MEMBERS = ("/console/", "/desk/", "/accounts/password/")
FOR_EVERYBODY = ("/accounts/password/reset/",)


def is_for_members(path):
    return path.startswith(FOR_MEMBERS) and not path.startswith(FOR_EVERYBODY)


def refused(path):
    """Signed out, one is first asked to sign in."""
    actors = PAGE_ROWS[0].expected
    return {actor: 302 if is_for_members(path) and actor not in SIGNED_IN else 405 for actor in actors}


class Things:
    """What the names in braces stand for: Acme's and Mia's own, whoever asks."""

    def __init__(self, acme, mia, owner):
        self.acme, self.mia, self.numbers = acme, mia, count()
        for key in ("language", "diet"):
            expect(200, acme.admin.put(f"/v1/profile-keys/preferences.{key}", {}))
        self.lasting = {
            "tenant_id": id_text(acme.id),
            "event_id": acme.admin.get("/v1/audit/events").json()["items"][-1]["id"],
            "memory_id": mia.remembers("Mia sits at the window."),
            "entry_id": self._entry("language"),
            "link": self._fresh_link(),
            "email": owner.email,
            "uidb36": "1",
            "key": "nobody-made-this",
        }

    def fill(self, text, *, succeeds):
        """What is refused needs nothing made for it."""
        return re.sub(r"\{(\w+)(?::(\w+))?\}", lambda found: self._named(*found.groups(), succeeds), text)

    def _named(self, name, which, succeeds):
        if which == "new":
            return f"new-{next(self.numbers)}"
        return getattr(self, f"_fresh_{name}")() if which and succeeds else self.lasting[name]

    def _entry(self, key):
        return expect(200, self.acme.admin.put(f"{self.mia.path}/profile/preferences.{key}", {"value": "pl"}))["id"]

    def _fresh_entry_id(self):
        return self._entry("diet")

    def _fresh_memory_id(self):
        return self.mia.remembers("Mia asked for the menu.")

    def _fresh_link(self):
        return link_to(self.mia)


def link_to(person):
    with scope(person.world.id), narrow(person.id):
        return create_link(person.ref_inside(), caller=person.world.principal).text


@dataclass(frozen=True)
class Cast:
    """Each request comes from a browser of its own, so that leaving ends nothing for the next one."""

    things: Things
    members: dict[str, object]
    people: dict[str, object]

    def browser(self, actor, *, forged=False):
        """`forged`: what the browser sends was put together by another site, which cannot know the token."""
        # Sign-in limits count by address.
        browser = Client(
            raise_request_exception=False,
            enforce_csrf_checks=True,
            REMOTE_ADDR=str(IPv4Address(uuid4().int >> 96)),
            **({} if forged else {"HTTP_X_CSRFTOKEN": TOKEN}),
        )
        browser.cookies["csrftoken"] = TOKEN
        if actor in self.members:
            browser.force_login(User.objects.get(id=self.members[actor]))
        if actor in self.people:
            browser.cookies[VISIT_COOKIE] = open_link(link_to(self.people[actor])).text
        return browser

    def ask(self, row, actor, **how):
        form = {name: self.things.fill(value, succeeds=True) for name, value in FORMS.get(str(row), {}).items()}
        path = self.things.fill(row.address, succeeds=row.expected[actor] in (200, 302))
        browser = self.browser(actor, **how)
        return browser.post(path, form) if row.method == "POST" else browser.generic(row.method, path)

    def answers(self, row, **how):
        return {actor: self.ask(row, actor, **how).status_code for actor in row.shown}


@pytest.fixture(scope="module")
def cast():
    acme, zenith = open_world("Acme"), open_world("Zenith")
    members = {
        "owner": acme.members["ada"],
        "dev": acme.members["dan"],
        "officer": acme.members["olga"],
        "auditor": acme.members["ben"],
        "zoe": zenith.members["ada"],
    }
    for user in members.values():
        user.set_password(PASSWORD)
        user.save()
    mia, noa, namesake = (each.consents() for each in (acme.person("mia"), acme.person("noa"), zenith.person("mia")))
    ids = {name: user.id for name, user in members.items()}
    people = {"mia": mia, "noa": noa, "namesake": namesake}
    return Cast(Things(acme, mia, members["owner"]), ids, people)


def test_every_form_belongs_to_a_row():
    assert set(FORMS) <= {str(row) for row in PAGE_ROWS}


@pytest.mark.parametrize("row", PAGE_ROWS, ids=str)
def test_every_actor_gets_what_the_matrix_says(cast, row):
    assert cast.answers(row) == row.shown


@pytest.mark.parametrize("row", without_rows(PAGE_ROWS, refused), ids=str)
def test_method_without_a_row_is_refused_to_everybody(cast, row):
    assert cast.answers(row) == row.expected


@pytest.mark.parametrize("row", [row for row in PAGE_ROWS if row.method == "POST"], ids=str)
def test_form_put_together_by_another_site_is_refused_to_everybody(cast, row):
    assert cast.answers(row, forged=True) == dict.fromkeys(row.expected, 403)


@pytest.mark.parametrize("row", [row for row in PAGE_ROWS if is_for_members(row.path)], ids=str)
def test_signed_out_one_is_led_to_sign_in(cast, row):
    answer = cast.ask(row, "nobody")

    assert (answer.status_code, answer.headers["Location"].partition("?")[0]) == (302, "/accounts/login/")
