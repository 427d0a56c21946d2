"""What must hold for every packet there can be: round trips, and indifference to how the bytes arrive."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from holdfast.broker.packets import Decoder, OutgoingMessage, Packet, Publish, Side, encode
from tests.broker.packet_strategies import CONVERSATIONS, MESSAGE, TOPIC, VARINT, VERSIONS, connects


def read(side: Side, version: int | None, chunks: list[bytes]) -> list[Packet]:
    decoder = Decoder(side, version)
    return [packet for chunk in chunks for packet in decoder.receive_data(chunk)]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(edges)]


@given(CONVERSATIONS, st.lists(st.integers(0, 5_000), max_size=8))
def test_decoding_gives_back_what_was_encoded_however_it_is_cut(conversation, places) -> None:
    version, side, sent = conversation
    data = b"".join(encode(packet, version) for packet in sent)
    assert read(side, version, cut(data, places)) == sent


@given(CONVERSATIONS)
def test_encoding_what_was_decoded_gives_the_same_bytes(conversation) -> None:
    version, side, sent = conversation
    for packet in sent:
        data = encode(packet, version)
        [received] = read(side, version, [data])
        assert encode(received, version) == data


@given(VERSIONS.flatmap(connects), st.lists(st.integers(0, 500), max_size=5))
def test_a_connect_comes_back_and_says_the_version(connect, places) -> None:
    decoder = Decoder()
    received = [
        packet
        for part in cut(encode(connect, connect.version), places)
        for packet in decoder.receive_data(part)
    ]
    assert received == [connect]
    assert decoder.version == connect.version


@given(VERSIONS, TOPIC, st.binary(max_size=50), MESSAGE, st.lists(VARINT, max_size=2).map(tuple), st.data())
def test_a_message_encoded_once_for_many_reads_like_one_encoded_for_each(
    version, topic, payload, properties, subscription_ids, data
) -> None:
    """Two deliveries of one OutgoingMessage, of any two shapes: the second must not see the first."""
    v5 = version == 5
    message = OutgoingMessage(topic, payload, properties)
    for _ in range(2):
        qos, retain, alias = (
            data.draw(st.integers(0, 2)),
            data.draw(st.booleans()),
            data.draw(st.integers(0, 9)),
        )
        dup = data.draw(st.booleans()) and qos > 0
        with_topic = not (v5 and alias and data.draw(st.booleans()))
        head, tail = message.parts(
            version,
            qos,
            retain,
            dup=dup,
            topic_alias=alias,
            with_topic=with_topic,
            subscription_ids=subscription_ids,
        )
        frame = head + b"\x00\x07" + tail if qos else head + tail
        assert read(Side.CLIENT, version, [frame]) == [
            Publish(
                topic if with_topic else "",
                payload,
                qos,
                retain,
                dup,
                7 if qos else 0,
                properties if v5 else None,
                alias if v5 else 0,
                subscription_ids if v5 else (),
            )
        ]
        if not (v5 and (alias or subscription_ids)):
            plain = encode(Publish(topic, payload, retain=retain, properties=properties), version)
            assert message.frame(version, retain) == plain
