"""`/healthz` (alive), `/readyz` (may be sent traffic), `/metrics`. Their own conventions, no envelope."""

from __future__ import annotations

from collections.abc import Callable

from litestar import Response, Router

from holdfast.http.handlers import get
from holdfast.metrics import Metrics

Trouble = Callable[[], str | None]


def router(metrics: Metrics, trouble: Trouble) -> Router:
    """`trouble` says why the server should get no traffic at the moment, or None."""

    @get("/healthz", tags=["operation"], summary="Is the process alive?")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @get("/readyz", tags=["operation"], summary="Is the store writable, are migrations done?")
    async def readyz() -> Response[dict[str, str]]:
        why = trouble()
        if why is None:
            return Response({"status": "ok"})
        return Response({"status": "unavailable", "why": why}, status_code=503, headers={"Retry-After": "1"})

    @get("/metrics", tags=["operation"], summary="Metrics in Prometheus' format")
    async def exposition() -> Response[bytes]:
        return Response(metrics.exposition(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return Router("/", route_handlers=[healthz, readyz, exposition])
