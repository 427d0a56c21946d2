"""`holdfast broker` as its operator meets it: its options, its files, its signals; looking at it, running and stopped."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.broker.packets import Reason
from holdfast.broker.passwords import PasswordFile
from tests.acceptance.serving import Ended, holdfast, quick_server
from tests.broker.client import Client
from tests.broker.doors.certificates import Authority
from tests.faults.process import Server

BROKER = (sys.executable, "-m", "holdfast", "broker")

Make = Callable[..., Server]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Brokers on one folder, that are gone when the test is."""
    made: list[Server] = []

    def broker(*options: str | Path) -> Server:
        server = Server(tmp_path / "data", *map(str, options), command=BROKER, door="--mqtt")
        made.append(server)
        return server

    yield broker
    for server in made:
        server.end()


async def asks(*arguments: str | Path) -> Ended:
    return await asyncio.to_thread(holdfast, "broker", *arguments)


async def told(*arguments: str | Path) -> Any:
    ended = await asks(*arguments, "--json")
    assert ended.code == 0, ended.err
    return msgspec.json.decode(ended.out)


# -- its life


async def test_it_starts_serves_and_stops_and_keeps_what_lasts(make: Make) -> None:
    broker = make("--anonymous")
    doors = await broker.start()
    assert set(doors) == {"mqtt", "mqtt_ws"}
    assert f"holdfast: mqtt at {doors['mqtt']}" in broker.last_words().splitlines()
    client = await Client.connected(doors["mqtt"], "lasting", clean=False, session_expiry=3600)
    await client.subscribed("a/#", qos=1)
    broker.terminate()
    await client.expect_end(Reason.SERVER_SHUTTING_DOWN)
    assert await broker.gone() == 0
    doors = await broker.start()
    publisher = await Client.connected(doors["mqtt"], "publisher", 4)
    assert await publisher.publish("a/b", b"x", 1) == 0
    broker.kill()
    doors = await broker.start()
    again = await Client.connected(doors["mqtt"], "lasting", clean=False, present=True, session_expiry=3600)
    await again.receive("a/b", b"x", 1)
    for one in (client, publisher, again):
        one.drop()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "--anonymous"),
        (["--anonymous", "--acl-file", "/nonexistent"], "cannot read /nonexistent"),
        (["--anonymous", "--mqtts", "127.0.0.1:0", "--tls-cert", "/nonexistent"], "/nonexistent"),
        (["--anonymous", "--max-qos", "3"], "broker.max_qos"),
    ],
)
async def test_what_keeps_it_from_starting_is_one_sentence(
    options: list[str], says: str, tmp_path: Path
) -> None:
    ended = await asks("--data", tmp_path / "data", *options)
    assert ended.code == 2
    (line,) = ended.err.splitlines()
    assert line.startswith("holdfast: ")
    assert says in line
    assert not (tmp_path / "data" / "holdfast.db").exists()


async def test_a_port_or_a_folder_in_use_is_one_sentence(make: Make, tmp_path: Path) -> None:
    broker = make("--anonymous")
    doors = await broker.start()
    taken = await asks("--anonymous", "--data", tmp_path / "other", "--mqtt", doors["mqtt"])
    assert (taken.code, "is in use" in taken.err) == (2, True)
    second = await asks("--anonymous", "--data", broker.folder)
    assert (second.code, f"process {broker.pid}" in second.err) == (2, True)


# -- its options


async def test_each_option_does_what_it_says(make: Make) -> None:
    broker = make(
        *("--anonymous", "--protocol-versions", "4,5", "--server-keepalive", "77", "--receive-maximum", "9"),
        *("--max-packet-size", "2000", "--max-payload", "1000", "--max-qos", "1", "--no-retain"),
        *("--no-empty-client-id", "--topic-alias-max", "3", "--max-inflight", "2", "--max-connections", "3"),
    )
    doors = await broker.start()
    client = await Client.connected(doors["mqtt"], "c1")
    connack = client.connack
    assert (connack.server_keep_alive, connack.receive_maximum, connack.maximum_packet_size) == (77, 9, 2_000)
    assert (connack.maximum_qos, connack.retain_available, connack.topic_alias_maximum) == (1, False, 3)
    assert await client.publish("a", b"x" * 1_001, 1) >= 0x80
    old = await Client.open(doors["mqtt"], 3)
    assert (await old.connect("old")).reason == Reason.UNSUPPORTED_PROTOCOL_VERSION
    nameless = await Client.open(doors["mqtt"])
    assert (await nameless.connect("")).reason == Reason.CLIENT_ID_NOT_VALID
    for one in (client, old, nameless):
        one.drop()


