"""Where `holdfast broker sessions` and the like look: at a running server, over HTTP or in its data folder; at a store.

| given | looks |
|---|---|
| `--url` or `--token` | over HTTP, `/admin/broker/…`, with an administrator's token |
| a data folder that a server has | through the socket that lies in it |
| a data folder that nobody has | into the store; there is nobody who could disconnect or delete anything |
"""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final, Protocol, Self, TypeVar

import msgspec

from holdfast.broker import local_door, stored
from holdfast.broker import operator as ask
from holdfast.broker.inspection import QueuedInfo, RetainedInfo, SessionInfo, SubscriptionInfo
from holdfast.broker.operator import Done, Page
from holdfast.broker.topics.syntax import topic_filter_fault
from holdfast.errors import HoldfastError, Invalid, NotFound, Unavailable
from holdfast.keeping.places import kept_by
from holdfast.settings import Settings
from holdfast.store import Snapshot

T = TypeVar("T")

PATIENCE = 60.0


class Source(Protocol):
    def sessions(self) -> Iterator[SessionInfo]: ...
    def session(self, client_id: str) -> SessionInfo: ...
    def subscriptions(self, client_id: str | None) -> Iterator[SubscriptionInfo]: ...
    def retained(self, topic_filter: str, limit: int) -> Page[RetainedInfo]: ...
    def queue(self, client_id: str, limit: int) -> Page[QueuedInfo]: ...
    def kick(self, client_id: str) -> None: ...
    def delete_session(self, client_id: str) -> None: ...
    def clear_retained(self, topic: str) -> None: ...


@contextmanager
def looked_at(settings: Settings, url: str | None, token: str | None) -> Iterator[Source]:
    if url is not None or token is not None:
        yield _Running(_OverHttp(url or f"http://{settings.listen.http}", token or ""))
        return
    kept = kept_by(settings)
    if kept.folder.is_locked():
        with _InFolder(kept.folder.path) as asked:
            yield _Running(asked)
        return
    with kept.store.snapshot() as whole:
        yield _Stopped(whole.view)


class _Asked(Protocol):
    def ask(self, question: ask.Question, answer: type[T]) -> T: ...


class _Running:
    """A running broker, whichever way it is asked."""

    def __init__(self, asked: _Asked) -> None:
        self._ask = asked.ask

    def sessions(self) -> Iterator[SessionInfo]:
        after: str | None = ""
        while after is not None:
            page = self._ask(ask.Sessions(after), Page[SessionInfo])
            yield from page.items
            after = page.next

    def session(self, client_id: str) -> SessionInfo:
        return self._ask(ask.OneSession(client_id), SessionInfo)

    def subscriptions(self, client_id: str | None) -> Iterator[SubscriptionInfo]:
        after: str | None = ""
        while after is not None:
            page = self._ask(ask.Subscriptions(client_id or "", after), Page[SubscriptionInfo])
            yield from page.items
            after = page.next

    def retained(self, topic_filter: str, limit: int) -> Page[RetainedInfo]:
        return self._ask(ask.Retained(topic_filter, limit), Page[RetainedInfo])

    def queue(self, client_id: str, limit: int) -> Page[QueuedInfo]:
        return self._ask(ask.Queue(client_id, limit), Page[QueuedInfo])

    def kick(self, client_id: str) -> None:
        self._ask(ask.Kick(client_id), Done)

    def delete_session(self, client_id: str) -> None:
        self._ask(ask.DeleteSession(client_id), Done)

    def clear_retained(self, topic: str) -> None:
        self._ask(ask.ClearRetained(topic), Done)


