"""XMPP over a plain socket, as far as one-to-one messages need it: PLAIN, a resource, stream management's acks."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Callable
from typing import cast

from bench.load.login import Login

DOMAIN = "bench"
BODY = "x" * 64
_STREAM = (
    f"<?xml version='1.0'?><stream:stream to='{DOMAIN}' xmlns='jabber:client'"
    " xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
).encode()
_BIND = b"<iq type='set' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>r</resource></bind></iq>"
_ENABLE = b"<enable xmlns='urn:xmpp:sm:3'/>"
_ASK = b"<r xmlns='urn:xmpp:sm:3'/>"
_HANDLED = re.compile(rb"<a [^>]*h=['\"](\d+)['\"]")
_OPEN_TAG = 512
"""More than any tag that is counted: so much of what was read is kept, for a tag that was cut in two."""


def _auth(login: Login) -> bytes:
    plain = base64.b64encode(f"\0{login.user}\0{login.secret}".encode()).decode()
    return f"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{plain}</auth>".encode()


class Line(asyncio.Protocol):
    """A logged-in session. `ready` is done when messages may come and go."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._read = b""
        self._steps = [
            (b"</stream:features>", _auth(login)),
            (b"<success", _STREAM),
            (b"</stream:features>", _BIND),
            (b"</iq>", _ENABLE + b"<presence/>"),
            (b"<enabled", b""),
        ]
        self._acked = 0
        self._stanzas_before = 1  # the presence counts among the stanzas that are acknowledged
        self._to = b""
        self.ready = asyncio.get_running_loop().create_future()
        self.on_saved: Callable[[int], None] = _nobody
        self.on_delivered: Callable[[int], None] = _nobody

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(_STREAM)

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.ready.done():
            self.ready.set_exception(
                ConnectionError(f"{self._login.user} was closed at {self._read[-300:]!r}")
            )

    def talk_to(self, other: Login) -> None:
        self._to = f"<message to='{other.user}@{DOMAIN}' type='chat' id='".encode()

    def send(self, first: int, count: int) -> None:
        tail = f"'><body>{BODY}</body></message>".encode()
        self._transport.write(b"".join(b"%b%d%b%b" % (self._to, first + n, tail, _ASK) for n in range(count)))

    def data_received(self, data: bytes) -> None:
        self._read += data
        if self._steps:
            self._log_in()
            return
        if count := self._read.count(b"</message>"):
            self.on_delivered(count)
        handled = 0
        for handled_tag in _HANDLED.finditer(self._read):
            handled = int(handled_tag[1])
        end = self._read.rfind(b">") + 1
        self._read = self._read[end:]
        if handled and (newly := handled - self._stanzas_before - self._acked) > 0:
            self._acked += newly
            self.on_saved(newly)

    def _log_in(self) -> None:
        while self._steps:
            mark, answer = self._steps[0]
            _, found, rest = self._read.partition(mark)
            if not found:
                return
            self._read = rest
            self._steps.pop(0)
            self._transport.write(answer)
        if not self.ready.done():
            self.ready.set_result(None)

    def close(self) -> None:
        self._transport.close()


def _nobody(_count: int) -> None: ...


async def connect(address: str, login: Login) -> Line:
    host, _, port = address.rpartition(":")
    _, line = await asyncio.get_running_loop().create_connection(lambda: Line(login), host, int(port))
    async with asyncio.timeout(60):
        await line.ready
    return line
