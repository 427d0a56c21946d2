"""Logs: one line for one thing that happened, and never a token, a password or a message body in it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.log import configure, get_logger, reset
from holdfast.settings import Log

SECRET = "correct horse battery staple"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    reset()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize(
    "key",
    [
        "password",
        "newPassword",
        "token",
        "accessToken",
        "refresh_token",
        "Authorization",
        "Set-Cookie",
        "client_secret",
        "body",
        "content",
        "payload",
    ],
)
def test_secrets_are_cut_whoever_passes_them_and_however_deep(key: str, form: str) -> None:
    out = io.StringIO()
    configure(Log(format=form), out)  # type: ignore[arg-type]
    log = get_logger("accounts")
    log.info("at the top", **{key: SECRET})
    log.info("deeper", request={"headers": {key: SECRET}})
    log.info("in a list", requests=[{"headers": {key: SECRET}}, ({key: SECRET},)])
    assert len(out.getvalue().splitlines()) == 3
    assert SECRET not in out.getvalue()


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_stack_shows_where_it_happened_and_no_values(form: str) -> None:
    def log_in(name: str, password: str) -> None:
        raise RuntimeError(f"{name} met a mistake, {len(password)} characters long")

    out = io.StringIO()
    configure(Log(format=form), out)  # type: ignore[arg-type]
    try:
        log_in("anna", SECRET)
    except RuntimeError:
        get_logger("accounts").exception("login_failed")
    assert "log_in" in out.getvalue()
    assert "anna met a mistake" in out.getvalue()
    assert SECRET not in out.getvalue()


@given(st.dictionaries(st.sampled_from(["count", "user_id", "door"]), st.text() | st.integers() | st.none()))
def test_a_json_line_is_one_line_and_says_what_was_said(fields: dict[str, object]) -> None:
    out = io.StringIO()
    configure(Log(format="json"), out)
    get_logger("feed").warning("something_happened", **fields)
    (line,) = out.getvalue().split("\n")[:-1]
    said = json.loads(line)
    assert said["event"] == "something_happened"
    assert said["level"] == "warning"
    assert said["room"] == "feed"
    assert {key: said[key] for key in fields} == fields


def test_what_is_below_the_level_is_not_written() -> None:
    out = io.StringIO()
    configure(Log(level="warning", format="json"), out)
    log = get_logger("feed")
    log.info("small talk")
    log.warning("listen")
    assert "small talk" not in out.getvalue()
    assert "listen" in out.getvalue()


def test_auto_is_json_where_nobody_looks() -> None:
    out = io.StringIO()
    configure(Log(), out)
    get_logger("feed").info("hello")
    assert json.loads(out.getvalue())["event"] == "hello"


def test_a_reader_that_is_gone_harms_nobody() -> None:
    out = io.StringIO()
    configure(Log(format="json"), out)
    out.close()
    get_logger("feed").error("nobody hears")


def test_what_json_does_not_know_is_said_as_well_as_may_be() -> None:
    out = io.StringIO()
    configure(Log(format="json"), out)
    get_logger("feed").info("strange", number=2**70, thing=object, ratio=float("nan"))
    assert json.loads(out.getvalue())["number"] == 2**70
