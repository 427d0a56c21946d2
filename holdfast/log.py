"""Structured logs: JSON lines for machines, readable lines on a terminal, one event name per line.

A line never holds a token, a password or a message body: their keys are cut out here, whoever passes them.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Protocol, TextIO

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from holdfast.settings import Log

# spelled in any way (accessToken, access_token, Access-Token), and at any depth
SECRET_KEYS = ("token", "password", "secret", "authorization", "cookie", "body", "content", "payload")

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class Context(Protocol):
    def fields(self) -> Mapping[str, object]:
        """What every line says that is logged meanwhile: a request's id, a user's."""


request_context: ContextVar[Context | None] = ContextVar("request_context", default=None)


def _with_request(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    context = request_context.get()
    return {**context.fields(), **event} if context is not None else event


def _without_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {key: _cut(key, value) for key, value in event.items()}


def _cut(key: object, value: object) -> object:
    if isinstance(key, str) and key.lower().endswith(SECRET_KEYS):
        return "(not logged)"
    if isinstance(value, Mapping):
        return {inner: _cut(inner, kept) for inner, kept in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(None, kept) for kept in value]
    return value


def configure(settings: Log, stream: TextIO | None = None) -> None:
    out = stream or sys.stderr
    as_text = settings.format == "text" or (settings.format == "auto" and out.isatty())
    ending: list[Processor] = (
        # (the printer that it would choose by itself shows the values of local variables, passwords among them)
        [
            structlog.dev.ConsoleRenderer(
                colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ]
        if as_text
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[
            _with_request,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _without_secrets,
            *ending,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[settings.level]),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=logging.WARNING, stream=out, force=True, format="%(name)s: %(message)s")


def get_logger(room: str) -> FilteringBoundLogger:
    """The room's logger; what it logs carries the request's context (request id, user id)."""
    logger: FilteringBoundLogger = structlog.get_logger(room=room)
    return logger
