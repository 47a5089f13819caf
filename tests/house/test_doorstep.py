"""What a real server does before any handler runs: bodies measured, paths taken as sent, logs without content."""

import http.client
import json
import logging
import socket
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import IntegrityError

from config.logs import ContentFree
from tests.served import ANSWER_SECONDS, Server, eventually

MIB = 1024 * 1024
CHUNK = 64 * 1024
CANARY = "mia-is-hiv-positive"


@pytest.fixture(scope="module")
def server(stack):
    with Server(stack) as server:
        yield server


# --- bodies -----------------------------------------------------------------------------------------------------------


class Sender:
    """A request whose body is sent by hand."""

    def __init__(self, server, *headers):
        self.connection = socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_SECONDS)
        lines = ["POST /v1/subjects/mia/recall HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
        self.connection.sendall("\r\n".join([*lines, "", ""]).encode())

    def chunk(self, content):
        self.connection.sendall(f"{len(content):x}\r\n".encode() + content + b"\r\n")

    def mebibyte(self):
        for _ in range(MIB // CHUNK):
            self.chunk(b" " * CHUNK)

    def could_send(self, mebibytes):
        """Whether all of it went before the server closed the connection."""
        try:
            for _ in range(mebibytes):
                self.mebibyte()
        except ConnectionError:
            return False
        return True

    def is_answered_in(self, seconds):
        self.connection.settimeout(seconds)
        try:
            return bool(self.connection.recv(1, socket.MSG_PEEK))
        except TimeoutError:
            return False
        finally:
            self.connection.settimeout(ANSWER_SECONDS)

    def answer(self):
        """Status, headers and problem; then the server has closed the connection, or not."""
        answer = http.client.HTTPResponse(self.connection)
        answer.begin()
        return answer, json.loads(answer.read())


@contextmanager
def sender(server, *headers):
    sending = Sender(server, *headers)
    try:
        yield sending
    finally:
        sending.connection.close()


def assert_too_large(answer, problem):
    assert (answer.status, problem["code"]) == (413, "payload_too_large")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Request-Id"] == problem["request_id"] != ""
    assert answer.headers["Connection"] == "close"
    assert problem["instance"] == "/v1/subjects/mia/recall"


def test_declared_length_is_refused_before_a_byte_of_the_body_is_sent(server):
    for length in (MIB + 1, 10**12):
        with sender(server, f"Content-Length: {length}") as sending:
            assert_too_large(*sending.answer())


def test_body_in_chunks_is_refused_with_its_first_byte_too_many(server):
    with sender(server, "Transfer-Encoding: chunked") as sending:
        sending.mebibyte()
        assert not sending.is_answered_in(seconds=0.5)
        sending.chunk(b" ")

        assert_too_large(*sending.answer())


def test_body_in_chunks_of_a_mebibyte_is_let_through(server):
    with sender(server, "Transfer-Encoding: chunked") as sending:
        sending.mebibyte()
        sending.chunk(b"")

        answer, problem = sending.answer()

    assert (answer.status, problem["code"]) == (401, "unauthenticated")


def test_body_without_end_takes_neither_memory_nor_disk(mia, server):
    """`wchar` counts every byte the process writes, to a file that has no name too."""
    figures = Path(f"/proc/{server.pid}")
    eventually(lambda: is_loaded(mia, server))
    written, largest = figure(figures / "io", "wchar"), figure(figures / "status", "VmHWM")

    for _ in range(3):
        with sender(server, "Transfer-Encoding: chunked") as sending:
            assert not sending.could_send(mebibytes=20)
            assert_too_large(*sending.answer())

    assert figure(figures / "io", "wchar") - written < MIB
    assert figure(figures / "status", "VmHWM") - largest < 16 * 1024  # kB


def is_loaded(person, server):
    """Whether the server has its model, whose loading takes memory of its own."""
    asked = server.as_key(person.world.keys["agent"]).call("POST", f"{person.path}/recall", {"query": "tea?"})
    return asked.json()["degraded"] == []


def figure(file, name):
    lines = dict(line.split(":", 1) for line in file.read_text().splitlines())
    return int(lines[name].split()[0])


# --- paths ------------------------------------------------------------------------------------------------------------

LOSSY = {
    "encoded slash": "/v1/subjects/mia%2Fmemories",
    "encoded slash, small": "/v1/subjects/mia%2fmemories",
    "encoded slash for ours": "/v1%2Fsubjects/mia",
    "latin-1": "/v1/subjects/caf%E9",
    "cut off": "/v1/subjects/caf%C3",
    "surrogate": "/v1/subjects/a%ED%A0%80b",
}
FAITHFUL = ["anna%252Fb", "caf%C3%A9", "100%25", "a%3Fb", "%F0%9F%8C%BC", "a%5Cb"]


@pytest.mark.parametrize("path", LOSSY.values(), ids=LOSSY)
def test_path_that_would_say_another_thing_once_decoded_is_refused(mia, server, path):
    answers = [
        server.as_key(mia.world.keys["admin"]).get(path),
        mia.world.admin.client.get(path, headers=bearer(mia), RAW_URI=path),
        mia.world.admin.client.get(path, headers=bearer(mia), REQUEST_URI=f"http://localhost{path}?limit=1"),
    ]

    assert [(each.status_code, each.json()["code"]) for each in answers] == [(400, "validation_failed")] * 3


def bearer(person):
    return {"Authorization": f"Bearer {person.world.keys['admin']}"}


def test_encoded_slash_in_the_query_is_no_part_of_the_path(mia, server):
    path = "/v1/audit/events?subject=a%2Fb"

    assert server.as_key(mia.world.keys["admin"]).get(path).json()["errors"][0]["pointer"] == "external_id"
    assert (
        mia.world.admin.client.get("/v1/subjects", headers=bearer(mia), RAW_URI="/v1/subjects?a=%2F").status_code == 200
    )


@pytest.mark.parametrize("written", FAITHFUL)
def test_path_that_says_the_same_is_taken(acme, server, written):
    admin = server.as_key(acme.keys["admin"])

    assert admin.call("PUT", f"/v1/subjects/{written}", {}).status_code == 201
    assert admin.get(f"/v1/subjects/{written}").status_code == 200


# --- logs -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def breaking(connect_as):
    """Storing a project whose name ends in `-breaks` fails in the database, whose message quotes the name."""
    with connect_as("postgres", autocommit=True) as data:
        data.execute(
            "CREATE FUNCTION break_on_purpose() RETURNS trigger LANGUAGE plpgsql AS "
            "$$BEGIN RAISE EXCEPTION 'cannot store %', NEW.name USING DETAIL = NEW.name; END$$"
        )
        data.execute(
            "CREATE TRIGGER break_on_purpose BEFORE INSERT ON accounts_project FOR EACH ROW "
            "WHEN (NEW.name LIKE '%-breaks') EXECUTE FUNCTION break_on_purpose()"
        )
        yield
        data.execute("DROP FUNCTION break_on_purpose CASCADE")


def test_logs_of_a_server_hold_nothing_of_path_query_header_or_body(acme, server, breaking):
    acme.person(CANARY).consents()
    admin, person = server.as_key(acme.keys["admin"]), f"/v1/subjects/{CANARY}"
    body = {"text": f"{CANARY}."}
    answers = [
        admin.get(person),
        admin.call("POST", f"{person}/memories", body),
        admin.get(f"{person}-unknown", X_Request_Id=CANARY),
        admin.get(f"/{CANARY}"),
        admin.get(f"/v1/subjects?{CANARY}={CANARY}"),
        admin.call("POST", f"{person}/memories", {"text": "x", CANARY: CANARY}),
        admin.get("/v1/subjects", Host=f"{CANARY}.example"),
        admin.get(f"{person}%2F"),
        admin.call(CANARY, person),
        admin.call("POST", "/v1/projects", {"name": f"{CANARY}-breaks"}),
    ]

    assert [each.status_code for each in answers] == [200, 201, 404, 404, 400, 400, 400, 400, 405, 500]
    said = server.said()
    assert CANARY not in said
    assert "hiv" not in said
    for answer in answers:
        if answer.status_code >= 400:
            assert answer.json()["request_id"] in said
    assert "GET v1/subjects/<str:external_id> answered 404" in said
    assert "GET no route answered 404" in said
    assert "odd method v1/subjects/<str:external_id> answered 405" in said
    assert "django.db.utils." in said
    assert "psycopg.errors.RaiseException: P0001" in said
    assert "accounts/services/tenants.py" in said


def logged(message, *arguments, error=None):
    formatter = ContentFree("%(levelname)s %(name)s %(request_id)s %(message)s")
    info = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("asyncio", logging.ERROR, __file__, 1, message, arguments, info)
    # What a formatter before this one has left there.
    record.exc_text = f"ValueError: {CANARY}" if error else None
    return formatter.format(record)


def raised(error, cause=None):
    try:
        raise error from cause
    except type(error) as caught:
        return caught


def test_exception_is_logged_by_type_and_place_with_its_causes():
    error = raised(IntegrityError(CANARY), raised(KeyError(CANARY)))

    said = logged("%s failed", "storing", error=error)

    lines = said.splitlines()
    assert lines[0] == "ERROR asyncio - storing failed"
    assert lines[1] == "builtins.KeyError"
    assert lines[2].endswith("in raised: raise error from cause")
    assert lines[3] == "django.db.utils.IntegrityError"
    assert CANARY not in said


def test_exception_that_causes_itself_ends():
    first, second = ValueError(CANARY), TypeError(CANARY)
    first.__context__, second.__context__ = second, first

    assert logged("failed", error=first).splitlines() == [
        "ERROR asyncio - failed",
        "builtins.TypeError",
        "builtins.ValueError",
    ]


def test_message_ends_with_its_first_line():
    """asyncio puts the exception on the second one, and a line break of the caller would make a line of its own."""
    assert logged("Task was lost\nfuture: <ValueError('%s')>", CANARY) == "ERROR asyncio - Task was lost"
    assert logged("") == "ERROR asyncio - "
