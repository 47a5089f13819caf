"""The shared parts in a real browser: with a script and without, from right to left, in the reader's zone."""

from playwright.sync_api import expect

from tests.pages.conftest import NARROW, WIDE


def test_what_can_be_copied_is_copied_and_says_so(visit):
    page = visit("/docs/style")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.get_by_role("textbox", name="API key").input_value()


def test_without_a_script_what_can_be_copied_can_be_marked(visit):
    page = visit("/docs/style", javascript=False)
    expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    expect(page.get_by_role("textbox", name="API key")).to_have_js_property("readOnly", True)


def test_a_job_goes_on_by_itself(visit):
    page = visit("/docs/style")
    with page.expect_response(lambda answer: answer.url.endswith("?progress")) as first:
        shown = page.locator("#job-label").text_content()
    assert first.value.status == 200
    expect(page.locator("#job-label")).not_to_have_text(shown)
    expect(page.get_by_role("progressbar", name="Taking in the handbook").first).to_be_visible()


def test_the_theme_is_chosen_without_a_script(visit):
    page = visit("/docs/style", theme="light", javascript=False)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark").click()
    expect(page.get_by_role("heading", name="Style")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")


def test_times_are_told_in_the_browsers_zone_from_the_first_page(visit):
    page = visit("/docs/style")
    first = page.locator("time[data-spoken]").nth(1)
    assert "UTC" not in first.text_content()
    by_script = first.text_content().rpartition(":")[0]
    page.reload()
    assert page.locator("html").get_attribute("data-zone") == "Europe/Berlin"
    assert page.locator("time[data-spoken]").nth(1).text_content().rpartition(":")[0] == by_script


def test_from_right_to_left_nothing_breaks(visit, axe):
    for width in (WIDE, NARROW):
        page = visit("/docs/style?rtl", width=width)
        assert page.evaluate("document.documentElement.dir") == "rtl"
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
        assert page.get_by_role("link", name="Forget-me-not").bounding_box()["x"] > width / 4
        assert axe(page) == []


def test_where_colours_are_forced_states_still_have_their_words_and_edges(visit):
    page = visit("/docs/style")
    page.emulate_media(forced_colors="active")
    edge = page.locator(".badge[data-kind=needs]").first.evaluate("badge => getComputedStyle(badge).borderTopWidth")
    assert edge == "1px"
    expect(page.get_by_text("Needs you")).to_be_visible()
