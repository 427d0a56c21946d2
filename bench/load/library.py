"""One device of a library: pushes of many changes, one after the other, and full pulls.

    python -m bench.load.library        reads `Pushes` and `Pulls` as JSON lines on stdin, answers each with numbers

Only the time between a request and the whole of its answer counts; what we need to make and read a body does not.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
import uuid
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from bench.scenario import Values

LATER = "2026-02-18T10:00:00Z"


class Pushes(Struct, frozen=True, tag="pushes"):
    """Pushes of new scores, their parts, setlists and what stands in them, until `seconds` are over or `count` are there."""

    address: str
    path: str
    headers: dict[str, str]
    changes: int
    version: int = 0
    """Of the library, as it is before."""
    seconds: float = 0.0
    count: int = 0


class Pulls(Struct, frozen=True, tag="pulls"):
    """Everything, again and again; page by page when the server's answers name a next page."""

    address: str
    path: str
    headers: dict[str, str]
    mark: str
    """What stands once in every row."""
    seconds: float


def changes(count: int) -> dict[str, list[dict[str, object]]]:
    """A quarter each of scores and setlist scores, nearly half parts, and one setlist for ten scores."""
    scores = [
        _change({"title": f"Étude {n} {uuid.uuid4().hex[:8]}", "composer": "Anon", "bpm": 96})
        for n in range(count // 4)
    ]
    setlists = [
        _change({"name": f"Evening {uuid.uuid4().hex[:8]}"}) for _ in range(max(1, len(scores) // 10))
    ]
    placed = [
        _change(
            {
                "setlistId": setlists[n % len(setlists)]["entityId"],
                "scoreId": score["entityId"],
                "orderIndex": n,
            }
        )
        for n, score in enumerate(scores)
    ]
    left = count - len(scores) - len(setlists) - len(placed)
    parts = [
        _change(
            {"scoreId": scores[n % len(scores)]["entityId"], "instrumentName": f"Violin {n}", "orderIndex": n}
        )
        for n in range(left)
    ]
    return {"scores": scores, "instrumentScores": parts, "setlists": setlists, "setlistScores": placed}


def _change(data: dict[str, object]) -> dict[str, object]:
    return {
        "entityId": str(uuid.uuid4()),
        "operation": "create",
        "version": 0,
        "data": data,
        "localUpdatedAt": LATER,
    }


def push(asked: Pushes) -> Values:
    connection = http.client.HTTPConnection(asked.address, timeout=60)
    version, done, took = asked.version, 0, 0.0
    while (asked.count and done < asked.count) or took < asked.seconds:
        body = json.dumps({"clientLibraryVersion": version, **changes(asked.changes)})
        key = {"Idempotency-Key": str(uuid.uuid4()), "Content-Type": "application/json"}
        began = time.perf_counter()
        _, raw = ask(connection, "POST", asked.path, {**asked.headers, **key}, body.encode())
        took += time.perf_counter() - began
        said = json.loads(raw)
        if len(said["accepted"]) != asked.changes:
            raise SystemExit(f"{len(said['accepted'])} of {asked.changes} changes were accepted")
        version, done = said["newLibraryVersion"], done + asked.changes
    connection.close()
    return {"rate": done / took, "each_ms": took / (done / asked.changes) * 1000, "version": float(version)}


def pull(asked: Pulls) -> Values:
    connection = http.client.HTTPConnection(asked.address, timeout=60)
    rows, pulls, began = 0, 0, time.perf_counter()
    while time.perf_counter() < began + asked.seconds:
        path: str | None = asked.path
        while path is not None:
            answer, raw = ask(connection, "GET", path, asked.headers)
            rows += raw.count(asked.mark.encode())
            path = _path_of(answer.getheader("Next-Page"))
        pulls += 1
    took = time.perf_counter() - began
    connection.close()
    return {"rate": rows / took, "rows": rows / pulls, "each_ms": took / pulls * 1000}


def _path_of(link: str | None) -> str | None:
    if link is None:
        return None
    parts = urlsplit(link)
    return f"{parts.path}?{parts.query}"


def ask(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes = b"",
) -> tuple[http.client.HTTPResponse, bytes]:
    connection.request(method, path, body or None, dict(headers))
    answer = connection.getresponse()
    raw = answer.read()
    if answer.status >= 300:
        raise SystemExit(f"{method} {path}: {answer.status} {raw[:300]!r}")
    return answer, raw


def main() -> None:
    for line in sys.stdin.buffer:
        asked = msgspec.json.decode(line, type=Pushes | Pulls)
        values = push(asked) if isinstance(asked, Pushes) else pull(asked)
        sys.stdout.buffer.write(msgspec.json.encode(values) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
