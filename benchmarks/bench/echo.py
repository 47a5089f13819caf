"""A server that does nothing: every request gets the same answer. What remains is the cost of the client.

`python -m benchmarks.bench.echo PORT`
"""

import asyncio
import sys

_BODY = b"x" * 4096
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(_BODY) + _BODY
_LENGTH = b"content-length: "


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  a TCP server's transport is one
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if found and len(body) >= _announced(head):
            self._received = b""
            self._transport.write(_ANSWER)


def _announced(head: bytes) -> int:
    _, found, rest = head.lower().partition(_LENGTH)
    return int(rest.partition(b"\r\n")[0]) if found else 0


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
