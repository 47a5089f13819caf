"""Whole walks in a real browser: sign in, read, search, forget; by keyboard alone, without JavaScript, in the dark."""

import re

import pytest
from playwright.sync_api import expect

from accounts.credentials import id_text
from config.management.commands.add_member import password_path
from tests.world import open_world

PASSWORD = "four blue petals 17"


@pytest.fixture
def acme(chromium):
    return open_world("Acme")


@pytest.fixture
def mia(acme):
    mia = acme.person("mia").consents()
    mia.remembers("Mia keeps bees.", source="person")
    mia.remembers("Mia lives in Bristol.", source="person")
    return mia


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def tab_to(page, name):
    """Go on by Tab alone until the thing of this accessible name has the focus."""
    for _ in range(80):
        press(page, "Tab")
        if (
            page.evaluate("document.activeElement.textContent + ' ' + (document.activeElement.ariaLabel ?? '')")
            .strip()
            .startswith(name)
        ):
            return
        label = page.evaluate("document.activeElement.labels?.[0]?.textContent ?? ''").strip()
        if label.startswith(name):
            return
    raise AssertionError(f"{name!r} cannot be reached by Tab")


def sign_in(page, email, password=PASSWORD):
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize("javascript", [True, False])
def test_a_new_member_chooses_a_password_signs_in_reads_and_signs_out(acme, mia, visit, javascript):
    olga = acme.members["olga"]
    page = visit(password_path(olga), javascript=javascript)
    fields = page.locator("input[type=password]")
    fields.nth(0).fill(PASSWORD)
    fields.nth(1).fill(PASSWORD)
    page.get_by_role("button", name="Keep this password").click()
    page.get_by_role("link", name="Sign in").click()
    sign_in(page, olga.email, "not the password")
    expect(page.get_by_role("alert").first).to_be_visible()
    sign_in(page, olga.email)
    expect(page).to_have_url(re.compile(f"/console/{id_text(acme.id)}/"))
    expect(page.get_by_role("banner")).to_contain_text("Acme")
    expect(page.get_by_role("banner")).to_contain_text("Sandbox")
    page.get_by_role("link", name="Compliance desk").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Audit log")
    page.goto("/accounts/logout/")
    page.get_by_role("main").get_by_role("button", name="Sign out").click()
    page.goto(f"/console/{id_text(acme.id)}/")
    expect(page).to_have_url(re.compile("/accounts/login/"))


@pytest.mark.parametrize("javascript", [True, False])
def test_the_officer_searches_and_opens_an_event(acme, mia, visit, javascript):
    page = visit(f"/desk/{id_text(acme.id)}/", member=acme.members["olga"], javascript=javascript)
    page.evaluate("window.sameDocument = true") if javascript else None
    page.get_by_label("Search", exact=True).fill("subject:mia action:memory.memory.stored")
    page.get_by_label("Search", exact=True).press("Enter")
    rows = page.get_by_role("table").get_by_role("row")
    expect(rows).to_have_count(3)
    expect(page).to_have_url(re.compile("q=subject"))
    assert not javascript or page.evaluate("window.sameDocument")
    page.get_by_role("table").get_by_role("link", name="memory.memory.stored").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("memory.memory.stored")
    expect(page.get_by_role("main")).not_to_contain_text("bees")


@pytest.mark.parametrize("javascript", [True, False])
def test_the_person_opens_the_link_reads_and_forgets(mia, visit, javascript):
    page = visit(mia.link(), javascript=javascript)
    page.get_by_role("button", name="Open my page").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Acme’s assistant remembers 2 things about you")
    page.get_by_role("link", name=re.compile("Forget this ?: Mia keeps bees.")).click()
    expect(page.get_by_role("main")).to_contain_text("Mia keeps bees.")
    page.get_by_role("button", name="Forget this").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Acme’s assistant remembers 1 thing about you")
    expect(page.get_by_text("Forgotten. No assistant can be given it any more.")).to_be_visible()
    assert "Mia keeps bees." not in mia.texts("What does Mia keep?")
    page.get_by_role("button", name="Close my page").click()
    assert page.goto("/privacy/").status == 403


def test_forgetting_by_keyboard_alone(mia, visit):
    page = visit(mia.link())
    tab_to(page, "Open my page")
    press(page, "Enter")
    page.wait_for_url("**/privacy/")
    tab_to(page, "Forget this: Mia keeps bees.")
    press(page, "Enter")
    page.wait_for_url("**/forget/")
    tab_to(page, "Forget this")
    press(page, "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Acme’s assistant remembers 1 thing about you")


def test_signing_in_and_searching_by_keyboard_alone(acme, mia, visit):
    olga = acme.members["olga"]
    olga.set_password(PASSWORD)
    olga.save()
    page = visit(f"/accounts/login/?next=/desk/{id_text(acme.id)}/")
    tab_to(page, "Email")
    page.keyboard.type(olga.email)
    press(page, "Tab")
    page.keyboard.type(PASSWORD)
    press(page, "Enter")
    page.wait_for_url(re.compile(r"^http://[^/]+/desk/"))
    tab_to(page, "Search")
    page.keyboard.type("outcome:ok subject:mia")
    press(page, "Enter")
    page.wait_for_url("**/desk/*/?q=*")
    expect(page.get_by_role("table")).to_contain_text("memory.memory.stored")


def test_what_has_the_focus_can_be_seen(acme, visit):
    page = visit("/accounts/login/")
    for _ in range(6):
        press(page, "Tab")
        outline = page.evaluate(
            "(() => { const s = getComputedStyle(document.activeElement);"
            " return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== 'none' })()"
        )
        assert outline, page.evaluate("document.activeElement.outerHTML")


@pytest.mark.parametrize("javascript", [True, False])
def test_the_theme_is_chosen_and_kept(visit, javascript):
    page = visit("/", theme="light", javascript=javascript)
    paper = "getComputedStyle(document.body).backgroundColor"
    page.get_by_role("contentinfo").get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    if javascript:
        dark = page.evaluate(paper)
        page.goto("/accounts/login/")
        assert page.evaluate(paper) == dark
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_too_many_wrong_passwords_are_held_up(acme, visit):
    olga = acme.members["olga"]
    page = visit("/accounts/login/")
    for _ in range(6):
        page.get_by_label("Email").fill(olga.email)
        page.get_by_label("Password").fill("wrong and wrong again")
        page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert").first).to_contain_text("Too many")


def test_a_stored_script_does_not_run(acme, visit):
    noa = acme.person("noa").consents()
    noa.remembers("<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">")
    page = visit("/privacy/", person=noa)
    expect(page.get_by_text("<script>").first).to_be_visible()
    assert "owned" not in page.title()


def test_every_page_says_its_policy(acme, visit, site):
    page = visit("/")
    answer = page.goto("/accounts/login/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "same-origin"
