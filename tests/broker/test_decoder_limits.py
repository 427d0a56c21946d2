"""Sizes and slowness: what is refused before it is buffered, and what a slow sender costs."""

import tracemalloc

import pytest

from holdfast.broker.packets import (
    Connack,
    Connect,
    Decoder,
    MessageProperties,
    OutgoingMessage,
    Pingreq,
    ProtocolError,
    Puback,
    Publish,
    Reason,
    Side,
    Suback,
    encode,
    encode_within,
    payload_fits_its_format,
)


def test_a_packet_that_is_too_large_is_refused_when_its_length_is_known() -> None:
    decoder = Decoder(version=5, max_packet_size=100)
    with pytest.raises(ProtocolError) as refusal:
        decoder.receive_data(b"\x30\xff\xff\xff\x7f")
    assert refusal.value.reason is Reason.PACKET_TOO_LARGE
    assert decoder.buffered == 0


@pytest.mark.parametrize(("size", "fits"), [(98, True), (99, False)])
def test_the_maximum_packet_size_counts_the_whole_packet(size: int, fits: bool) -> None:
    decoder = Decoder(version=4, max_packet_size=100)
    data = bytes((0x30, size)) + b"\x00\x01a" + bytes(size - 3)
    if fits:
        assert decoder.receive_data(data) == [Publish("a", bytes(size - 3))]
    else:
        with pytest.raises(ProtocolError):
            decoder.receive_data(data)


@pytest.mark.parametrize("first", [0x00, 0x11, 0x30, 0x47, 0xC0])
def test_a_first_byte_that_cannot_be_connect_is_refused_alone(first: int) -> None:
    with pytest.raises(ProtocolError):
        Decoder().receive_data(bytes((first,)))


@pytest.mark.parametrize("first", [0x00, 0x10, 0x36, 0x38, 0x41, 0x80, 0x90, 0xD0])
def test_a_wrong_first_byte_is_refused_before_its_packet_is_there(first: int) -> None:
    with pytest.raises(ProtocolError):
        Decoder(version=5).receive_data(bytes((first,)))


def test_a_packet_sent_a_byte_at_a_time_costs_its_own_size() -> None:
    body = b"\x00\x01a" + bytes(200_000)
    header = b"\x30" + bytes((len(body) & 0x7F | 0x80, len(body) >> 7 & 0x7F | 0x80, len(body) >> 14))
    decoder = Decoder(version=4)
    decoder.receive_data(header)
    tracemalloc.start()
    try:
        for place in range(0, len(body) - 1, 2):
            assert decoder.receive_data(body[place : place + 2]) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(body)
    [packet] = decoder.receive_data(body[-1:])
    assert packet == Publish("a", bytes(200_000))
    assert decoder.buffered == 0


def test_ten_thousand_subscriptions_in_one_packet_are_read() -> None:
    filters = [f"{number:05}/+/#" for number in range(10_000)]
    body = b"\x00\x01\x00" + b"".join(b"\x00\x09" + each.encode() + b"\x01" for each in filters)
    length = len(body)
    header = bytes((0x82, length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14))
    [packet] = Decoder(version=5).receive_data(header + body)
    assert [each.filter for each in packet.subscriptions] == filters


def test_nothing_is_read_after_an_error() -> None:
    decoder = Decoder(version=5)
    with pytest.raises(ProtocolError):
        decoder.receive_data(b"\x00")
    assert decoder.failed
    assert decoder.receive_data(b"\xc0\x00") == []


def test_connect_is_followed_by_packets_of_its_version_in_the_same_bytes() -> None:
    connect = Connect(version=4, client_id="c")
    publish = Publish("a", b"\x00is payload in 3.1.1")
    assert Decoder().receive_data(encode(connect, 4) + encode(publish, 4)) == [connect, publish]


def test_the_version_is_known_even_when_the_rest_of_connect_is_wrong() -> None:
    decoder = Decoder()
    with pytest.raises(ProtocolError):
        decoder.receive_data(bytes.fromhex("100e00044d5154540503000000000163"))
    assert decoder.version == 5


def test_3_1_may_send_subscribe_again_with_dup() -> None:
    data = bytes.fromhex("8a06 0001 0001 61 00")
    [packet] = Decoder(version=3).receive_data(data)
    assert packet.packet_id == 1


def test_a_padded_length_is_taken_from_3_1_1_only() -> None:
    assert Decoder(version=4).receive_data(b"\xc0\x80\x00") == [Pingreq()]
    assert Decoder().receive_data(bytes.fromhex("108d0000044d51545404000000000163")) == [
        Connect(version=4, client_id="c", clean_start=False)
    ]
    with pytest.raises(ProtocolError):
        Decoder(version=5).receive_data(b"\xc0\x80\x00")


def test_bytearrays_and_memoryviews_are_read_and_not_kept() -> None:
    data = bytearray(encode(Publish("a", b"payload"), 5))
    for given in (data, memoryview(data)):
        [packet] = Decoder(version=5).receive_data(given)
        assert type(packet.payload) is bytes
    half = Decoder(version=5)
    half.receive_data(memoryview(data)[:4])
    kept = bytes(data)
    data[:] = bytes(len(data))
    assert half.receive_data(kept[4:]) == [Publish("a", b"payload")]


def test_what_explains_an_answer_is_left_out_before_the_answer_is() -> None:
    explained = Puback(1, Reason.QUOTA_EXCEEDED, "because " * 20, (("k", "v"),))
    assert encode_within(explained, 5, None) == encode(explained, 5)
    assert encode_within(explained, 5, 100) == encode(Puback(1, Reason.QUOTA_EXCEEDED), 5)
    assert encode_within(Suback(1, (0,) * 200, "why"), 5, 100) is None


def test_a_message_is_never_made_smaller() -> None:
    properties = MessageProperties(user_properties=(("k", "v" * 100),))
    assert encode_within(Publish("a", b"", properties=properties), 5, 50) is None


def test_a_message_for_all_is_encoded_once() -> None:
    message = OutgoingMessage("a/b", b"x" * 100)
    assert message.frame(5) is message.frame(5)
    assert message.frame(3) is message.frame(4)
    assert message.parts(5, 1) is message.parts(5, 1)


def test_a_payload_is_checked_against_its_format_only_when_it_claims_one() -> None:
    assert payload_fits_its_format(b"\xff", None)
    assert payload_fits_its_format(b"\xff", MessageProperties(payload_format=0))
    assert payload_fits_its_format("ü".encode(), MessageProperties(payload_format=1))
    assert not payload_fits_its_format(b"\xff", MessageProperties(payload_format=1))


def test_a_string_that_the_wire_cannot_hold_is_not_encoded() -> None:
    with pytest.raises(ValueError, match="65535"):
        encode(Publish("a" * 65_536), 4)


def test_a_refusal_reads_as_the_nearest_code_of_3_1_1() -> None:
    for reason, code in ((Reason.NOT_AUTHORIZED, 5), (Reason.BANNED, 5), (Reason.SERVER_BUSY, 3)):
        assert encode(Connack(reason=reason), 4)[3] == code
    assert Decoder(Side.CLIENT, 4).receive_data(b"\x20\x02\x00\x05") == [
        Connack(reason=Reason.NOT_AUTHORIZED)
    ]
