"""Every page, wide and narrow, light and dark: nothing breaks WCAG 2.2 AA, nothing hangs over the edge.

SCREENSHOTS=folder keeps a picture of each (`make screenshots`).
"""

import os
from pathlib import Path
from uuid import uuid4

import pytest

from accounts.credentials import id_text
from accounts.models import User
from config.management.commands.add_member import password_path
from tests.pages.conftest import NARROW, WIDE
from tests.world import open_world

SCREENSHOTS = os.environ.get("SCREENSHOTS", "")


class Scene:
    """A tenant with something on every page."""

    def __init__(self):
        self.acme, self.empty = open_world("Acme"), open_world("Nobody yet")
        self.mia, self.noa = self.acme.person("mia"), self.acme.person("noa")
        self._story()
        self.olga = self.acme.members["olga"]

    def _story(self):
        mia, acme = self.mia.consents("memory.store", "memory.personalise", "memory.sensitive"), self.acme
        old = mia.remembers("Mia lives in Leeds, near the university.", source="person")
        mia.remembers("Mia moved to Bristol in April.", source="person", supersedes=[old])
        mia.remembers("Mia is allergic to peanuts.", categories=["health"], importance=1.0, source="person")
        mia.remembers("Mia prefers answers with code before prose.", kind="procedural", source="agent_inference")
        mia.remembers("Mia rides to work by bicycle when it is dry.", agent="commute")
        acme.admin.put("/v1/profile-keys/preferences.language", {"schema": {"type": "string"}})
        acme.admin.put(f"{mia.path}/profile/preferences.language", {"value": "British English"})
        mia.recall("What should I cook for Mia tonight?")
        mia.says("withdrawn", "memory.sensitive")
        for _ in range(3):
            self.noa.tries("Noa keeps goats.")
        self.memory = mia.listed()[0]
        self.event = acme.admin.get("/v1/audit/events?action=memory.recall.answered").json()["items"][0]["id"]

    def address(self, name):
        tenant, empty = id_text(self.acme.id), id_text(self.empty.id)
        return {
            "home": "/",
            "style": "/docs/style",
            "login": "/accounts/login/",
            "logout": "/accounts/logout/",
            "inactive": "/accounts/inactive/",
            "password": "/accounts/password/",
            "password-reset": "/accounts/password/reset/",
            "password-reset-sent": "/accounts/password/reset/sent/",
            "password-reset-done": "/accounts/password/reset/done/",
            "password-broken-link": "/accounts/password/reset/0-x/",
            "console-choose": "/console/?choose",
            "console": f"/console/{tenant}/",
            "console-empty": f"/console/{empty}/",
            "desk": f"/desk/{tenant}/",
            "desk-search": f"/desk/{tenant}/?q=subject:mia+outcome:ok",
            "desk-error": f"/desk/{tenant}/?q=bees",
            "desk-none": f"/desk/{tenant}/?q=actor:system+outcome:failed",
            "desk-event": f"/desk/{tenant}/events/{self.event}/",
            "desk-forbidden": f"/desk/{tenant}/",
            "privacy": "/privacy/",
            "privacy-empty": "/privacy/",
            "privacy-forget": f"/privacy/memories/{self.memory}/forget/",
            "privacy-closed": "/privacy/",
            "not-found": "/console/nothing",
        }.get(name) or getattr(self, f"_{name.replace('-', '_')}")()

    def _privacy_link(self):
        return self.mia.link()

    def _password_link(self):
        return password_path(User.objects.create_user(f"new@{uuid4().hex}.example"))

    def reader(self, name):
        """Who opens the page, as `visit` takes it."""
        if name in {"privacy", "privacy-forget"}:
            return {"person": self.mia}
        if name == "privacy-empty":
            return {"person": self.noa}
        if name == "desk-forbidden":
            return {"member": self.acme.members["dan"]}
        if name == "console-empty":
            return {"member": self.empty.members["ada"]}
        return {"member": self.olga} if name.startswith(("console", "desk", "logout", "password")) else {}


PAGES = [
    *("home", "style", "login", "logout", "inactive", "password", "password-reset", "password-reset-sent"),
    *("password-reset-done", "password-broken-link", "password-link"),
    *("console-choose", "console", "console-empty"),
    *("desk", "desk-search", "desk-error", "desk-none", "desk-event", "desk-forbidden"),
    *("privacy-link", "privacy", "privacy-empty", "privacy-forget", "privacy-closed", "not-found"),
]
# Pairs in the gate; all four where pictures are taken.
VIEWS = [("light", WIDE), ("dark", NARROW), *([("dark", WIDE), ("light", NARROW)] if SCREENSHOTS else [])]
SIGNED_OUT = {"password-reset", "password-reset-sent", "password-reset-done", "password-broken-link", "password-link"}


@pytest.fixture(scope="module")
def scene(chromium):
    return Scene()


@pytest.mark.parametrize(("theme", "width"), VIEWS)
@pytest.mark.parametrize("name", PAGES)
def test_page(scene, visit, axe, name, theme, width):
    reader = {} if name in SIGNED_OUT else scene.reader(name)
    page = visit(scene.address(name), theme=theme, width=width, **reader)
    assert page.locator("h1").count() == 1
    assert page.title()
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert page.evaluate("document.documentElement.lang") == "en"
    if SCREENSHOTS:
        page.screenshot(path=Path(SCREENSHOTS) / f"{name}-{theme}-{width}.png", full_page=True)
    assert axe(page) == []
