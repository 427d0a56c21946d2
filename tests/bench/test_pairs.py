"""Messages between pairs: the window, the pace, and what counts as done. Against an XMPP server of a few lines."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bench.load import pairs, websocket_chat, xmpp
from bench.load.login import Login
from bench.load.pairs import Pair
from bench.load.talk import Connect, Run, Talk

STREAM = b"<stream:stream><stream:features></stream:features>"
MESSAGE = re.compile(rb"<message to='(\w+)@bench' type='chat' id='(\d+)'><body>x+</body></message>")


class Switch:
    """Passes messages on, in pieces that cut tags in two, and acknowledges them when it was asked."""

    def __init__(self) -> None:
        self.writers: dict[str, asyncio.StreamWriter] = {}
        self.most_under_way = 0
        self.acknowledges = True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for asked, answer in (
            (b"version='1.0'>", STREAM),
            (b"</auth>", b"<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"),
            (b"version='1.0'>", STREAM),
            (b"</iq>", b"<iq type='result'></iq>"),
            (b"<presence/>", b"<enabled xmlns='urn:xmpp:sm:3'/>"),
        ):
            said = await reader.readuntil(asked)
            if asked == b"</auth>":
                self.writers["u" + str(len(self.writers))] = writer
            writer.write(answer)
        assert said.startswith(b"<enable")
        handled, read = 1, b""
        while piece := await reader.read(65_536):
            read += piece
            found = MESSAGE.findall(read)
            self.most_under_way = max(self.most_under_way, len(found))
            read = read[read.rfind(b">") + 1 :]
            for to, _number in found:
                handled += 1
                for half in (b"<message to='x'><bo", b"dy>x</body></message>"):
                    self.writers[to.decode()].write(half)
                    await asyncio.sleep(0)
            if self.acknowledges:
                writer.write(b"<r xmlns='urn:xmpp:sm:3'/><a xmlns='urn:xmpp:sm:3' h='%d'/>" % handled)


@asynccontextmanager
async def switch() -> AsyncIterator[tuple[Switch, str]]:
    made = Switch()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    try:
        yield made, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in made.writers.values():
            writer.close()


async def connected(address: str, lines: int) -> Talk:
    talk = Talk(xmpp.connect)
    for number in range(lines):  # one by one: the switch names them in the order in which they come
        said = await talk.answer(Connect(address, [Login(f"u{number}", "secret")]))
        assert said["lines"] == number + 1
    return talk


async def test_messages_go_round_with_no_more_than_the_window_under_way() -> None:
    async with switch() as (server, address):
        talk = await connected(address, 4)
        said = await talk.answer(Run(0.3, pairs=2, window=5))
    assert said["rate"] > 0
    assert said["done"] > 10
    assert 1 < server.most_under_way <= 5


async def test_at_a_pace_as_many_are_sent_as_were_due() -> None:
    async with switch() as (_server, address):
        talk = await connected(address, 4)
        said = await talk.answer(Run(0.5, pairs=2, per_second=200))
    assert said["done"] == 100


async def test_a_message_without_its_acknowledgement_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "GRACE_SECONDS", 0.1)
    async with switch() as (server, address):
        talk = await connected(address, 2)
        server.acknowledges = False
        with pytest.raises(TimeoutError):
            await talk.answer(Run(0.1, pairs=1, window=3))


async def test_a_login_that_is_refused_says_what_the_server_said() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"version='1.0'>")
        writer.write(b"<stream:error>go away</stream:error>")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        with pytest.raises(ConnectionError, match="go away"):
            await xmpp.connect(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", Login("u", "s"))


async def test_at_a_pace_a_sender_that_is_not_answered_waits_with_what_is_due() -> None:
    sent: list[int] = []
    pair = Pair(lambda first, count: sent.extend(range(first, first + count)))
    pair.run(window=0, end=0)
    for _ in range(pairs.MOST_UNDER_WAY + 5):
        pair.send_one(0.0)
    assert len(sent) == pairs.MOST_UNDER_WAY
    pair.delivered(pairs.MOST_UNDER_WAY)
    pair.saved(pairs.MOST_UNDER_WAY)
    assert not pair.quiet.is_set()
    pair.delivered(5)
    pair.saved(5)
    assert pair.quiet.is_set()
    assert len(pair.took) == len(sent) == pairs.MOST_UNDER_WAY + 5


async def test_what_was_due_early_and_done_late_took_long() -> None:
    sent: list[int] = []
    pair = Pair(lambda first, count: sent.extend(range(first, first + count)))
    pair.run(window=2, end=asyncio.get_running_loop().time() + 60)
    assert sent == [1, 2]
    pair.saved(2)
    assert sent == [1, 2]
    pair.delivered()
    assert sent == [1, 2, 3]
    assert len(pair.took) == 1


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_a_frame_of_any_size_is_read_back(size: int) -> None:
    frame = websocket_chat.masked(b"x" * size)
    head = len(frame) - size
    assert frame[1] & 0x80
    assert frame[head - 4 : head] == bytes(4)
    assert head == (6 if size < 126 else 8 if size < 65_536 else 14)
