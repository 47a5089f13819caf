"""A page speaks the reader's language, in their zone and theme; a refusal is a page for a browser, and only there."""

import struct
from datetime import UTC, datetime

import pytest
from django.db import connections
from django.template import engines
from django.test import Client, RequestFactory
from django.utils import timezone

from config import refusals
from config.reader import THEMES

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
ELSEWHERE = ["https://elsewhere.example/", "//elsewhere.example", "javascript:alert(1)", "/\\elsewhere.example", ""]


def page(client, path="/docs/style", **headers):
    return client.get(path, headers=BROWSER | headers).content.decode()


def prefer(client, **choice):
    return client.post("/preferences", {"next": "/docs/style?rtl"} | choice)


def write_catalogue(folder, words):
    """A compiled catalogue (GNU .mo) of these words, as msgfmt would make it."""
    lines = sorted({"": "Content-Type: text/plain; charset=UTF-8\n"} | words)
    pairs = [
        (word.encode(), ({"": "Content-Type: text/plain; charset=UTF-8\n"} | words)[word].encode()) for word in lines
    ]
    start, count = 28 + 16 * len(pairs), len(pairs)
    tables, texts = [], b""
    for side in (0, 1):
        for pair in pairs:
            tables += [len(pair[side]), start + len(texts)]
            texts += pair[side] + b"\0"
    folder.mkdir(parents=True)
    head = struct.pack("<7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, 0)
    (folder / "django.mo").write_bytes(head + struct.pack(f"<{len(tables)}I", *tables) + texts)


# --- theme ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", THEMES)
def test_the_theme_that_was_chosen_is_in_the_page_as_it_is_sent(theme):
    client = Client()
    answer = prefer(client, theme=theme)
    assert (answer.status_code, answer["Location"]) == (302, "/docs/style?rtl")
    assert f'data-theme="{theme}"' in page(client)


def test_a_theme_nobody_offers_is_not_kept():
    client = Client()
    prefer(client, theme='dark"><script>')
    assert "fmn_theme" not in client.cookies
    client.cookies["fmn_theme"] = 'dark"><script>'
    assert 'data-theme="system"' in page(client)


@pytest.mark.parametrize("back", ELSEWHERE)
def test_a_choice_never_leads_elsewhere(back):
    assert prefer(Client(), theme="dark", next=back)["Location"] == "/"


def test_a_choice_needs_the_token_of_its_page():
    answer = Client(enforce_csrf_checks=True).post("/preferences", {"theme": "dark"}, headers=BROWSER)
    assert answer.status_code == 403
    assert "fmn_theme" not in answer.cookies
    assert b"<h1>Not allowed</h1>" in answer.content


# --- language ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def languages(settings_of, tmp_path):
    write_catalogue(tmp_path / "de" / "LC_MESSAGES", {"Theme": "Aussehen", "Skip to the content": "Zum Inhalt"})
    write_catalogue(tmp_path / "ar" / "LC_MESSAGES", {"Theme": "المظهر"})
    return settings_of(LANGUAGES=[("en", "English"), ("de", "German"), ("ar", "Arabic")], LOCALE_PATHS=[tmp_path])


@pytest.fixture
def settings_of():
    from django.test import override_settings

    changed = []

    def change(**settings):
        changed.append(override_settings(**settings))
        changed[-1].enable()

    yield change
    for each in changed:
        each.disable()


def test_a_page_is_in_the_language_that_was_chosen_else_in_the_browsers(languages):
    client = Client()
    assert "Zum Inhalt" in page(client, **{"accept-language": "de-AT,de;q=0.9"})
    prefer(client, language="en")
    assert "Skip to the content" in page(client, **{"accept-language": "de"})
    prefer(client, language="de")
    shown = page(client)
    assert '<html lang="de" dir="ltr"' in shown
    assert "<legend>Aussehen</legend>" in shown


def test_a_page_in_a_language_from_right_to_left_says_so(languages):
    shown = page(Client(), **{"accept-language": "ar"})
    assert '<html lang="ar" dir="rtl"' in shown
    assert "المظهر" in shown


def test_rest_is_the_same_in_every_language(languages):
    answers = [Client().get("/v1/subjects", headers={"accept-language": code}) for code in ("en", "de")]
    assert [answer.json()["title"] for answer in answers] == ["No valid API key"] * 2
    assert not any("Content-Language" in answer for answer in answers)


def test_what_depends_on_the_reader_is_not_shared():
    answer = Client().get("/docs/style")
    assert {"Accept-Language", "Cookie"} <= set(answer["Vary"].split(", "))
    assert answer["Cache-Control"] == "no-store"


# --- times ------------------------------------------------------------------------------------------------------------


def told(source, instant):
    return engines["django"].from_string(source).render({"instant": instant})


def test_times_are_told_in_the_readers_zone():
    instant = datetime(2026, 5, 3, 12, 20, 5, tzinfo=UTC)
    with timezone.override("Europe/Berlin"):
        assert '<time datetime="2026-05-03T14:20:05+02:00" data-spoken>3 May 2026, 14:20</time>' in told(
            "{% when instant %}", instant
        )
        assert ">2026-05-03 14:20:05 CEST</time>" in told("{% when instant 'exact' %}", instant)
    assert ">3 May 2026, 12:20 UTC</time>" in told("{% when instant %}", instant)
    assert told("{% when instant %}", None) == "never"


@pytest.mark.parametrize(("zone", "known"), [("Asia/Tokyo", "Asia/Tokyo"), ("../../etc/passwd", "UTC"), ("", "UTC")])
def test_only_a_zone_there_is_is_taken_from_the_cookie(zone, known):
    client = Client()
    client.cookies["fmn_zone"] = zone
    assert f'data-zone="{known}"' in page(client)


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/nothing", "/console/nothing"])
def test_a_browser_is_refused_with_a_page_and_a_program_with_a_problem(path):
    shown = Client().get(path, headers=BROWSER)
    assert (shown.status_code, shown["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert shown["X-Request-Id"] in shown.content.decode()
    for accept in ("*/*", "application/json"):
        told = Client().get(path, headers={"accept": accept})
        assert (told.status_code, told["Content-Type"]) == (404, "application/problem+json")


def test_rest_never_answers_with_a_page():
    assert Client().get("/v1/nothing", headers=BROWSER)["Content-Type"] == "application/problem+json"


def test_the_page_of_a_failure_asks_no_database():
    request = RequestFactory().get("/console/", headers=BROWSER)
    before = [len(connection.queries_log) for connection in connections.all()]
    for connection in connections.all():
        connection.force_debug_cursor = True
    try:
        answer = refusals.server_error(request)
    finally:
        for connection in connections.all():
            connection.force_debug_cursor = False
    assert [len(connection.queries_log) for connection in connections.all()] == before
    assert answer.status_code == 500
    assert b"Something failed on our side" in answer.content


def test_every_page_says_what_it_may_do():
    answer = Client().get("/docs/style")
    policy = answer["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "camera=()" in answer["Permissions-Policy"]
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer["X-Content-Type-Options"] == "nosniff"
