"""The ledger."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from holdfast.settings.fields import means


class Ledger(Struct, frozen=True, forbid_unknown_fields=True):
    """The ledger."""

    notify_own_devices: Annotated[bool, means("notify the author's own devices too")] = False
