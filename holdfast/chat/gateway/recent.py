"""Where the messages of the last moments lie, so that an acknowledgement costs no read. A cache, bounded."""

from __future__ import annotations

from collections import OrderedDict

from holdfast.chat.model import Message, Place

MOST = 20_000


class Recent:
    def __init__(self) -> None:
        self._places: OrderedDict[int, Place] = OrderedDict()

    def find(self, message: int) -> Place | None:
        return self._places.get(message)

    def keep(self, message: Message, kind: int) -> None:
        places = self._places
        places[message.id] = Place(message.conversation, kind, message.seq, message.sender, message.sent_ms)
        if len(places) > MOST:
            places.popitem(last=False)
