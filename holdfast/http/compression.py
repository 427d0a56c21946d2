"""Compressed bodies, both ways: gzip, and zstd for whoever offers it. Used for pulls and pushes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Literal, Protocol

import zstandard

from holdfast.errors import Malformed, WrongType

Encoding = Literal["zstd", "gzip"]

WORTH_IT = 1_024  # bytes; below this the header costs more than is won
PIECE = 64 * 1_024
STEP = 256
WINDOW = 8 * 1_024 * 1_024


def chosen(accept_encoding: str) -> Encoding | None:
    """The best encoding that the client accepts (`q=0` refuses one)."""
    offered: dict[str, float] = {}
    for part in accept_encoding.lower().split(","):
        name, _, quality = part.partition(";")
        try:
            offered[name.strip()] = float(quality.strip().removeprefix("q=") or 1)
        except ValueError:
            continue
    encodings: tuple[Encoding, ...] = ("zstd", "gzip")
    best = max(encodings, key=lambda name: offered.get(name, offered.get("*", 0.0)))
    return best if offered.get(best, offered.get("*", 0.0)) > 0 else None


def compressed(body: bytes, encoding: Encoding) -> bytes:
    if encoding == "zstd":
        return zstandard.ZstdCompressor(level=3).compress(body)
    stream = packer(encoding)
    return stream.compress(body) + stream.flush()


class Packer(Protocol):
    """Compresses a body that is sent in pieces."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def packer(encoding: Encoding) -> Packer:
    if encoding == "zstd":
        return zstandard.ZstdCompressor(level=3).compressobj()
    return zlib.compressobj(level=5, wbits=31)


class Inflater(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]:
        """What `data` unpacks to, piece by piece: whoever stops taking them has stopped a bomb."""

    def finish(self) -> None:
        """Raises `Malformed` if the stream was cut."""


def inflater(encoding: str) -> Inflater:
    match encoding.strip().lower():
        case "gzip" | "x-gzip":
            return _Gunzip()
        case "zstd":
            return _Unzstd()
        case _:
            raise WrongType(f"Content-Encoding {encoding!r} is not known here: use gzip, zstd or none.")


class _Gunzip:
    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._stream.eof:
            try:
                piece = self._stream.decompress(data, PIECE)
            except zlib.error as error:
                raise Malformed(f"The body is not gzip: {error}") from None
            data = self._stream.unconsumed_tail
            yield piece

    def finish(self) -> None:
        if not self._stream.eof:
            raise Malformed("The compressed body was cut.")


class _Unzstd:
    def __init__(self) -> None:
        self._stream = zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj()

    def feed(self, data: bytes) -> Iterator[bytes]:
        # small steps in, since a few bytes of zstd can stand for a whole block
        for start in range(0, len(data), STEP):
            if self._stream.eof:
                return
            try:
                piece = self._stream.decompress(data[start : start + STEP])
            except zstandard.ZstdError as error:
                raise Malformed(f"The body is not zstd: {error}") from None
            if piece:
                yield piece

    def finish(self) -> None:
        if not self._stream.eof:
            raise Malformed("The compressed body was cut.")
