"""The MQTT codec: bytes in, packets out, and back; 3.1, 3.1.1 and 5.0. No socket, no clock, no session.

    decoder = Decoder(max_packet_size=1_048_576)
    for packet in decoder.receive_data(data): ...        # ProtocolError: .reason, .clause, .packets
    transport.write(encode(Puback(packet.packet_id), decoder.version))

    message = OutgoingMessage(publish.topic, publish.payload, publish.properties)
    writes.append(message.frame(version))                 # QoS 0: the same bytes for everyone
    head, tail = message.parts(version, qos=1)            # QoS 1, 2: head + packet id + tail

Reasons are the v5 codes for every version; the codec translates to 3.1.1's at the wire.
"""

from holdfast.broker.packets.acknowledge import Acknowledgement, Puback, Pubcomp, Pubrec, Pubrel
from holdfast.broker.packets.connect import V5, V31, V311, Connack, Connect, Will
from holdfast.broker.packets.control import (
    PINGREQ_FRAME,
    PINGRESP_FRAME,
    Auth,
    Disconnect,
    Pingreq,
    Pingresp,
)
from holdfast.broker.packets.decoder import LARGEST_PACKET, Decoder, Side
from holdfast.broker.packets.encoder import encode, encode_within
from holdfast.broker.packets.errors import ProtocolError
from holdfast.broker.packets.message import MessageProperties
from holdfast.broker.packets.outgoing import OutgoingMessage
from holdfast.broker.packets.publish import Publish, payload_fits_its_format
from holdfast.broker.packets.reason import Reason
from holdfast.broker.packets.subscribe import Suback, Subscribe, Subscription, Unsuback, Unsubscribe
from holdfast.broker.packets.union import Packet

__all__ = [
    "LARGEST_PACKET",
    "PINGREQ_FRAME",
    "PINGRESP_FRAME",
    "V5",
    "V31",
    "V311",
    "Acknowledgement",
    "Auth",
    "Connack",
    "Connect",
    "Decoder",
    "Disconnect",
    "MessageProperties",
    "OutgoingMessage",
    "Packet",
    "Pingreq",
    "Pingresp",
    "ProtocolError",
    "Puback",
    "Pubcomp",
    "Publish",
    "Pubrec",
    "Pubrel",
    "Reason",
    "Side",
    "Suback",
    "Subscribe",
    "Subscription",
    "Unsuback",
    "Unsubscribe",
    "Will",
    "encode",
    "encode_within",
    "payload_fits_its_format",
]
