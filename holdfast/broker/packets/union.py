"""Every control packet there is, as one type."""

from __future__ import annotations

from holdfast.broker.packets.acknowledge import Puback, Pubcomp, Pubrec, Pubrel
from holdfast.broker.packets.connect import Connack, Connect
from holdfast.broker.packets.control import Auth, Disconnect, Pingreq, Pingresp
from holdfast.broker.packets.publish import Publish
from holdfast.broker.packets.subscribe import Suback, Subscribe, Unsuback, Unsubscribe

Packet = (
    Connect
    | Connack
    | Publish
    | Puback
    | Pubrec
    | Pubrel
    | Pubcomp
    | Subscribe
    | Suback
    | Unsubscribe
    | Unsuback
    | Pingreq
    | Pingresp
    | Disconnect
    | Auth
)
