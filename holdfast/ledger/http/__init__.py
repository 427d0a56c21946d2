"""`/api/v1/*`: parses, asks the ledger, answers."""

from __future__ import annotations

from litestar import Router

from holdfast.ledger.http import bills, books, images, sync
from holdfast.ledger.ledger import Ledger


def router(ledger: Ledger) -> Router:
    return Router(
        "/api/v1",
        route_handlers=[
            *books.handlers(ledger),
            *bills.handlers(ledger),
            *images.handlers(ledger),
            *sync.handlers(ledger),
        ],
        tags=["ledger"],
    )
