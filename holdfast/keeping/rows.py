"""Rows as bytes, and back: MessagePack of a list of rows, packed with zstd. Pure.

Values are what both databases have: integers of 64 bits, text, bytes, reals, booleans, NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import msgspec
import zstandard

from holdfast.store.statement import Value
from holdfast.store.whole import Row

ROWS = 1_000
BYTES = 1024 * 1024
LARGEST = 2**31 - 1  # what one chunk may unpack to: a row of SQLite is no larger than a gigabyte

_unpack = msgspec.msgpack.Decoder(list[list[object]]).decode


def chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Neither many rows nor many bytes at once (but a row is never cut)."""
    chunk: list[Row] = []
    weight = 0
    for row in rows:
        chunk.append(row)
        weight += sum([len(value) for value in row if isinstance(value, str | bytes)])
        if len(chunk) >= ROWS or weight >= BYTES:
            yield chunk
            chunk, weight = [], 0
    if chunk:
        yield chunk


def packed(chunk: Iterable[Row]) -> bytes:
    return zstandard.ZstdCompressor(level=3).compress(msgspec.msgpack.encode(list(chunk)))


def unpacked(data: bytes) -> list[list[Value]]:
    try:
        plain = zstandard.ZstdDecompressor().decompress(data, max_output_size=LARGEST)
        return cast("list[list[Value]]", _unpack(plain))
    except (zstandard.ZstdError, msgspec.DecodeError) as error:
        raise ValueError(f"not rows: {error}") from error