class _InFolder:
    """Through the socket in the data folder."""

    def __init__(self, folder: Path) -> None:
        try:
            self._socket = local_door.visit(folder)
        except OSError as error:
            raise Unavailable(
                f"a server has {folder}, and does not answer there ({error.strerror}): ask it with --url and --token"
            ) from None
        self._socket.settimeout(PATIENCE)
        self._lines = self._socket.makefile("rwb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._socket.close()

    def ask(self, question: ask.Question, answer: type[T]) -> T:
        try:
            self._lines.write(msgspec.json.encode(question) + b"\n")
            self._lines.flush()
            said = msgspec.json.decode(self._lines.readline(), type=dict[str, msgspec.Raw])
        except (OSError, msgspec.DecodeError):
            raise Unavailable("the server went away in the middle of its answer") from None
        if "error" in said:
            raise NotFound(msgspec.json.decode(said["error"], type=str))
        return msgspec.json.decode(said["ok"], type=answer)


_ROUTES: Final[Mapping[type[msgspec.Struct], tuple[str, str]]] = {
    ask.Sessions: ("GET", "sessions"),
    ask.OneSession: ("GET", "session"),
    ask.Subscriptions: ("GET", "subscriptions"),
    ask.Retained: ("GET", "retained"),
    ask.Queue: ("GET", "queue"),
    ask.Kick: ("POST", "kick"),
    ask.DeleteSession: ("DELETE", "session"),
    ask.ClearRetained: ("DELETE", "retained"),
}


class _Said(msgspec.Struct):
    """An answer of the HTTP door."""

    message: str = ""
    data: msgspec.Raw = msgspec.Raw(b"null")


class _OverHttp:
    def __init__(self, url: str, token: str) -> None:
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise Invalid(f"--url {url}: it begins with http:// or https://")
        self._url = url.rstrip("/")
        self._token = token

    def ask(self, question: ask.Question, answer: type[T]) -> T:
        method, path = _ROUTES[type(question)]
        fields = msgspec.structs.asdict(question)
        url = f"{self._url}/admin/broker/{path}?{urllib.parse.urlencode(fields)}"
        asked = urllib.request.Request(  # noqa: S310 - its scheme was looked at
            url, method=method, headers={"Authorization": f"Bearer {self._token}"}
        )
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as response:  # noqa: S310
                said = msgspec.json.decode(response.read(), type=_Said)
        except urllib.error.HTTPError as error:
            raise _refusal(error) from None
        except (OSError, msgspec.DecodeError) as error:
            raise Unavailable(f"cannot ask {self._url}: {getattr(error, 'reason', None) or error}") from None
        return msgspec.json.decode(said.data, type=answer)


def _refusal(error: urllib.error.HTTPError) -> HoldfastError:
    try:
        message = msgspec.json.decode(error.read(), type=_Said).message
    except (OSError, msgspec.DecodeError):
        message = ""
    return Invalid(message or f"the server answered {error.code} {error.reason}")


class _Stopped:
    """What a broker that does not run has kept."""

    def __init__(self, view: Snapshot) -> None:
        self._view = view

    def sessions(self) -> Iterator[SessionInfo]:
        return stored.sessions(self._view)

    def session(self, client_id: str) -> SessionInfo:
        found = stored.session(self._view, client_id)
        if found is None:
            raise NotFound("there is no session of this client id")
        return found

    def subscriptions(self, client_id: str | None) -> Iterator[SubscriptionInfo]:
        if client_id is not None:
            self.session(client_id)
        return stored.subscriptions(self._view, client_id)

    def retained(self, topic_filter: str, limit: int) -> Page[RetainedInfo]:
        if topic_filter_fault(topic_filter) is not None:
            raise Invalid(f"{topic_filter}: this is no topic filter")
        some = list(islice(stored.retained(self._view, topic_filter), limit + 1))
        return Page(some[:limit], some[limit - 1].topic if len(some) > limit else None)

    def queue(self, client_id: str, limit: int) -> Page[QueuedInfo]:
        self.session(client_id)
        some = stored.queue(self._view, client_id, limit + 1)
        return Page(some[:limit], str(some[limit - 1].number) if len(some) > limit else None)

    def kick(self, client_id: str) -> None:
        raise _nobody()

    def delete_session(self, client_id: str) -> None:
        raise _nobody()

    def clear_retained(self, topic: str) -> None:
        raise _nobody()


def _nobody() -> HoldfastError:
    return Unavailable(
        "no server has this data folder at the moment: it can be read, and changed only by a server"
    )
