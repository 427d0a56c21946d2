"""Structured logs: JSON lines for machines, readable lines on a terminal, one event name per line.

A line never holds a token, a password or a message body: their keys are cut out here, whoever passes them.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Protocol, TextIO

import msgspec
import structlog

from holdfast.clock import rfc3339
from holdfast.settings import Log

# spelled in any way (accessToken, access_token, Access-Token), and at any depth
SECRET_KEYS = ("token", "password", "secret", "authorization", "cookie", "body", "content", "payload")

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class Context(Protocol):
    def fields(self) -> Mapping[str, object]:
        """What every line says that is logged meanwhile: a request's id, a user's."""


request_context: ContextVar[Context | None] = ContextVar("request_context", default=None)


@lru_cache(maxsize=1_024)
def _is_secret(key: object) -> bool:
    return isinstance(key, str) and key.lower().endswith(SECRET_KEYS)


def _cut(key: object, value: object) -> object:
    if _is_secret(key):
        return "(not logged)"
    if isinstance(value, Mapping):
        return {inner: _cut(inner, kept) for inner, kept in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(None, kept) for kept in value]
    return value


Fields = dict[str, object]
Write = Callable[[str, Fields], None]
"""Level and fields, `event` among them."""


def configure(settings: Log, stream: TextIO | None = None) -> None:
    out = stream or sys.stderr
    as_text = settings.format == "text" or (settings.format == "auto" and out.isatty())
    _sink.write = _text_to(out) if as_text else _json_to(out)
    _sink.least = LEVELS[settings.level]
    logging.basicConfig(level=logging.WARNING, stream=out, force=True, format="%(name)s: %(message)s")


def _json_to(out: TextIO) -> Write:
    def write(level: str, fields: Fields) -> None:
        error = fields.pop("exc_info", None)
        if error:
            fields["exception"] = _stack_of(error)
        fields["level"] = level
        fields["timestamp"] = rfc3339(time.time_ns() // 1_000_000)
        try:
            line = msgspec.json.encode(fields).decode()
        except (TypeError, ValueError, OverflowError):
            line = json.dumps(fields, default=repr)  # slower, and takes everything
        _put(out, line)

    return write


def _text_to(out: TextIO) -> Write:
    # (the printer that it would choose by itself shows the values of local variables, passwords among them)
    render = structlog.dev.ConsoleRenderer(
        colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback
    )

    def write(level: str, fields: Fields) -> None:
        line = {"timestamp": rfc3339(time.time_ns() // 1_000_000), "level": level, **fields}
        _put(out, str(render(None, level, line)))

    return write


def _put(out: TextIO, line: str) -> None:
    try:
        out.write(line + "\n")
        out.flush()
    except (OSError, ValueError):
        pass  # nobody reads any more; what was to be logged goes on all the same


def _stack_of(error: object) -> str:
    found = error if isinstance(error, BaseException) else sys.exc_info()[1]
    return "".join(traceback.format_exception(found)).rstrip() if found is not None else ""


class _Sink:
    """Where everybody's lines go, and the least that is written."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.least = logging.INFO
        self.write: Write = lambda level, fields: _text_to(sys.stderr)(level, fields)


_sink = _Sink()


def reset() -> None:
    """As before `configure`: readable lines to stderr."""
    _sink.reset()


class Logger:
    """A room's logger; what it logs carries the request's context (request id, user id)."""

    __slots__ = ("_room",)

    def __init__(self, room: str) -> None:
        self._room = room

    def debug(self, event: str, **fields: object) -> None:
        if _sink.least <= logging.DEBUG:
            self._write("debug", event, fields)

    def info(self, event: str, **fields: object) -> None:
        if _sink.least <= logging.INFO:
            self._write("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        if _sink.least <= logging.WARNING:
            self._write("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        self._write("error", event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """An error, with the stack of the exception that is being handled."""
        self._write("error", event, {"exc_info": True, **fields})

    def critical(self, event: str, **fields: object) -> None:
        self._write("critical", event, fields)

    def _write(self, level: str, event: str, fields: Fields) -> None:
        context = request_context.get()
        said: Fields = {"event": event, "room": self._room}
        if context is not None:
            said.update(context.fields())
        for key, value in fields.items():
            said[key] = _cut(key, value)
        _sink.write(level, said)


get_logger = Logger
