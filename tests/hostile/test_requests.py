"""Requests that are strange before anything in them is read: hosts, paths, headers, methods. Against a real server."""

import gzip
import http.client
import json
import socket
from contextlib import suppress
from dataclasses import dataclass

import pytest

from tests.served import ANSWER_SECONDS, Server
from tests.world import open_world


@pytest.fixture(scope="module")
def server(stack):
    with Server(stack) as server:
        yield server


@pytest.fixture(scope="module")
def acme():
    acme = open_world("Acme")
    acme.person("mia").consents()
    return acme


@dataclass(frozen=True)
class Got:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def outcome(self):
        """The problem's code, or "" where the server itself, who knows no problems, refused."""
        told = self.headers.get("Content-Type", "").startswith("application/problem+json")
        return self.status, json.loads(self.body)["code"] if told else ""


def send(server, *lines, body=b""):
    """These very bytes, one connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_SECONDS) as connection:
        head = b"\r\n".join(line if isinstance(line, bytes) else line.encode() for line in lines)
        connection.sendall(head + b"\r\n\r\n" + body)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return Got(answer.status, answer.headers, answer.read())


def bearer(acme, key="admin"):
    return f"Authorization: Bearer {acme.keys[key]}"


def get(server, acme, path="/v1/subjects", *headers):
    return send(server, f"GET {path} HTTP/1.1", "Host: localhost", bearer(acme), *headers, "Connection: close")


def is_alive(server, acme):
    return get(server, acme).status == 200


# --- hosts ------------------------------------------------------------------------------------------------------------

HOSTS = [
    "evil.example",
    "localhost.evil.example",
    "localhost:80@evil.example",
    "evil.example#localhost",
    "local host",
    "localhost,evil.example",
    "localhost/evil",
    "127.0.0.1.evil.example",
    "[::1",
    "",
    "\u00e9vil",
    "x" * 5000,
]


@pytest.mark.parametrize("host", HOSTS, ids=ascii)
def test_host_that_is_not_ours_is_refused(server, acme, host):
    got = send(server, "GET /v1/subjects HTTP/1.1", f"Host: {host}", bearer(acme), "Connection: close")

    assert got.status == 400
    assert b"evil" not in got.body


@pytest.mark.parametrize("header", ["X-Forwarded-Host", "X-Host", "Forwarded", "X-Forwarded-Server", "X-Original-Host"])
def test_host_in_another_header_is_not_believed(server, acme, header):
    """The address of a person's link is made from the host."""
    body = b"{}"
    got = send(
        server,
        "POST /v1/subjects/mia/portal-links HTTP/1.1",
        *("Host: localhost", bearer(acme), f"{header}: host=evil.example", f"Content-Length: {len(body)}"),
        *("Content-Type: application/json", "Connection: close"),
        body=body,
    )

    assert got.status == 201
    assert json.loads(got.body)["url"].startswith("http://localhost/")


# --- paths ------------------------------------------------------------------------------------------------------------

NOWHERE = [
    "/v1/subjects/../projects",
    "/v1/subjects/%2e%2e/projects",
    "/v1/./subjects",
    "//v1/subjects",
    "/v1//subjects",
    "/v1/subjects/",
    "/V1/subjects",
    "/v1/subjects;limit=5",
    "/v1/subjects/mia/memories/..;/",
    "/v1/subjects/mia/../../../etc/passwd",
    "/static/../config/settings/base.py",
    "/static/%2e%2e/%2e%2e/manage.py",
    "/static/..%5c..%5cmanage.py",
    "/docs/..%2ferrors",
    "/docs/errors.md",
    "/.env",
    "/.git/config",
    "/media/x",
    "/admin/",
    "/v1/subjects/mia/memories/" + "a" * 3000,
    "/v1/jobs/00000000-0000-0000-0000-00000000000g",
    "/v1/jobs/{00000000-0000-0000-0000-000000000000}",
    "/v1/jobs/urn:uuid:00000000-0000-0000-0000-000000000000",
]


