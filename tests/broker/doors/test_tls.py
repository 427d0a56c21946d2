"""The TLS door: who is let in, by which name; and what a hostile handshake costs."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path

import pytest

from holdfast.broker.doors import server_context
from holdfast.errors import CannotStart
from holdfast.settings import Broker, Tls
from tests.broker.doors.certificates import Authority, Issued
from tests.broker.doors.conftest import Dial, OpenHouse, until


@pytest.fixture(scope="session")
def server(authority: Authority) -> Issued:
    return authority.issue("localhost")


def client_context(authority: Authority, shown: Issued | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.ca)
    if shown is not None:
        context.load_cert_chain(shown.cert, shown.key)
    return context


async def test_bytes_go_in_and_come_back_encrypted(
    open_house: OpenHouse, dial: Dial, authority: Authority, server: Issued
) -> None:
    house = await open_house("mqtts", tls=Tls(cert=server.cert, key=server.key))
    reader, writer = await dial(house.port("mqtts"), ssl=client_context(authority))
    guest = await house.guest()
    sent = bytes(range(256)) * 4_000
    writer.write(sent)
    assert await reader.readexactly(len(sent)) == sent
    assert (guest.transport.address, guest.transport.certificate_name) == ("127.0.0.1", None)
    assert writer.get_extra_info("ssl_object").version() in ("TLSv1.2", "TLSv1.3")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_both_versions_of_tls_end_properly(
    open_house: OpenHouse, dial: Dial, authority: Authority, server: Issued, version: ssl.TLSVersion
) -> None:
    house = await open_house("mqtts", tls=Tls(cert=server.cert, key=server.key))
    context = client_context(authority)
    context.minimum_version = context.maximum_version = version
    reader, _writer = await dial(house.port("mqtts"), ssl=context)
    guest = await house.guest()
    guest.transport.write(b"the last words")
    guest.transport.close()
    guest.transport.write(b"never said")
    assert await reader.read() == b"the last words"
    await guest.lost.wait()
    assert guest.told == ["lost"]


async def test_the_marks_of_a_slow_reader_are_true(
    open_house: OpenHouse, dial: Dial, authority: Authority, server: Issued
) -> None:
    house = await open_house(
        "mqtts", tls=Tls(cert=server.cert, key=server.key), broker=Broker(high_water=100_000)
    )
    reader, _writer = await dial(house.port("mqtts"), ssl=client_context(authority))
    guest = await house.guest()
    size = 20_000_000
    guest.transport.write(b"x" * size)
    await guest.paused.wait()
    assert guest.transport.unsent() > size / 2
    await reader.readexactly(size)
    await until(lambda: guest.told[-1] == "resume")


# -- client certificates


async def test_a_certificate_is_asked_for_and_its_name_is_known(
    open_house: OpenHouse, dial: Dial, authority: Authority, server: Issued
) -> None:
    tls = Tls(cert=server.cert, key=server.key, ca=authority.ca, require_client_cert=True)
    house = await open_house("mqtts", tls=tls)
    await dial(house.port("mqtts"), ssl=client_context(authority, authority.issue("sensor-7")))
    assert (await house.guest()).transport.certificate_name == "sensor-7"


async def test_without_being_required_a_certificate_may_be_missing_but_not_false(
    open_house: OpenHouse, dial: Dial, authority: Authority, server: Issued, tmp_path: Path
) -> None:
    house = await open_house("mqtts", tls=Tls(cert=server.cert, key=server.key, ca=authority.ca))
    await dial(house.port("mqtts"), ssl=client_context(authority))
    assert (await house.guest()).transport.certificate_name is None
    stranger = Authority(tmp_path, "somebody else").issue("sensor-7")
    assert await is_refused(dial, house.port("mqtts"), client_context(authority, stranger))
    assert house.came.empty()


async def is_refused(dial: Dial, port: int, context: ssl.SSLContext) -> bool:
    try:
        reader, _writer = await dial(port, ssl=context)
        async with asyncio.timeout(20):
            return await reader.read() == b""  # TLS 1.3 tells the client after its own handshake has ended
    except (ssl.SSLError, ConnectionError):
        return True


async def test_who_shows_none_or_an_expired_one_stays_outside_where_it_is_required(
    open_house: OpenHouse, dial: Dial, authority: Authority, server: Issued
) -> None:
    tls = Tls(cert=server.cert, key=server.key, ca=authority.ca, require_client_cert=True)
    house = await open_house("mqtts", tls=tls)
    assert await is_refused(dial, house.port("mqtts"), client_context(authority))
    expired = authority.issue("yesterday", days=-1)
    assert await is_refused(dial, house.port("mqtts"), client_context(authority, expired))
    assert house.came.empty()


async def test_a_revoked_certificate_stays_outside(
    open_house: OpenHouse, dial: Dial, authority: Authority, server: Issued
) -> None:
    good, stolen = authority.issue("good"), authority.issue("stolen")
    tls = Tls(
        cert=server.cert,
        key=server.key,
        ca=authority.ca,
        crl=authority.revoke(stolen),
        require_client_cert=True,
    )
    house = await open_house("mqtts", tls=tls)
    assert await is_refused(dial, house.port("mqtts"), client_context(authority, stolen))
    await dial(house.port("mqtts"), ssl=client_context(authority, good))
    assert (await house.guest()).transport.certificate_name == "good"


async def test_a_certificate_with_two_names_has_none(
    open_house: OpenHouse, dial: Dial, authority: Authority, server: Issued
) -> None:
    """Which of them the authority has looked at, nobody knows."""
    tls = Tls(cert=server.cert, key=server.key, ca=authority.ca, require_client_cert=True)
    house = await open_house("mqtts", tls=tls)
    await dial(house.port("mqtts"), ssl=client_context(authority, authority.issue("sensor-7", "admin")))
    assert (await house.guest()).transport.certificate_name is None


# -- hostile


async def test_a_handshake_that_stands_still_or_creeps_is_given_up(
    open_house: OpenHouse, dial: Dial, server: Issued
) -> None:
    house = await open_house(
        "mqtts", tls=Tls(cert=server.cert, key=server.key), broker=Broker(connect_timeout=0.5)
    )
    silent, other = await dial(house.port("mqtts"))
    creeping, writer = await dial(house.port("mqtts"))
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(400)
    started = time.monotonic()

    async def creep() -> None:
        for byte in hello:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.05)

    creeper = asyncio.create_task(creep())
    assert await silent.read() == b""
    await creeping.read()
    assert time.monotonic() - started < 5
    creeper.cancel()
    writer.close()
    other.close()
    await until(lambda: house.connections == 0)
    assert house.came.empty()


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00",
        b"\x16\x03\x01\xff\xff" + bytes(70_000),
        bytes(300_000),
    ],
    ids=["http", "mqtt", "huge record", "zeros"],
)
async def test_what_is_no_handshake_ends_the_connection(
    open_house: OpenHouse, dial: Dial, server: Issued, garbage: bytes
) -> None:
    house = await open_house("mqtts", tls=Tls(cert=server.cert, key=server.key))
    reader, writer = await dial(house.port("mqtts"))
    writer.write(garbage)
    try:
        answer = await reader.read()
    except ConnectionResetError:
        answer = b""
    assert answer == b"" or answer[0] == 0x15, "an alert at the most"
    assert house.came.empty()


async def test_a_broken_record_after_the_handshake_ends_the_connection(
    open_house: OpenHouse, dial: Dial, authority: Authority, server: Issued
) -> None:
    house = await open_house("mqtts", tls=Tls(cert=server.cert, key=server.key))
    reader, writer = await dial(house.port("mqtts"))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            writer.write(outgoing.read())
            incoming.write(await reader.read(65_536))
    writer.write(outgoing.read())
    guest = await house.guest()
    client.write(b"good")
    writer.write(outgoing.read())
    await until(lambda: guest.received == b"good")
    client.write(b"bad")
    record = bytearray(outgoing.read())
    record[-1] ^= 1
    writer.write(record)
    await guest.lost.wait()
    assert guest.received == b"good"


# -- what an operator may get wrong


def test_each_wrong_file_is_one_sentence(authority: Authority, server: Issued, tmp_path: Path) -> None:
    other = authority.issue("other")
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("no certificate")
    nowhere = str(tmp_path / "nowhere.pem")
    cases = [
        (Tls(), "tls.cert"),
        (Tls(cert=nowhere), "No such file"),
        (Tls(cert=server.cert, key=nowhere), "tls.key"),
        (Tls(cert=str(garbage), key=server.key), "tls.cert"),
        (Tls(cert=server.cert, key=other.key), "not that of the certificate"),
        (Tls(cert=server.cert, key=server.key, ca=str(garbage)), "tls.ca"),
        (Tls(cert=server.cert, key=server.key, require_client_cert=True), "tls.ca"),
        (Tls(cert=server.cert, key=server.key, cn_as_username=True), "tls.ca"),
        (Tls(cert=server.cert, key=server.key, ca=authority.ca, crl=nowhere), "tls.crl"),
    ]
    for tls, says in cases:
        with pytest.raises(CannotStart, match=says) as refused:
            server_context(tls, "mqtt")
        assert "\n" not in str(refused.value)


def test_a_key_that_asks_for_a_password_is_one_sentence(authority: Authority, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    issued = authority.issue("locked")
    key = serialization.load_pem_private_key(Path(issued.key).read_bytes(), None)
    locked = tmp_path / "locked.key"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"x"),
        )
    )
    with pytest.raises(CannotStart, match="encrypted"):
        server_context(Tls(cert=issued.cert, key=str(locked)), "mqtt")
