"""The door before Django: measures bodies as they come, and answers 413 itself."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from accounts.errors import PayloadTooLarge
from accounts.http.parsing import MAX_BODY_BYTES, declared_too_large
from audit.context import request_id
from config.problems import problem

type Message = dict[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type Application = Callable[[Any, Any, Any], Awaitable[None]]


class BodyDoor:
    """Answers 413 to a body over 1 MiB before Django takes it in, which would spool any size to disk for anybody.

    By the declared length at once, else with the first byte too many; the rest is not read, the connection ends.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
        elif declared_too_large(_content_length(scope)):
            await _refuse(scope["path"], send)
        else:
            body = _MeasuredBody(receive)
            await self.application(scope, body.receive, send)
            if body.too_large:
                await _refuse(scope["path"], send)


class _MeasuredBody:
    """`receive` of one request. Over the limit the client is said to have gone: Django ends without an answer."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._bytes = receive, 0

    @property
    def too_large(self) -> bool:
        return self._bytes > MAX_BODY_BYTES

    async def receive(self) -> Message:
        message = await self._receive()
        self._bytes += len(message.get("body", b""))
        return {"type": "http.disconnect"} if self.too_large else message


def _content_length(scope: Message) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == b"content-length"), "")


async def _refuse(path: str, send: Send) -> None:
    token = request_id.set(uuid4().hex)
    answer = problem(PayloadTooLarge(), path)
    answer["X-Request-Id"] = request_id.get()
    request_id.reset(token)
    answer["Cache-Control"], answer["X-Content-Type-Options"] = "no-store", "nosniff"
    answer["Content-Length"], answer["Connection"] = str(len(answer.content)), "close"
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": answer.content})
