"""One connection that is kept open, and JSON over it: as little client as there can be."""

import http.client
import json
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

SECONDS = 120
IDLE_SECONDS = 2.0  # the server closes a connection that is idle for five


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content)


class Line:
    """Requests with one API key, one after another. Not for several threads."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._used = 0.0

    def post(self, path: str, body: Any) -> Answer:
        return self._send("POST", path, json.dumps(body).encode())

    def _send(self, method: str, path: str, body: bytes) -> Answer:
        if time.monotonic() - self._used > IDLE_SECONDS:
            self._connection.close()  # and opened again by the request
        self._connection.request(method, path, body, self._headers)
        response = self._connection.getresponse()
        answer = Answer(response.status, response.read())
        self._used = time.monotonic()
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
