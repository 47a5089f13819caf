"""Django's WSGI handler behind ASGI: what reaches it, what comes back, and where its work is done."""

import asyncio
import threading

import pytest

from config.bridge import ThreadedDjango, environ_of


def scope(path=b"/v1/x", **given):
    return {
        "type": "http",
        "method": "POST",
        "path": "/v1/x",
        "raw_path": path,
        "query_string": b"",
        "headers": [],
        "http_version": "1.1",
        "server": ("127.0.0.1", 8000),
        "client": ("10.0.0.9", 4321),
    } | given


class Response(list[bytes]):
    streaming, closed = False, False

    def close(self):
        self.closed = True


class Streamed(Response):
    streaming = True


def asked(handler, *messages, sending=None, threads=1):
    """What was sent, in order, for a request whose body came in these messages."""
    sent, waiting = [], list(messages) or [{"type": "http.request", "body": b""}]

    async def receive():
        return waiting.pop(0)

    async def send(message):
        sent.append(message)
        if sending:
            sending(message)

    asyncio.run(ThreadedDjango(handler, threads=threads)(scope(), receive, send))
    return sent


def answering(response, status="200 OK", headers=()):
    def handler(environ, start):
        start(status, list(headers))
        return response

    return handler


def test_an_answer_goes_out_whole_and_is_closed():
    response = Response([b"one", b" two"])

    sent = asked(answering(response, "201 Created", [("X-A", "b"), ("Set-Cookie", "c=1"), ("Set-Cookie", "d=2")]))

    assert [each["type"] for each in sent] == ["http.response.start", "http.response.body"]
    assert sent[0]["status"] == 201
    assert sent[0]["headers"] == [(b"x-a", b"b"), (b"set-cookie", b"c=1"), (b"set-cookie", b"d=2")]
    assert sent[1]["body"] == b"one two"


def test_the_body_is_read_whole_before_the_handler_runs():
    seen = {}

    def handler(environ, start):
        seen.update(environ, read=environ["wsgi.input"].read())
        start("200 OK", [])
        return Response()

    asked(
        handler,
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "body": b"cd", "more_body": False},
    )

    assert (seen["read"], seen["CONTENT_LENGTH"]) == (b"abcd", "4")


def test_a_client_that_goes_before_its_body_ends_gets_nothing_done():
    called = []

    sent = asked(
        lambda *_: called.append(1),
        {"type": "http.request", "body": b"a", "more_body": True},
        {"type": "http.disconnect"},
    )

    assert (sent, called) == ([], [])


def test_requests_share_the_threads():
    names = []

    def handler(environ, start):
        names.append(threading.current_thread().name)
        start("200 OK", [])
        return Response()

    async def many():
        application = ThreadedDjango(handler, threads=2)

        async def receive():
            return {"type": "http.request", "body": b""}

        async def send(message):
            pass

        await asyncio.gather(*(application(scope(), receive, send) for _ in range(20)))

    asyncio.run(many())

    assert len(names) == 20
    assert len(set(names)) <= 2


def test_what_a_handler_raises_is_raised_to_the_server():
    def handler(environ, start):
        raise LookupError("broken")

    with pytest.raises(LookupError, match="broken"):
        asked(handler)


def test_what_would_be_streamed_goes_out_whole_and_holds_no_thread():
    response = Streamed([b"a", b"b"])

    sent = asked(answering(response))

    assert [each.get("body") for each in sent] == [None, b"ab"]
    assert response.closed


def test_the_path_is_decoded_once_and_kept_as_sent():
    environ = environ_of(scope(b"/v1/subjects/a%252Fb%C3%A9", query_string=b"a=%2F"), b"")

    assert environ["PATH_INFO"].encode("latin-1") == b"/v1/subjects/a%2Fb\xc3\xa9"
    assert environ["RAW_URI"] == "/v1/subjects/a%252Fb%C3%A9?a=%2F"
    assert environ["QUERY_STRING"] == "a=%2F"


def test_headers_as_wsgi_names_them():
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"999"),
        (b"x-forwarded-proto", b"https"),
        (b"x_forwarded_proto", b"http"),
        (b"accept", b"a"),
        (b"accept", b"b"),
        (b"cookie", b"c=1"),
        (b"cookie", b"d=2"),
    ]

    environ = environ_of(scope(headers=headers), b"abc")

    assert environ["CONTENT_TYPE"] == "application/json"
    assert environ["CONTENT_LENGTH"] == "3"
    assert environ["HTTP_X_FORWARDED_PROTO"] == "https"
    assert environ["HTTP_ACCEPT"] == "a,b"
    assert environ["HTTP_COOKIE"] == "c=1; d=2"
    assert (environ["REMOTE_ADDR"], environ["SERVER_PORT"]) == ("10.0.0.9", "8000")


def test_nothing_but_http_is_answered():
    with pytest.raises(ValueError, match="websocket"):
        asyncio.run(ThreadedDjango(None, threads=1)({"type": "websocket"}, None, None))
