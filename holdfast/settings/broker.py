"""The MQTT broker."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from holdfast.settings.fields import Seconds, means


class Broker(Struct, frozen=True, forbid_unknown_fields=True):
    """The MQTT broker."""

    session_expiry: Annotated[
        int,
        Meta(ge=0),
        means("seconds after which the session of a 3.1.1 client that stays away is deleted; 0 = never"),
    ] = 3600
    sweep_interval: Annotated[Seconds, means("seconds between two sweeps of expired sessions")] = 60.0
