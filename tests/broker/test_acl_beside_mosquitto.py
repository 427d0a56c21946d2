"""The same ACL file, the same questions, to a real Mosquitto: it must decide as we do.

The witness answers a QoS 1 PUBLISH of 5.0 with 0x87 when it is not allowed. The documented differences are
left out of the questions.
"""

import getpass
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.broker.acl import Client, parse_acl
from holdfast.broker.packets import Connack, Connect, Decoder, Packet, Puback, Publish, Reason, Side, encode
from tests.conftest import missing

MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
FILE = """
topic write anon/w
topic read anon/r
topic deny anon/all/secret
topic anon/all/#
user ann
topic readwrite u/#
topic deny u/no/#
topic deny u/pat/x
topic write a topic with spaces
pattern write u/pat/%u
pattern deny u/only/%u
pattern readwrite c/%c/%u/#
pattern deny c/%c/%u/no
topic write after/pattern
user bob
topic write u/+/b
"""
TOPICS = """
anon/w anon/r anon/all/x anon/all anon/all/secret u/x u u/no u/no/x u/pat/x u/pat/ann u/pat/bob u/only/ann
u/only/bob c/c1/ann/x c/c1/ann/no c/c1/bob/x c/c1/ann c/c2/ann/x after/pattern u/1/b c//x c/c1//x %u c/%c/%u/x
"""


class Witness:
    """One connection to Mosquitto."""

    def __init__(self, port: int, client: Client) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._decoder = Decoder(Side.CLIENT, 5)
        self._socket.sendall(encode(Connect(client_id=client.client_id, username=client.username), 5))
        assert isinstance(self._receive(), Connack)

    def _receive(self) -> Packet:
        while True:
            data = self._socket.recv(4096)
            assert data, "the witness closed the connection"
            for packet in self._decoder.receive_data(data):
                return packet

    def may_publish(self, topic: str) -> bool:
        self._socket.sendall(encode(Publish(topic, b"x", qos=1, packet_id=1), 5))
        answer = self._receive()
        assert isinstance(answer, Puback)
        return answer.reason != Reason.NOT_AUTHORIZED

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    if MOSQUITTO is None:
        missing("Mosquitto")
    assert MOSQUITTO is not None
    folder: Path = tmp_path_factory.mktemp("mosquitto")
    (folder / "acl").write_text(FILE)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free: int = probe.getsockname()[1]
    config = folder / "conf"
    config.write_text(
        f"user {getpass.getuser()}\nlistener {free} 127.0.0.1\nallow_anonymous true\nacl_file {folder / 'acl'}\n"
    )
    process = subprocess.Popen(
        [MOSQUITTO, "-c", str(config)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if line.rstrip().endswith("running"):
                break
        else:
            raise AssertionError("mosquitto did not start")
        yield free
    finally:
        process.terminate()
        process.communicate(timeout=10)


@pytest.mark.parametrize(
    "client", [Client("c1"), Client("c1", "ann"), Client("c2", "bob"), Client("c1", "eve")]
)
def test_mosquitto_decides_as_we_do(port: int, client: Client) -> None:
    acl = parse_acl(FILE)
    witness = Witness(port, client)
    try:
        decided = {topic: witness.may_publish(topic) for topic in (*TOPICS.split(), "a topic with spaces")}
    finally:
        witness.close()
    assert decided == {topic: acl.may_publish(client, topic) for topic in decided}