@pytest.mark.parametrize("path", NOWHERE, ids=lambda path: path[:60])
def test_path_that_leads_nowhere_leads_nowhere(server, acme, path):
    got = get(server, acme, path)

    assert got.status in (400, 404)
    assert b"root:" not in got.body
    assert b"SECRET" not in got.body


LONG = 255


@pytest.mark.parametrize(("external_id", "status"), [("x" * LONG, 404), ("x" * (LONG + 1), 400), ("x" * 60_000, 400)])
def test_persons_id_is_255_bytes_at_most(server, acme, external_id, status):
    assert get(server, acme, f"/v1/subjects/{external_id}").status == status


def test_address_that_is_longer_than_the_server_reads_is_refused_and_others_served(server, acme):
    """It may end the connection before all of it has gone."""
    with suppress(ConnectionError):
        assert 400 <= get(server, acme, "/v1/subjects?cursor=" + "x" * 200_000).status < 500

    assert is_alive(server, acme)


@pytest.mark.parametrize("written", ["%0d%0aSet-Cookie:%20a=b", "%0aX: y", "a%0d%0a%0d%0a<html>", "%E2%80%A8", "%00"])
def test_line_breaks_in_an_address_make_no_header(server, acme, written):
    for path in (f"/v1/subjects/{written}", f"/v1/subjects/mia/profile/{written}", f"/v1/subjects?a={written}"):
        got = get(server, acme, path.replace(" ", "%20"))

        assert got.status in (400, 404)
        assert "Set-Cookie" not in got.headers
        assert "X" not in got.headers


QUERIES = [
    "?" + "&" * 900,
    "?" + "=" * 900,
    "?limit=5&limit=5",
    "?limit=5;limit=6",
    "?limit[]=5",
    "?limit=%35%00",
    "?limit=" + "9" * 5000,
    "?cursor=" + "A" * 5000,
    "?%ff=1",
    "?limit=%ff",
    "?limit=%zz",
    "?%",
    "?" + "&".join(f"a{n}=1" for n in range(2000)),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query[:20])
def test_absurd_query_is_refused_or_means_nothing(server, acme, query):
    """Separators alone say nothing, and get what nothing gets."""
    expected = (200, "") if set(query) <= set("?&") else (400, "validation_failed")

    assert get(server, acme, f"/v1/subjects{query}").outcome == expected


# --- headers and methods ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "_method"])
@pytest.mark.parametrize("method", ["DELETE", "PUT"])
def test_method_is_the_one_sent(server, acme, header, method):
    for path in ("/v1/subjects/mia", f"/v1/subjects?{header.lower()}={method}"):
        got = get(server, acme, path, f"{header}: {method}")

        assert got.outcome in ((200, ""), (400, "validation_failed"))
    assert get(server, acme, "/v1/subjects/mia").status == 200


@pytest.mark.parametrize("header", ["X-Original-URL: /v1/projects", "X-Rewrite-URL: /v1/projects", "Range: bytes=0-4"])
def test_header_changes_neither_address_nor_answer(server, acme, header):
    got = get(server, acme, "/v1/subjects/mia", header)

    assert (got.status, json.loads(got.body)["external_id"]) == (200, "mia")


@pytest.mark.parametrize(
    "header", ["Cookie: sessionid=x", "X-Forwarded-For: 127.0.0.1", "Remote-User: ada", "X-Api-Key: x"]
)
def test_nothing_but_the_bearer_key_lets_anybody_in(server, acme, header):
    got = send(server, "GET /v1/subjects HTTP/1.1", "Host: localhost", header, "Connection: close")

    assert got.outcome == (401, "unauthenticated")


