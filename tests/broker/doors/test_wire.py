"""The TCP door: counted from the first moment, true write marks, and an end that lets the last words arrive."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress

import pytest

from holdfast.broker.doors import wire as wires
from holdfast.errors import CannotStart
from holdfast.settings import Broker, Listen, Settings
from tests.broker.doors.conftest import Dial, House, OpenHouse, until


async def is_cut(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read(1) == b""
    except ConnectionResetError:
        return True


async def test_bytes_go_in_and_come_back(open_house: OpenHouse, dial: Dial) -> None:
    house = await open_house()
    reader, writer = await dial(house.port())
    guest = await house.guest()
    assert guest.transport.address == "127.0.0.1"
    assert guest.transport.certificate_name is None
    writer.write(b"a message" * 10_000)
    assert await reader.readexactly(90_000) == b"a message" * 10_000
    writer.close()
    await guest.lost.wait()
    assert guest.told == ["lost"]


async def test_what_the_network_does_not_take_is_counted_and_told(open_house: OpenHouse, dial: Dial) -> None:
    house = await open_house(broker=Broker(high_water=100_000))
    reader, _writer = await dial(house.port())
    guest = await house.guest()
    size = 20_000_000
    guest.transport.write(b"x" * size)
    await guest.paused.wait()
    assert size / 2 < guest.transport.unsent() <= size
    await reader.readexactly(size)
    await until(lambda: guest.told[-1] == "resume")
    assert guest.transport.unsent() < 100_000


async def test_who_does_not_read_is_not_read(open_house: OpenHouse, dial: Dial) -> None:
    """An echo that is never read would otherwise grow as long as its client writes."""
    house = await open_house(broker=Broker(high_water=100_000))
    with socket.create_connection(("127.0.0.1", house.port())) as client:
        client.setblocking(False)
        guest = await house.guest()
        block, deadline = b"x" * 100_000, time.monotonic() + 1.0
        while time.monotonic() < deadline:
            try:
                client.send(block)
            except BlockingIOError:
                await asyncio.sleep(0.02)
            await asyncio.sleep(0)
        assert guest.told == ["pause"]
        assert guest.transport.unsent() < 1_000_000


async def test_a_pause_of_the_peer_outlasts_a_slow_reader(open_house: OpenHouse, dial: Dial) -> None:
    house = await open_house(broker=Broker(high_water=100_000))
    reader, writer = await dial(house.port())
    guest = await house.guest()
    guest.transport.pause_reading()
    guest.transport.write(b"x" * 20_000_000)
    await guest.paused.wait()
    writer.write(b"later")
    await reader.readexactly(20_000_000)
    await until(lambda: "resume" in guest.told)
    await asyncio.sleep(0.1)
    assert not guest.received, "the peer still wants no more"
    guest.transport.resume_reading()
    assert await reader.readexactly(5) == b"later"


async def test_the_last_words_arrive_though_the_client_goes_on_writing(
    open_house: OpenHouse, dial: Dial
) -> None:
    house = await open_house()
    reader, writer = await dial(house.port())
    guest = await house.guest()
    guest.answers = False
    writer.write(b"x" * 3_000_000)
    guest.transport.write(b"go away")
    guest.transport.close()
    guest.transport.write(b"never said")
    assert await reader.read() == b"go away"
    await guest.lost.wait()
    assert not guest.received, "after close nothing is handed up any more"


async def test_who_does_not_leave_is_thrown_out(
    open_house: OpenHouse, dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wires, "LINGER", 0.2)
    house = await open_house()
    await dial(house.port())
    guest = await house.guest()
    guest.transport.close()
    await guest.lost.wait()
    await until(lambda: house.connections == 0)
    assert guest.told == ["lost"]


async def test_a_client_that_ends_but_does_not_read_is_not_waited_for(
    open_house: OpenHouse, dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wires, "LINGER", 0.2)
    house = await open_house(broker=Broker(high_water=100_000_000))
    with socket.create_connection(("127.0.0.1", house.port())) as client:
        guest = await house.guest()
        guest.transport.write(b"x" * 20_000_000)
        client.shutdown(socket.SHUT_WR)
        await guest.lost.wait()
        await until(lambda: house.connections == 0)


async def test_an_abort_is_at_once(open_house: OpenHouse, dial: Dial) -> None:
    house = await open_house()
    reader, _writer = await dial(house.port())
    guest = await house.guest()
    guest.transport.write(b"x" * 20_000_000)
    guest.transport.abort()
    await guest.lost.wait()
    received = 0
    with suppress(ConnectionResetError):
        while data := await reader.read(1_000_000):
            received += len(data)
    assert received < 20_000_000
    assert guest.told[-1] == "lost"


async def test_everything_may_be_asked_of_a_connection_that_is_gone(
    open_house: OpenHouse, dial: Dial
) -> None:
    house = await open_house()
    _reader, writer = await dial(house.port())
    guest = await house.guest()
    writer.transport.abort()
    await guest.lost.wait()
    for ask in ("pause_reading", "resume_reading", "close", "abort", "close", "unsent"):
        getattr(guest.transport, ask)()
    guest.transport.write(b"nobody hears this")
    await asyncio.sleep(0.05)
    assert guest.told == ["lost"]


# -- how many


async def test_connections_are_limited_before_they_say_anything(open_house: OpenHouse, dial: Dial) -> None:
    house = await open_house(broker=Broker(max_connections=10))
    taken = [await dial(house.port()) for _ in range(100)]
    here = 0
    for reader, _writer in taken:
        try:
            async with asyncio.timeout(0.02):
                assert await is_cut(reader)
        except TimeoutError:
            here += 1
    assert here == 10 + 1 + 64, "a few more may come, to be told with a CONNACK why they must go"
    assert b"holdfast_mqtt_turned_away_total 25.0" in house.metrics.exposition()


async def test_connections_of_one_address_are_limited_and_a_place_that_is_left_is_free(
    open_house: OpenHouse,
    dial: Dial,
) -> None:
    house = await open_house(broker=Broker(max_connections_per_address=2))
    taken = [await dial(house.port()) for _ in range(2)]
    first = await house.guest()
    reader, writer = await dial(house.port())
    assert await is_cut(reader)
    writer.close()
    await dial(house.port(), local_addr=("127.0.0.2", 0))
    await house.guest()
    assert (await house.guest()).transport.address == "127.0.0.2"
    taken[0][1].close()
    await first.lost.wait()
    await until(lambda: house.connections == 2)
    await dial(house.port())
    await house.guest()


# -- opening and closing


def test_a_port_in_use_is_one_sentence() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        house = House(Settings(listen=Listen(mqtt=address, mqtt_ws="")))
        with pytest.raises(CannotStart, match="is in use"):
            house.doors.bind()


async def test_closing_takes_nothing_new_and_leaves_nobody_behind(open_house: OpenHouse, dial: Dial) -> None:
    house = await open_house()
    polite = await dial(house.port())
    told = await house.guest()
    await dial(house.port())
    untold = await house.guest()
    house.doors.shut()
    with pytest.raises(ConnectionRefusedError):
        await dial(house.port())
    told.transport.write(b"bye")
    told.transport.close()
    before = time.monotonic()
    await house.doors.close()
    assert time.monotonic() - before < 3
    assert await polite[0].read() == b"bye"
    assert (told.told, untold.told) == (["lost"], ["lost"])
