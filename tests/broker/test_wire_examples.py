"""Every row of the wire table, through the codec, whole and in pieces."""

from typing import get_args

import pytest

from holdfast.broker.packets import Decoder, Packet, ProtocolError, Publish, Side, encode
from tests.broker.wire_bad import BAD, FIRST
from tests.broker.wire_examples import Bad, Good
from tests.broker.wire_good import GOOD


def reader_of(row: Good | Bad) -> Decoder:
    """A decoder where the row may come: on a server, a CONNECT only as the first packet."""
    is_first = row.reader is Side.SERVER and row.data[0] == 0x10 and isinstance(row, Good)
    return Decoder(row.reader, None if is_first else row.version)


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row.label)
def test_the_bytes_are_the_packet(row: Good) -> None:
    assert reader_of(row).receive_data(row.data) == [row.packet]


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row.label)
def test_the_packet_is_the_bytes(row: Good) -> None:
    assert encode(row.packet, row.version) == row.data


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row.label)
def test_a_packet_that_comes_byte_by_byte_is_the_same(row: Good) -> None:
    decoder = reader_of(row)
    packets: list[Packet] = []
    for place in range(len(row.data)):
        assert packets == []
        packets += decoder.receive_data(row.data[place : place + 1])
    assert packets == [row.packet]
    assert decoder.buffered == 0


@pytest.mark.parametrize("row", [row for row in GOOD if row.data[0] != 0x10], ids=lambda row: row.label)
def test_a_packet_cut_short_by_its_length_is_refused_or_another_packet(row: Good) -> None:
    """The remaining length decides where a packet ends: a shorter one never reads the bytes behind it."""
    if row.data[1] > 0x7F:
        return
    for size in range(row.data[1]):
        decoder = reader_of(row)
        try:
            packets = decoder.receive_data(bytes((row.data[0], size)) + row.data[2 : 2 + size])
        except ProtocolError:
            continue
        assert len(packets) == 1
        assert packets != [row.packet]


@pytest.mark.parametrize("row", BAD, ids=lambda row: row.label)
def test_wrong_bytes_are_refused_with_the_reason_and_the_clause(row: Bad) -> None:
    with pytest.raises(ProtocolError) as refusal:
        reader_of(row).receive_data(row.data)
    assert (refusal.value.reason, refusal.value.clause) == (row.reason, row.clause)


@pytest.mark.parametrize("row", FIRST, ids=lambda row: row.label)
def test_a_wrong_first_packet_is_refused_with_the_reason_and_the_clause(row: Bad) -> None:
    with pytest.raises(ProtocolError) as refusal:
        Decoder().receive_data(row.data)
    assert (refusal.value.reason, refusal.value.clause) == (row.reason, row.clause)


@pytest.mark.parametrize("row", BAD, ids=lambda row: row.label)
def test_what_came_before_the_wrong_bytes_is_handed_over(row: Bad) -> None:
    before = Publish("before", b"it", qos=1, packet_id=1)
    decoder = Decoder(row.reader, row.version)
    with pytest.raises(ProtocolError) as refusal:
        decoder.receive_data(encode(before, row.version) + row.data)
    assert refusal.value.packets == [before]
    assert decoder.receive_data(encode(before, row.version)) == []


def test_every_packet_of_every_version_is_in_the_table() -> None:
    rows = {(type(row.packet).__name__, row.version) for row in GOOD}
    always = {kind.__name__ for kind in get_args(Packet)} - {"Auth"}
    assert rows == {(name, version) for name in always for version in (3, 4, 5)} | {("Auth", 5)}