def test_key_is_read_from_nowhere_but_its_header(server, acme):
    key = acme.keys["admin"]
    for query in (f"?access_token={key}", f"?api_key={key}", f"?authorization=Bearer+{key}"):
        got = send(server, f"GET /v1/subjects{query} HTTP/1.1", "Host: localhost", "Connection: close")

        assert got.outcome == (401, "unauthenticated")
        assert key.encode() not in got.body


def test_two_keys_in_one_request_are_none(server, acme):
    """Whichever of the two a proxy looked at, it is not the other one that counts here."""
    other = open_world("Zenith")

    got = get(server, acme, "/v1/subjects", bearer(other))

    assert got.status in (400, 401)


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Content-Length: -1",),
        ("Content-Length: +5",),
        ("Content-Length: 0x5",),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding : chunked",),
    ],
    ids=str,
)
def test_request_whose_length_can_be_read_in_two_ways_is_refused(server, acme, lines):
    """What one reader takes for a body another takes for the next request."""
    smuggled = b"0\r\n\r\nGET /v1/projects HTTP/1.1\r\nHost: localhost\r\n\r\n"

    got = send(
        server,
        "POST /v1/subjects/mia/recall HTTP/1.1",
        *("Host: localhost", bearer(acme), "Content-Type: application/json", *lines),
        body=smuggled,
    )

    assert 400 <= got.status < 500
    assert is_alive(server, acme)


@pytest.mark.parametrize(
    "start",
    [
        "GET /v1/subjects",
        "GET  /v1/subjects HTTP/1.1",
        "GET /v1/subjects HTTP/9.9",
        "GET /v1/sub jects HTTP/1.1",
        "G@T /v1/subjects HTTP/1.1",
        "\x16\x03\x01\x02\x00",
        b"\xff\xfe\x00",
    ],
    ids=ascii,
)
def test_line_that_is_no_request_ends_nothing_but_itself(server, acme, start):
    with socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_SECONDS) as connection:
        connection.sendall((start if isinstance(start, bytes) else start.encode()) + b"\r\nHost: localhost\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65536)

    assert b" 200 " not in answer.partition(b"\r\n")[0]
    assert is_alive(server, acme)


def test_many_and_large_headers_are_refused_or_ignored(server, acme):
    for headers in ([f"X-{n}: y" for n in range(500)], ["X-Long: " + "y" * 60_000], ["Cookie: " + "a=b; " * 5000]):
        assert get(server, acme, "/v1/subjects", *headers).status in (200, 400, 431)
    assert is_alive(server, acme)


@pytest.mark.parametrize(
    "kind",
    [
        "application/json; charset=utf-16",
        "application/json; charset=latin-1",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/json",
        "application/*",
        "*/*",
        "application/json, text/plain",
        "x" * 2000,
    ],
    ids=lambda kind: kind[:40],
)
def test_body_of_another_kind_is_refused(server, acme, kind):
    """UTF-8 whatever the charset says: RFC 8259 knows no other."""
    body = '{"query": "é"}'.encode("utf-16" if "utf-16" in kind else "latin-1")
    got = send(
        server,
        "POST /v1/subjects/mia/recall HTTP/1.1",
        *("Host: localhost", bearer(acme), f"Content-Type: {kind}", f"Content-Length: {len(body)}"),
        "Connection: close",
        body=body,
    )

    assert got.outcome in ((400, "validation_failed"), (415, "unsupported_media_type"))


def test_compressed_body_is_not_unpacked(server, acme):
    """A small body that unpacks to gigabytes is the oldest trick; this server reads what was sent."""
    body = gzip.compress(b'{"query": "' + b"x" * 10_000_000 + b'"}')
    got = send(
        server,
        "POST /v1/subjects/mia/recall HTTP/1.1",
        *("Host: localhost", bearer(acme), "Content-Type: application/json", "Content-Encoding: gzip"),
        *(f"Content-Length: {len(body)}", "Connection: close"),
        body=body,
    )

    assert got.outcome == (400, "validation_failed")
