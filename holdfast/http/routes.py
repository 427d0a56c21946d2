"""Puts the rooms' routers together: one Litestar application, one error mapper, one OpenAPI document."""

from __future__ import annotations

from collections.abc import Sequence

from litestar import Litestar, MediaType, Response, Router, get
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme, Tag

from holdfast import __version__
from holdfast.http.body import StrictJson
from holdfast.http.docs_page import PAGE
from holdfast.http.envelope import failed
from holdfast.settings import Limits

TAGS = [
    Tag(name="accounts", description="Users, passwords, tokens."),
    Tag(name="library", description="A personal library under one version number: pull and push."),
    Tag(name="files", description="The library's PDFs; resumable uploads are tus 1.0."),
    Tag(name="operation", description="Health and metrics."),
]

ABOUT = """The back end for apps that must work offline.

Answers come in an envelope: `{"ok": true, "code": 0, "message": "ok", "data": …, "ts": …}`; an error has the HTTP
status of its class, a stable `code` (`status * 100 + n`), a stable `reason` and a sentence for a person."""


def application(routers: Sequence[Router], limits: Limits) -> Litestar:
    openapi = OpenAPIConfig(
        title="holdfast",
        version=__version__,
        description=ABOUT,
        path="/openapi",
        render_plugins=[JsonRenderPlugin(path="/json")],
        components=Components(
            security_schemes={"token": SecurityScheme(type="http", scheme="bearer", bearer_format="JWT")}
        ),
        tags=TAGS,
        use_handler_docstrings=True,
    )
    return Litestar(
        route_handlers=[docs, *routers],
        openapi_config=openapi,
        exception_handlers={Exception: failed},
        request_max_body_size=limits.json_body,
        dto=StrictJson,
        return_dto=None,
        logging_config=None,
    )


@get("/docs", include_in_schema=False, media_type=MediaType.HTML)
async def docs() -> Response[str]:
    return Response(PAGE, media_type=MediaType.HTML)
