"""A session: what is kept for a client beyond its connection. Pure: no socket, no store, no clock.

`outgoing` holds the states of messages to the client, `incoming` those from it, `session` what belongs to both.
"""

from holdfast.broker.session.entry import Entry, State
from holdfast.broker.session.incoming import Incoming
from holdfast.broker.session.outgoing import LARGEST_ID, WINDOW, WINDOW_BYTES, Outgoing, packet_id_of

__all__ = ["LARGEST_ID", "WINDOW", "WINDOW_BYTES", "Entry", "Incoming", "Outgoing", "State", "packet_id_of"]