async def test_files_are_read_again_at_a_sighup_and_a_mistake_in_one_changes_nothing(
    make: Make, tmp_path: Path
) -> None:
    passwords, rules = tmp_path / "passwords", tmp_path / "acl"
    write(passwords, PasswordFile().with_user("alice", b"one").render())
    write(rules, "user alice\ntopic a/#\n")
    broker = make("--password-file", passwords, "--acl-file", rules)
    doors = await broker.start()
    client = await Client.connected(doors["mqtt"], "c1", username="alice", password=b"one")
    assert await client.subscribe("a/#", "b/#", qos=1) == (1, Reason.NOT_AUTHORIZED)
    write(passwords, PasswordFile().with_user("alice", b"two").render())
    write(rules, "user alice\ntopic b/#\n")
    await hangs_up(broker, "files_read_again")
    assert await client.subscribe("b/#", qos=1) == (1,)
    write(passwords, "alice:plain\n")
    await hangs_up(broker, "files_not_read_again")
    late = await Client.open(doors["mqtt"])
    assert (await late.connect("c2", username="alice", password=b"one")).reason
    right = await Client.connected(doors["mqtt"], "c3", username="alice", password=b"two")
    for one in (client, late, right):
        one.drop()


def write(file: Path, text: str) -> None:
    file.write_text(text)


async def hangs_up(broker: Server, event: str) -> None:
    broker.terminate(signal.SIGHUP)
    async with asyncio.timeout(20):
        while event not in broker.last_words():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_a_certificate_is_a_user_name_and_its_holder_may_what_the_file_says(
    make: Make, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, "the authority")
    server, sensor = authority.issue("localhost"), authority.issue("sensor-7")
    rules = tmp_path / "acl"
    write(rules, "pattern up/%u/#\n")
    broker = make(
        *("--mqtts", "127.0.0.1:0", "--tls-cert", server.cert, "--tls-key", server.key),
        *("--tls-ca", authority.ca, "--tls-crl", authority.revoke(authority.issue("stolen"))),
        *("--tls-require-client-cert", "--tls-cn-as-username", "--acl-file", rules),
    )
    doors = await broker.start()
    context = ssl.create_default_context(cafile=authority.ca)
    context.load_cert_chain(sensor.cert, sensor.key)
    host, _, port = doors["mqtts"].rpartition(":")
    assert host == "127.0.0.1"
    client = await Client.connected(f"localhost:{port}", "c1", tls=context)
    assert await client.subscribe("up/sensor-7/#", "up/sensor-8/#", qos=1) == (1, Reason.NOT_AUTHORIZED)
    (session,) = await told("sessions", "--data", broker.folder)
    assert session["user"] == "sensor-7"
    client.drop()


# -- looking at it


async def with_a_session(address: str, name: str, **fields: Any) -> None:
    """Away, with a subscription, two messages that wait, and one of them retained."""
    client = await Client.connected(address, name, clean=False, session_expiry=3600, **fields)
    await client.subscribed("a/+", qos=1)
    await client.leave(session_expiry=3600)
    publisher = await Client.connected(address, "publisher", **fields)
    await publisher.publish("a/1", b"payload", 1, retain=True)
    await publisher.publish("a/2", b"payload", 1)
    await publisher.leave()
    for one in (client, publisher):
        one.drop()


