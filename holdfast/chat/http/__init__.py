"""Chat over HTTP: parses, asks, answers."""

from __future__ import annotations

from litestar import Router

from holdfast.chat.http import governing, people, reading
from holdfast.clock import Clock
from holdfast.ids import IdMaker
from holdfast.settings import Settings
from holdfast.store import Database


def router(db: Database, settings: Settings, clock: Clock, new_id: IdMaker) -> Router:
    return Router(
        "/",
        route_handlers=[
            *reading.handlers(db, settings.chat),
            *governing.handlers(db, settings.chat, settings.limits, clock, new_id),
            *people.handlers(db),
        ],
        tags=["chat"],
    )
