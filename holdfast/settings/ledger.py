"""The ledger."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from holdfast.settings.fields import Count, means


class Ledger(Struct, frozen=True, forbid_unknown_fields=True):
    """The ledger."""

    notify_own_devices: Annotated[bool, means("notify the author's own devices too")] = False
    down_topics: Annotated[
        bool, means("also publish HTTP writes to heji/down/…, where clients of the uplink listen")
    ] = True
    legacy_book_topic: Annotated[
        bool, means("also serve heji/book/{id}/sync, one topic a book, for clients of the first generation")
    ] = False
    code_days: Annotated[Count, means("days for which the code of a shared book can be used")] = 7
    join_tries: Annotated[Count, means("codes that a user may try in a minute")] = 20
    batch: Annotated[Count, means("operations of one batch")] = 500
    images_per_bill: Annotated[Count, means("images of one bill")] = 100
    sweep_minutes: Annotated[
        float, means("minutes between two sweeps of expired codes, old messages and deleted books")
    ] = 5.0
