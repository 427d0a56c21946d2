"""One large file up, or down, over a plain socket, with nothing done to the bytes on the way.

python -m bench.load.transfer        reads `Upload` and `Download` as JSON lines on stdin, answers each with numbers
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import time
from collections.abc import Mapping

import msgspec
from msgspec import Struct

PIECE = 1024 * 1024
MEGABYTE = 1_000_000
_HEAD_MAX = 64 * 1024


class Upload(Struct, frozen=True, tag="upload"):
    """A PDF that was never there before."""

    address: str
    method: str
    path: str
    headers: dict[str, str]
    size: int


class Download(Struct, frozen=True, tag="download"):
    address: str
    path: str
    headers: dict[str, str]


class Moved(Struct, frozen=True):
    rate: float
    """Megabytes a second, from the first byte of the request to the last of the answer."""
    size: int
    md5: str = ""


def pdf(size: int) -> list[memoryview]:
    """Pieces of a file that is a PDF as far as its content tells, and like no other."""
    head, tail = b"%PDF-1.7\n%" + os.urandom(32).hex().encode() + b"\n", b"\n%%EOF\n"
    piece = memoryview(os.urandom(PIECE))
    whole, rest = divmod(size - len(head) - len(tail), PIECE)
    return [memoryview(head), *[piece] * whole, piece[:rest], memoryview(tail)]


def upload(asked: Upload) -> Moved:
    pieces = pdf(asked.size)
    digest = hashlib.md5(usedforsecurity=False)
    for piece in pieces:
        digest.update(piece)
    with _connected(asked.address) as connection:
        began = time.perf_counter()
        connection.sendall(
            _head(asked.method, asked.path, {**asked.headers, "Content-Length": str(asked.size)})
        )
        for piece in pieces:
            connection.sendall(piece)
        _answer(connection, asked.path)
        return Moved(asked.size / (time.perf_counter() - began) / MEGABYTE, asked.size, digest.hexdigest())


def download(asked: Download) -> Moved:
    with _connected(asked.address) as connection:
        began = time.perf_counter()
        connection.sendall(_head("GET", asked.path, asked.headers))
        length, came = _answer(connection, asked.path)
        buffer = bytearray(PIECE)
        while came < length:
            piece = connection.recv_into(buffer)
            if not piece:
                raise SystemExit(f"{asked.path} ended after {came} of {length} bytes")
            came += piece
        return Moved(length / (time.perf_counter() - began) / MEGABYTE, length)


def _connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), 60)


def _head(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: bench",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join((*lines, "", "")).encode()


def _answer(connection: socket.socket, path: str) -> tuple[int, int]:
    """The length of the answer's body, and how much of it has come with the head."""
    read = b""
    while b"\r\n\r\n" not in read:
        piece = connection.recv(_HEAD_MAX)
        if not piece or len(read) > _HEAD_MAX:
            raise SystemExit(f"{path}: no answer")
        read += piece
    head, _, body = read.partition(b"\r\n\r\n")
    if head[9:10] != b"2":
        raise SystemExit(f"{path}: {read[:400]!r}")
    _, _, length = head.lower().partition(b"content-length:")
    return int(length.partition(b"\r\n")[0] or 0), len(body)


def main() -> None:
    for line in sys.stdin.buffer:
        asked = msgspec.json.decode(line, type=Upload | Download)
        moved = upload(asked) if isinstance(asked, Upload) else download(asked)
        sys.stdout.buffer.write(msgspec.json.encode(moved) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