async def test_a_broker_is_looked_at_while_it_runs_and_when_it_is_stopped(make: Make) -> None:
    broker = make("--anonymous", "--set", "broker.sys_interval=0")
    doors = await broker.start()
    await with_a_session(doors["mqtt"], "here and away")
    here = await Client.connected(doors["mqtt"], "here")
    data = ("--data", broker.folder)
    found = await told("sessions", *data)
    assert [(one["client_id"], one["connected"], one["queued"]) for one in found] == [
        ("here", True, 0),
        ("here and away", False, 2),
    ]
    shown = (await asks("session", "here and away", *data)).out
    assert all(word in shown for word in ("here and away", "away since", "queued", "a/+"))
    assert (await asks("kick", "here", *data)).code == 0
    await here.expect_end(Reason.ADMINISTRATIVE_ACTION)
    running = await everything(data)
    await logs(broker, "client_connected", client="here")
    await logs(broker, "client_disconnected", client="here", reason="administrative_action")
    await logs(broker, "client_disconnected", client="publisher", reason="goodbye")
    lost = await Client.connected(doors["mqtt"], "lost")
    lost.drop()
    await logs(broker, "client_disconnected", client="lost", reason="connection lost")
    broker.terminate()
    assert await broker.gone() == 0
    assert await everything(data) == running
    refused = await asks("delete-session", "here and away", *data)
    assert (refused.code, "no server has this data folder" in refused.err) == (1, True)
    doors = await broker.start()
    assert (await asks("delete-session", "here and away", *data)).code == 0
    assert (await asks("clear-retained", "a/1", *data)).code == 0
    assert await told("retained", *data) == []
    unknown = await asks("session", "here and away", *data)
    assert (unknown.code, unknown.err.strip()) == (1, "holdfast: there is no session of this client id")


async def logs(broker: Server, event: str, **fields: str) -> None:
    """Until there is a line with all of this."""
    wanted = {"event": event, **fields}.items()
    async with asyncio.timeout(20):
        while True:
            lines = [line for line in broker.last_words().splitlines() if line.startswith("{")]
            if any(
                wanted <= {name: str(value) for name, value in one.items()}.items()
                for one in map(parsed, lines)
            ):
                return
            await asyncio.sleep(0.02)


def parsed(line: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(line, type=dict[str, object])
    except msgspec.DecodeError:
        return {}  # the first line that is shown may be cut


async def everything(data: tuple[str, Path]) -> list[Any]:
    return [
        await told("session", "here and away", *data),
        await told("queue", "here and away", *data),
    ]


async def test_serves_broker_is_looked_at_with_an_administrators_token(tmp_path: Path) -> None:
    server = quick_server(tmp_path / "data")
    try:
        doors = await server.start()
        data = ("--data", server.folder)
        added = await asyncio.to_thread(
            holdfast, "user", "add", "root", "--admin", *data, stdin="correct horse\n"
        )
        assert added.code == 0, added.err
        token = (await asyncio.to_thread(holdfast, "token", "root", *data)).out.strip()
        client = await Client.connected(doors["mqtt"], "a/ü&b", username="root", password=token.encode())
        over_http = ("--url", f"http://{doors['http']}", "--token", token)
        assert [one["client_id"] for one in await told("sessions", *over_http)] == ["a/ü&b"]
        assert await told("sessions", *over_http) == await told("sessions", *data)
        assert (await told("session", "a/ü&b", *over_http))["connected"] is True
        assert (await asks("kick", "a/ü&b", *over_http)).code == 0
        await client.expect_end(Reason.ADMINISTRATIVE_ACTION)
        for wrong, says in ((token[:-3], "token is not valid"), ("", "Log in first")):
            refused = await asks("sessions", "--url", f"http://{doors['http']}", "--token", wrong)
            assert (refused.code, says in refused.err) == (1, True), refused.err
    finally:
        server.end()


async def test_a_server_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    for arguments, code in (
        (("--url", url, "--token", "x"), 1),
        (("--data", tmp_path / "nowhere"), 2),
    ):
        ended = await asks("sessions", *arguments)
        assert ended.code == code
        assert len(ended.err.splitlines()) == 1
        assert ended.err.startswith("holdfast: ")
    assert not (tmp_path / "nowhere").exists()
