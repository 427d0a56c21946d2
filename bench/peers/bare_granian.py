"""Bare Granian: an ASGI function that says ok, embedded in one uvloop loop as we do.

python -m bench.peers.bare_granian PORT
"""

from __future__ import annotations

import sys

import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.server.embed import Server
from litestar.types import ASGIApp, Receive, Scope, Send

BODY = b'{"status":"ok"}'
HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))]


async def noop(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY, "more_body": False})


def serve(app: ASGIApp, port: int) -> None:
    async def main() -> None:
        server = Server(
            app,
            port=port,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=2_048,
            backpressure=10_000,
            log_enabled=False,
        )
        await server.serve()

    uvloop.run(main())


if __name__ == "__main__":
    serve(noop, int(sys.argv[1]))
