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

SECRET_KEYS = frozenset(
    {
        "token",
        "access_token",
        "refresh_token",
        "password",
        "body",
        "content",
        "payload",
        "secret",
        "authorization",
    }
)

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class Context(Protocol):
    def fields(self) -> Mapping[str, object]:
        """What every line says that is logged meanwhile: a request's id, a user's."""


request_context: ContextVar[Context | None] = ContextVar("request_context", default=None)


def _with_request(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    context = request_context.get()
    return {**context.fields(), **event} if context is not None else event


def _without_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for key in SECRET_KEYS & event.keys():
        event[key] = "(not logged)"
    return event


def configure(settings: Log, stream: TextIO | None = None) -> None:
    out = stream or sys.stderr
    as_text = settings.format == "text" or (settings.format == "auto" and out.isatty())
    ending: list[Processor] = (
        [structlog.dev.ConsoleRenderer(colors=out.isatty())]
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
