"""A real browser against a real server.

`site` is the server; `visit(path, …)` opens a page in a fresh browser (Debian's Chromium) and gives Playwright's
`Page`: signed in as `member=user`, as the person whose link was opened (`person=mia`), with `theme`, `width`,
`javascript`. Whatever a test opens is watched: a request to another host, a violation of the
Content-Security-Policy, an error on the console or an exception in a script fails it. `axe(page)` gives what breaks
WCAG 2.2 AA.

Without Chromium these tests are left out with a line that says so; with REQUIRE_BROWSER=1 they fail instead.
"""

import os
import shutil
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import Client
from playwright.sync_api import sync_playwright

CHROMIUM = shutil.which("chromium")
REQUIRED = os.environ.get("REQUIRE_BROWSER") == "1"
# --no-sandbox: as root there is none. The others keep it from looking for its maker's servers.
OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
WCAG = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
WIDE, NARROW = 1280, 390
_REPORT_VIOLATIONS = """
    document.addEventListener("securitypolicyviolation",
        event => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
"""


def pytest_collection_modifyitems(config, items):
    if CHROMIUM or REQUIRED:
        return
    needing = [item for item in items if "chromium" in getattr(item, "fixturenames", ())]
    if needing:
        config.hook.pytest_deselected(items=needing)
        items[:] = [item for item in items if item not in needing]
        line = (
            f"No chromium on PATH: {len(needing)} browser tests are left out. REQUIRE_BROWSER=1 makes that a failure."
        )
        config.pluginmanager.get_plugin("terminalreporter").write_line(line)


# Not for the session: while it is there its loop runs in this thread, which other tests must not meet.
@pytest.fixture(scope="module")
def chromium():
    assert CHROMIUM, "REQUIRE_BROWSER=1, and there is no chromium on PATH"
    # Playwright's loop runs in this thread, and Django would refuse the ORM beside it; nothing here is asynchronous.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="session")
def site(stack):
    from tests.served import Server  # needs Django to be set up, which this module may be read before

    with Server(stack) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture(autouse=True)
def connections_given_back():
    """Beside Playwright's loop a connection is kept by context, not by thread: the next test would take another."""
    from django.db import connections  # needs Django to be set up

    yield
    connections.close_all()


class Watch:
    """What went wrong in the browsers of a test."""

    def __init__(self, site):
        self.host, self.faults = urlsplit(site).netloc, []

    def over(self, context):
        context.on("request", self._asked)
        context.on("console", self._said)
        context.on("weberror", lambda failed: self.faults.append(f"exception: {failed.error}"))

    def _asked(self, request):
        asked = urlsplit(request.url)
        if asked.scheme not in {"data", "blob", "about"} and asked.netloc != self.host:
            self.faults.append(f"asked {request.url}")

    def _said(self, message):
        # The browser's own line about a refused page; what the page says about it is what counts.
        if message.type == "error" and "the server responded with a status of" not in message.text:
            self.faults.append(f"console: {message.text}")


@pytest.fixture
def visit(chromium, site):
    watch, contexts = Watch(site), []

    def open_page(path, *, member=None, person=None, theme="light", width=WIDE, javascript=True, language="en"):
        context = chromium.new_context(
            base_url=site,
            color_scheme=theme,
            viewport={"width": width, "height": 900},
            java_script_enabled=javascript,
            locale=language,
            timezone_id="Europe/Berlin",
            reduced_motion="reduce",
        )
        contexts.append(context)
        watch.over(context)
        context.add_init_script(_REPORT_VIOLATIONS)
        context.add_cookies(_cookies(site, member, person))
        page = context.new_page()
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert watch.faults == []


def _cookies(site, member, person):
    found = []
    if member is not None:
        client = Client()
        client.force_login(member)
        found.append(("sessionid", client.cookies["sessionid"].value, "/"))
    if person is not None:
        found.append(("fmn_visit", person.browser().cookies["fmn_visit"].value, "/privacy/"))
    host = urlsplit(site).hostname
    return [{"name": name, "value": value, "domain": host, "path": path} for name, value, path in found]


@pytest.fixture(scope="session")
def axe():
    runner = Axe()

    def violations(page):
        found = runner.run(page, options=WCAG).response["violations"]
        return [f"{each['id']}: {node['target']} {node['failureSummary']}" for each in found for node in each["nodes"]]

    return violations
