"""Django's WSGI handler served over ASGI: a fixed set of threads, each with what it keeps between requests.

Django's own ASGI handler makes a thread for each request; why not that: docs/decisions/0011. Relies on
`config.body_door` to bound bodies, so that one is read whole before a thread is taken: a slow sender holds none.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from urllib.parse import unquote_to_bytes

type Message = dict[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type Header = tuple[bytes, bytes]

# WSGI has these two without the prefix of the others.
_UNPREFIXED = {"CONTENT_TYPE", "CONTENT_LENGTH"}


class ThreadedDjango:
    """An ASGI application for `http` alone. `threads` is how many requests are worked on at once; others wait."""

    def __init__(self, handler: Callable[..., Any], *, threads: int) -> None:
        self._handler = handler
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="request")

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"Django answers http here, not {scope['type']}.")
        body = await _whole_body(receive)
        if body is None:
            return
        loop = asyncio.get_running_loop()
        answering = _Answering(loop, loop.create_future())
        self._threads.submit(answering.work, self._handler, environ_of(scope, body))
        begun = await answering.begun
        await send({"type": "http.response.start", "status": begun.status, "headers": begun.headers})
        await send({"type": "http.response.body", "body": begun.body})


@dataclass(frozen=True, slots=True)
class _Begun:
    """An answer, whole. Nothing is streamed: a client that reads slowly must not hold a thread."""

    status: int
    headers: list[Header]
    body: bytes


class _Answering:
    """One answer on its way from the thread that makes it to the loop that sends it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, begun: "asyncio.Future[_Begun]") -> None:
        self._loop, self.begun = loop, begun

    def work(self, handler: Callable[..., Any], environ: dict[str, Any]) -> None:
        """In a thread. The answer is handed over before what the request held is given back: nobody waits for that."""
        head: list[Any] = []

        def start(status: str, headers: list[tuple[str, str]], _exc_info: object = None) -> None:
            head.append((status, headers))

        try:
            response = handler(environ, start)
            try:
                self._hand_over(head[0], response)
            finally:
                response.close()
        except BaseException as error:
            self._loop.call_soon_threadsafe(self._fail, error)
            raise

    def _hand_over(self, head: tuple[str, Iterable[tuple[str, str]]], response: Any) -> None:
        status = int(head[0].split(" ", 1)[0])
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in head[1]]
        self._loop.call_soon_threadsafe(self._begin, _Begun(status, headers, b"".join(response)))

    def _begin(self, begun: _Begun) -> None:
        if not self.begun.done():
            self.begun.set_result(begun)

    def _fail(self, error: BaseException) -> None:
        if not self.begun.done():
            self.begun.set_exception(error)


async def _whole_body(receive: Receive) -> bytes | None:
    """None when the client goes before it has sent everything."""
    pieces = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


def environ_of(scope: Message, body: bytes) -> dict[str, Any]:
    """The request as WSGI says it (PEP 3333): bytes as latin-1, the path decoded once, and as it was sent."""
    path = scope.get("raw_path") or scope["path"].encode()
    query = scope.get("query_string", b"")
    server, client = scope.get("server") or ("unknown", 0), scope.get("client") or ("", 0)
    return _headers_of(scope) | {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "RAW_URI": (path + (b"?" + query if query else b"")).decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "CONTENT_LENGTH": str(len(body)),
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": f"HTTP/{scope.get('http_version', '1.1')}",
        "REMOTE_ADDR": client[0],
        "REMOTE_PORT": str(client[1]),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": BytesIO(body),
        "wsgi.errors": None,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }


def _headers_of(scope: Message) -> dict[str, Any]:
    """A name with an underscore is left out: WSGI could not tell it from the one with a hyphen."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in scope["headers"]:
        if b"_" not in name:
            field = name.decode("latin-1").upper().replace("-", "_")
            found[field if field in _UNPREFIXED else f"HTTP_{field}"].append(value.decode("latin-1"))
    return {name: ("; " if name == "HTTP_COOKIE" else ",").join(values) for name, values in found.items()}
