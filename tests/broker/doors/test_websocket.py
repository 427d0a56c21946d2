"""The WebSocket door: subprotocol, path, pages; frames of every kind; and what a hostile client gets."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import time

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.typing import Subprotocol

from holdfast.broker.doors.websocket import Manners
from holdfast.settings import Broker, Http, Tls
from tests.broker.doors.certificates import Authority
from tests.broker.doors.conftest import Dial, House, OpenHouse, until

MQTT = Subprotocol("mqtt")


def at(house: House, path: str = "/mqtt", door: str = "mqtt_ws") -> str:
    scheme = "wss" if door == "mqtt_wss" else "ws"
    return f"{scheme}://127.0.0.1:{house.port(door)}{path}"


async def test_bytes_go_in_and_come_back_as_binary_messages(open_house: OpenHouse) -> None:
    house = await open_house("mqtt_ws")
    async with connect(at(house), subprotocols=[MQTT], compression=None) as client:
        assert client.subprotocol == "mqtt"
        await client.send(b"\x00\xff" * 1_000)
        assert await client.recv() == b"\x00\xff" * 1_000
        guest = await house.guest()
        assert (guest.transport.address, guest.transport.certificate_name) == ("127.0.0.1", None)
    await guest.lost.wait()
    assert guest.told == ["lost"]


async def test_a_packet_may_cross_frames_and_messages_and_pings(open_house: OpenHouse) -> None:
    house = await open_house("mqtt_ws")
    async with connect(at(house), subprotocols=[MQTT]) as client:
        guest = await house.guest()
        guest.answers = False
        await client.send([b"a", b"b", b"", b"c"])
        await (await client.ping(b"are you there?"))
        await client.send(b"d")
        await until(lambda: guest.received == b"abcd")


async def test_the_request_of_every_browser_is_understood(open_house: OpenHouse, dial: Dial) -> None:
    """One of them keeps alive and upgrades in one header; some ask for several subprotocols."""
    house = await open_house("mqtt_ws")
    _reader, writer = await dial(house.port("mqtt_ws"))
    reader = _reader
    writer.write(request(Connection="keep-alive, Upgrade", Sec_WebSocket_Protocol="mqttv3.1, mqtt"))
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ")
    assert b"Sec-WebSocket-Protocol: mqtt\r\n" in head
    await house.guest()


def request(path: str = "/mqtt", method: str = "GET", **headers: str) -> bytes:
    found = {
        "Host": "127.0.0.1",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec_WebSocket_Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Protocol": "mqtt",
        **headers,
    }
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in found.items() if value]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (request("/"), 404),
        (request("/mqtt/more"), 404),
        (request("//mqtt"), 404),
        (request(method="POST"), 405),
        (request(Upgrade=""), 426),
        (request(Connection="close"), 426),
        (request(Sec_WebSocket_Key=""), 400),
        (request(Sec_WebSocket_Key="short"), 400),
        (request(Sec_WebSocket_Version="8"), 400),
        (request(Sec_WebSocket_Protocol=""), 400),
        (request(Sec_WebSocket_Protocol="mqttv3.1"), 400),
        (request(Sec_WebSocket_Protocol="chat"), 400),
        (request(X_Long="x" * 20_000), 431),
        (request("/mqtt" + "x" * 20_000), 414),
        (request().replace(b"HTTP/1.1", b"HTTP/1.0", 1), 505),
    ],
)
async def test_a_wrong_request_is_answered_and_closed(
    open_house: OpenHouse, dial: Dial, asked: bytes, status: int
) -> None:
    house = await open_house("mqtt_ws")
    reader, writer = await dial(house.port("mqtt_ws"))
    writer.write(asked)
    assert (await reader.read()).startswith(f"HTTP/1.1 {status} ".encode())
    assert house.came.empty()


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00\r\n\r\n",
        b"\r\n\r\n\r\n",
        bytes(200_000),
        b"GET /mqtt HTTP/1.1\r\n" + b"X: y\r\n" * 100_000,
        b"\xff" * 10 + b"\r\n\r\n",
    ],
    ids=["mqtt", "empty lines", "zeros", "headers without end", "no text"],
)
async def test_what_is_no_request_ends_the_connection(
    open_house: OpenHouse, dial: Dial, garbage: bytes
) -> None:
    house = await open_house("mqtt_ws")
    reader, writer = await dial(house.port("mqtt_ws"))
    writer.write(garbage)
    answer = await reader.read()
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert house.came.empty()
    writer.close()
    await until(lambda: house.connections == 0)


async def test_a_request_that_stands_still_or_creeps_is_given_up(open_house: OpenHouse, dial: Dial) -> None:
    house = await open_house("mqtt_ws", broker=Broker(connect_timeout=0.5))
    silent, other = await dial(house.port("mqtt_ws"))
    creeping, writer = await dial(house.port("mqtt_ws"))
    started = time.monotonic()

    async def creep() -> None:
        for byte in request():
            writer.write(bytes([byte]))
            await asyncio.sleep(0.05)

    creeper = asyncio.create_task(creep())
    assert await silent.read() == b""
    assert await creeping.read() == b""
    assert time.monotonic() - started < 5
    creeper.cancel()
    writer.close()
    other.close()
    await until(lambda: house.connections == 0)


async def test_a_text_frame_closes(open_house: OpenHouse) -> None:
    house = await open_house("mqtt_ws")
    async with connect(at(house), subprotocols=[MQTT]) as client:
        guest = await house.guest()
        await client.send("text")
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(client.recv(), 20)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1003
    await guest.lost.wait()
    assert not guest.received


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (Frame(Opcode.BINARY, b"unmasked").serialize(mask=False), 1002),
        (b"\xc2\x80\x00\x00\x00\x00", 1002),
        (b"\x83\x80\x00\x00\x00\x00", 1002),
        (b"\x80\x80\x00\x00\x00\x00", 1002),
        (b"\x09\x80\x00\x00\x00\x00", 1002),
        (b"\x89\xfe\x00\x80" + bytes(4 + 128), 1002),
        (b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff" + bytes(4), 1009),
        (b"\x82\xff\x00\x00\x00\x00\x40\x00\x00\x00" + bytes(4), 1009),
    ],
    ids=[
        "unmasked",
        "reserved bit",
        "reserved opcode",
        "continuation of nothing",
        "ping in fragments",
        "long ping",
        "largest length",
        "1 GiB",
    ],
)
async def test_a_frame_against_the_rules_closes_with_its_code(
    open_house: OpenHouse, dial: Dial, frames: bytes, code: int
) -> None:
    house = await open_house("mqtt_ws")
    reader, writer = await dial(house.port("mqtt_ws"))
    writer.write(request())
    await reader.readuntil(b"\r\n\r\n")
    guest = await house.guest()
    writer.write(frames)
    said = await reader.read()
    assert said[:1] == b"\x88"
    assert int.from_bytes(said[2:4], "big") == code
    await guest.lost.wait()
    assert not guest.received


async def test_fragments_without_end_are_refused(open_house: OpenHouse) -> None:
    house = await open_house("mqtt_ws")

    async def for_ever() -> object:
        while True:
            yield b"x" * 60_000

    async with connect(at(house), subprotocols=[MQTT]) as client:
        guest = await house.guest()
        guest.answers = False
        with pytest.raises(ConnectionClosed) as closed:
            await client.send(for_ever())  # type: ignore[arg-type]
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


async def test_pings_that_are_never_read_do_not_fill_our_memory(open_house: OpenHouse, dial: Dial) -> None:
    house = await open_house("mqtt_ws", broker=Broker(high_water=50_000))
    reader, writer = await dial(house.port("mqtt_ws"))
    writer.write(request())
    await reader.readuntil(b"\r\n\r\n")
    guest = await house.guest()
    ping = Frame(Opcode.PING, b"x" * 125).serialize(mask=True) * 1_000
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        if writer.transport.get_write_buffer_size() < 1_000_000:
            writer.write(ping)
        await asyncio.sleep(0)
    assert guest.told[0] == "pause"
    assert guest.transport.unsent() < 2_000_000


async def test_the_peer_closes_with_a_close_frame_after_its_last_words(open_house: OpenHouse) -> None:
    house = await open_house("mqtt_ws")
    async with connect(at(house), subprotocols=[MQTT]) as client:
        guest = await house.guest()
        guest.transport.write(b"the last words")
        guest.transport.close()
        guest.transport.write(b"never said")
        assert await client.recv() == b"the last words"
        with pytest.raises(ConnectionClosed) as closed:
            await client.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1000
    await guest.lost.wait()
    assert guest.told == ["lost"]


async def test_over_tls_too(open_house: OpenHouse, authority: Authority) -> None:
    server = authority.issue("localhost")
    tls = Tls(cert=server.cert, key=server.key, ca=authority.ca)
    house = await open_house("mqtt_wss", tls=tls)
    context = ssl.create_default_context(cafile=authority.ca)
    shown = authority.issue("browser")
    context.load_cert_chain(shown.cert, shown.key)
    async with connect(at(house, door="mqtt_wss"), subprotocols=[MQTT], ssl=context) as client:
        await client.send(b"x" * 300_000)
        assert await client.recv() == b"x" * 300_000
        assert (await house.guest()).transport.certificate_name == "browser"


# -- pages


@pytest.mark.parametrize(
    ("broker", "origin", "enters"),
    [
        (Broker(), "https://anywhere.example", True),
        (Broker(origins=("https://app.example/",)), "https://APP.example", True),
        (Broker(origins=("https://app.example",)), "https://evil.example", False),
        (Broker(origins=("https://app.example",)), "null", False),
        (Broker(origins=("https://app.example",)), None, True),
        (Broker(anonymous=True), "https://evil.example", False),
        (Broker(anonymous=True), "null", False),
        (Broker(anonymous=True), "http://[", False),
        (Broker(anonymous=True), "http://127.0.0.1:5173", True),
        (Broker(anonymous=True), None, True),
        (Broker(anonymous=True, origins=("https://app.example",)), "https://app.example", True),
    ],
)
async def test_which_pages_may_connect(
    open_house: OpenHouse, broker: Broker, origin: str | None, enters: bool
) -> None:
    house = await open_house("mqtt_ws", broker=broker)
    headers = {} if origin is None else {"Origin": origin}
    try:
        async with connect(at(house), subprotocols=[MQTT], additional_headers=headers):
            assert enters
    except InvalidStatus as refused:
        assert (enters, refused.response.status_code) == (False, 403)  # noqa: PT017 - it may also not be raised


def test_the_host_is_compared_without_its_port() -> None:
    manners = Manners(timeout=1, max_frame=1, own_pages_only=True)
    assert manners.allow("http://Broker.local:8000", "broker.local:8083")
    assert manners.allow("http://[::1]:8000", "[::1]:8083")
    assert not manners.allow("http://broker.local", None)
    assert not manners.allow("http://broker.local.evil.example", "broker.local")


@pytest.mark.parametrize(("trusts", "address"), [(True, "203.0.113.9"), (False, "127.0.0.1")])
async def test_a_proxys_word_counts_only_where_it_is_trusted(
    open_house: OpenHouse, trusts: bool, address: str
) -> None:
    house = await open_house("mqtt_ws", http=Http(trust_proxy=trusts))
    headers = {"X-Forwarded-For": "198.51.100.1, 203.0.113.9"}
    async with connect(at(house), subprotocols=[MQTT], additional_headers=headers):
        assert (await house.guest()).transport.address == address
