"""`holdfast broker sessions`, `session`, `subscriptions`, `retained`, `queue`; `kick`, `delete-session`, `clear-retained`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from holdfast import log
from holdfast.broker.inspection import QueuedInfo, RetainedInfo, SessionInfo, SubscriptionInfo
from holdfast.cli.broker_sources import Source, looked_at
from holdfast.cli.options import Config, Data, Set, read_settings
from holdfast.clock import rfc3339

WIDE = 300
VERSIONS = {3: "3.1", 4: "3.1.1", 5: "5.0"}

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        envvar="HOLDFAST_URL",
        help="Ask the server there, over HTTP.  [default: where listen.http says]",
        show_default=False,
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TOKEN",
        envvar="HOLDFAST_TOKEN",
        help="An administrator's access token (`holdfast token NAME`), to ask over HTTP.",
        show_default=False,
        show_envvar=True,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="JSON, for programs.")]
ClientId = Annotated[str, typer.Argument(metavar="ID", help="The client id.", show_default=False)]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="At most so many.")]


@contextmanager
def _looking(
    context: typer.Context,
    data: Path | None,
    config: Path | None,
    pairs: list[str] | None,
    url: str | None,
    token: str | None,
) -> Iterator[Source]:
    settings = read_settings(data or context.obj, config, [*(pairs or ()), "log.level=warning"]).settings
    log.configure(settings.log)
    with looked_at(settings, url, token) as source:
        yield source


def sessions(
    context: typer.Context,
    as_json: Json = False,
    data: Data = None,
    url: Url = None,
    token: Token = None,
    config: Config = None,
    pairs: Set = None,
) -> None:
    """List all sessions: who, since when, until when, and what waits for them."""
    with _looking(context, data, config, pairs, url, token) as source:
        if as_json:
            _print_list(source.sessions())
            return
        _print_table(
            (
                "client id",
                "user",
                "state",
                "since",
                "expires",
                "subscriptions",
                "in flight",
                "queued",
                "dropped",
            ),
            map(_session_row, source.sessions()),
        )


def session(
    context: typer.Context,
    client_id: ClientId,
    as_json: Json = False,
    data: Data = None,
    url: Url = None,
    token: Token = None,
    config: Config = None,
    pairs: Set = None,
) -> None:
    """Show one session and its subscriptions."""
    with _looking(context, data, config, pairs, url, token) as source:
        found = source.session(client_id)
        filters = list(source.subscriptions(client_id))
    if as_json:
        _print_json({**msgspec.to_builtins(found), "filters": filters})
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in _session_lines(found):
        table.add_row(name, _shown(value))
    _console().print(table)
    for one in filters:
        typer.echo(f"  {_plain(one.filter)}  (QoS {one.qos}{_marks(one)})")


def subscriptions(
    context: typer.Context,
    client_id: Annotated[
        str | None,
        typer.Option("--client", metavar="ID", help="Only this client's.", show_default=False),
    ] = None,
    as_json: Json = False,
    data: Data = None,
    url: Url = None,
    token: Token = None,
    config: Config = None,
    pairs: Set = None,
) -> None:
    """List subscriptions, client by client."""
    with _looking(context, data, config, pairs, url, token) as source:
        found = source.subscriptions(client_id)
        if as_json:
            _print_list(found)
            return
        _print_table(
            ("client id", "filter", "QoS", ""),
            ((one.client_id, one.filter, str(one.qos), _marks(one).lstrip(", ")) for one in found),
        )


def retained(
    context: typer.Context,
    topic_filter: Annotated[
        str, typer.Argument(metavar="[FILTER]", help="Only topics that this filter matches.")
    ] = "#",
    limit: Limit = 1_000,
    as_json: Json = False,
    data: Data = None,
    url: Url = None,
    token: Token = None,
    config: Config = None,
    pairs: Set = None,
) -> None:
    """List retained messages (never their payload)."""
    with _looking(context, data, config, pairs, url, token) as source:
        page = source.retained(topic_filter, limit)
    if as_json:
        _print_list(page.items)
    else:
        _print_table(("topic", "QoS", "size", "stored", "expires"), map(_retained_row, page.items))
    _say_if_more(page.next, "a narrower filter, or a higher --limit, shows them")


def queue(
    context: typer.Context,
    client_id: ClientId,
    limit: Limit = 100,
    as_json: Json = False,
    data: Data = None,
    url: Url = None,
    token: Token = None,
    config: Config = None,
    pairs: Set = None,
) -> None:
    """List the oldest messages that a client has not acknowledged (never their payload)."""
    with _looking(context, data, config, pairs, url, token) as source:
        page = source.queue(client_id, limit)
    if as_json:
        _print_list(page.items)
    else:
        _print_table(("number", "topic", "QoS", "size", "state", "expires"), map(_queue_row, page.items))
    _say_if_more(page.next, "a higher --limit shows them")


def kick(
    context: typer.Context,
    client_id: ClientId,
    data: Data = None,
    url: Url = None,
    token: Token = None,
    config: Config = None,
    pairs: Set = None,
) -> None:
    """Disconnect a client. Its session stays, and it may come back."""
    with _looking(context, data, config, pairs, url, token) as source:
        source.kick(client_id)
    typer.echo(f"{client_id}: disconnected")


def delete_session(
    context: typer.Context,
    client_id: ClientId,
    data: Data = None,
    url: Url = None,
    token: Token = None,
    config: Config = None,
    pairs: Set = None,
) -> None:
    """Delete a session: its client is disconnected, its subscriptions and all that waits for it are gone."""
    with _looking(context, data, config, pairs, url, token) as source:
        source.delete_session(client_id)
    typer.echo(f"{client_id}: session deleted")


def clear_retained(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.", show_default=False)],
    data: Data = None,
    url: Url = None,
    token: Token = None,
    config: Config = None,
    pairs: Set = None,
) -> None:
    """Clear the retained message of a topic."""
    with _looking(context, data, config, pairs, url, token) as source:
        source.clear_retained(topic)
    typer.echo(f"{topic}: nothing is retained any more")


COMMANDS: tuple[Callable[..., None], ...] = (
    sessions,
    session,
    subscriptions,
    retained,
    queue,
    kick,
    delete_session,
    clear_retained,
)


# -- how it looks


def _session_row(one: SessionInfo) -> tuple[str, ...]:
    return (
        one.client_id,
        one.user,
        "connected" if one.connected else "away",
        rfc3339(one.since_ms),
        _until(one),
        str(one.subscriptions),
        str(one.inflight),
        str(one.queued),
        str(one.dropped),
    )


def _session_lines(one: SessionInfo) -> Iterator[tuple[str, str]]:
    yield "client id", one.client_id
    yield "user", one.user or "(anonymous)"
    yield ("connected since" if one.connected else "away since"), rfc3339(one.since_ms)
    if one.address is not None:
        yield "from", one.address
    yield "version", VERSIONS.get(one.version, str(one.version))
    yield "ends", _until(one) or ("with its connection" if not one.persistent else "never")
    yield "in flight", str(one.inflight)
    yield "queued", f"{one.queued} ({decimal(one.queued_bytes)})"
    yield "dropped", str(one.dropped)
    yield "subscriptions", str(one.subscriptions)


def _until(one: SessionInfo) -> str:
    return "" if one.expires_ms is None else rfc3339(one.expires_ms)


def _marks(one: SubscriptionInfo) -> str:
    marks = [
        *(["no local"] if one.no_local else []),
        *(["retain as published"] if one.retain_as_published else []),
        *([f"identifier {one.identifier}"] if one.identifier else []),
    ]
    return "".join(f", {mark}" for mark in marks)


def _retained_row(one: RetainedInfo) -> tuple[str, ...]:
    expires = "" if one.expires_ms is None else rfc3339(one.expires_ms)
    return (one.topic, str(one.qos), decimal(one.size), rfc3339(one.stored_ms), expires)


def _queue_row(one: QueuedInfo) -> tuple[str, ...]:
    expires = "" if one.expires_ms is None else rfc3339(one.expires_ms)
    return (str(one.number), one.topic, str(one.qos), decimal(one.size), one.state, expires)


def _print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(_shown, row))
    _console().print(table)


def _console() -> Console:
    """As wide as the terminal; whoever reads from a pipe gets a row in one line."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDE)


def _plain(text: str) -> str:
    """Names come from clients: nothing in them may move the cursor."""
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in text)


def _shown(text: str) -> str:
    """As `_plain`, and nothing in them may colour the table."""
    return escape(_plain(text))


def _print_list(items: Iterable[msgspec.Struct]) -> None:
    """One array, an object a line: as it comes, however long it is."""
    separator = "["
    for item in items:
        typer.echo(separator + msgspec.json.encode(item).decode(), nl=False)
        separator = ",\n"
    typer.echo("[]" if separator == "[" else "]")


def _print_json(value: object) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(value)).decode())


def _say_if_more(after: str | None, how: str) -> None:
    if after is not None:
        typer.echo(f"holdfast: there are more: {how}", err=True)
