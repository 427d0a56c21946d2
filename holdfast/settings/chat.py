"""Chat, and the Redis that makes several processes quick."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from holdfast.settings.fields import means


class Chat(Struct, frozen=True, forbid_unknown_fields=True):
    """Chat."""

    single_session: Annotated[bool, means("the newest connection of a user ends the older ones")] = True


class Redis(Struct, frozen=True, forbid_unknown_fields=True):
    """Redis or Valkey: several processes are quicker with it, and nothing is lost without."""

    url: Annotated[str, means("empty: none; or redis://host:port/0", secret=True)] = ""
