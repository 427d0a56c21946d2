"""What was saved a moment ago is answered again without the database: for clients that come back and repeat themselves.

Only what a commit has answered is remembered, under the store's epoch; only the first frames of a connection ask,
since those are the ones that repeat; and only a repetition of all of a run is answered here. Whatever is not known,
or not the same, is for the database to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec
from msgspec import Struct

from holdfast.chat.actions import Kept, Outcome
from holdfast.chat.gateway.connection import Connection
from holdfast.chat.model import Draft, Target
from holdfast.cluster import Cluster

ASKING_SECONDS = 10.0  # after AUTH
REMEMBERED_SECONDS = 600


class Remembered(Struct, frozen=True, array_like=True):
    conversation: int
    message: int
    seq: int
    sent_ms: int
    digest: bytes


_write = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(Remembered).decode


class ShortCut:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def look(
        self, connection: Connection, target: Target, drafts: Sequence[Draft]
    ) -> list[Outcome] | None:
        if self._cluster.is_alone or connection.now() - connection.opened > ASKING_SECONDS:
            return None
        names = [_name(connection.user_id, draft) for draft in drafts]
        outcomes: list[Outcome] = []
        for draft, raw in zip(drafts, await self._cluster.recall(names), strict=True):
            kept = _kept(raw, target, draft)
            if kept is None:
                return None
            outcomes.append(kept)
        return outcomes

    def keep(self, sender: int, target: Target, drafts: Sequence[Draft], outcomes: Sequence[Outcome]) -> None:
        if self._cluster.is_alone:
            return
        self._cluster.remember(
            {
                _name(sender, draft): _write(
                    Remembered(target.conversation, kept.id, kept.seq, kept.sent_ms, _digest(draft.body))
                )
                for draft, kept in zip(drafts, outcomes, strict=True)
                if isinstance(kept, Kept)
            },
            REMEMBERED_SECONDS,
        )


def _kept(raw: bytes | None, target: Target, draft: Draft) -> Kept | None:
    if raw is None:
        return None
    try:
        found = _read(raw)
    except msgspec.MsgspecError:
        return None
    if found.conversation != target.conversation or found.digest != _digest(draft.body):
        return None
    return Kept(found.message, found.seq, found.sent_ms, True)


def _name(sender: int, draft: Draft) -> str:
    return f"sent:{sender}:{draft.client_msg_id}"


def _digest(body: str) -> bytes:
    return blake2b(body.encode("utf-8", "surrogatepass"), digest_size=16).digest()
