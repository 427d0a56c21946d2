"""Compressed bodies, slow bodies, bombs."""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Malformed, WrongType
from holdfast.http.compression import chosen, compressed, inflater
from holdfast.settings import Http
from tests.http.conftest import Served, serving

NOTE = json.dumps({"text": "milk"}).encode()


def packed(encoding: str, body: bytes) -> bytes:
    return gzip.compress(body) if encoding == "gzip" else zstandard.ZstdCompressor().compress(body)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_a_compressed_body_is_read(served: Served, encoding: str) -> None:
    headers = {"Content-Encoding": encoding}
    response = await served.client.post("/echo", content=packed(encoding, NOTE), headers=headers)
    assert response.json()["data"]["text"] == "milk"


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_a_compressed_body_that_was_cut_is_refused(served: Served, encoding: str) -> None:
    headers = {"Content-Encoding": encoding}
    response = await served.client.post("/echo", content=packed(encoding, NOTE)[:-3], headers=headers)
    assert response.status_code == 400


async def test_an_unknown_encoding_is_a_415(served: Served) -> None:
    response = await served.client.post("/echo", content=NOTE, headers={"Content-Encoding": "br"})
    assert response.status_code == 415
    assert "gzip" in response.json()["message"]


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_a_bomb_is_refused_before_it_has_grown(served: Served, encoding: str) -> None:
    bomb = packed(encoding, bytes(400_000_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    response = await served.client.post("/echo", content=bomb, headers={"Content-Encoding": encoding})
    assert response.status_code == 413
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64_000


async def test_a_body_that_its_client_cuts_is_a_400_and_no_mistake_of_ours(served: Served) -> None:
    host, port = served.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
    writer.write_eof()
    said = await asyncio.wait_for(reader.read(), 5)
    assert not said or said.startswith(b"HTTP/1.1 400"), said
    writer.close()
    await writer.wait_closed()


async def test_a_body_that_stands_still_is_given_up() -> None:
    async with serving(Http(body_timeout=0.2)) as served:
        host, port = served.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()
        head = await asyncio.wait_for(reader.readline(), 5)
        assert b" 400 " in head
        writer.close()
        await writer.wait_closed()


@given(
    body=st.binary(max_size=300_000), encoding=st.sampled_from(["gzip", "zstd"]), cut=st.integers(1, 70_000)
)
def test_what_was_compressed_comes_back_however_it_arrives(body: bytes, encoding: str, cut: int) -> None:
    stream = inflater(encoding)
    data = compressed(body, encoding)  # type: ignore[arg-type]
    pieces = [piece for at in range(0, len(data), cut) for piece in stream.feed(data[at : at + cut])]
    stream.finish()
    assert b"".join(pieces) == body


@given(junk=st.binary(max_size=2_000), encoding=st.sampled_from(["gzip", "zstd"]))
def test_junk_is_malformed_and_nothing_else(junk: bytes, encoding: str) -> None:
    stream = inflater(encoding)
    try:
        for _ in stream.feed(junk):
            pass
        stream.finish()
    except Malformed:
        return
    assert junk[:2] == b"\x1f\x8b" or junk[:4] == b"\x28\xb5\x2f\xfd"


@pytest.mark.parametrize(
    ("accepted", "best"),
    [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip", "gzip"),
        ("zstd;q=0, gzip", "gzip"),
        ("identity", None),
        ("", None),
        ("*", "zstd"),
        ("gzip;q=1.0, *;q=0", "gzip"),
        ("gzip;q=zero", None),
    ],
)
def test_the_best_encoding_that_the_client_accepts(accepted: str, best: str | None) -> None:
    assert chosen(accepted) == best


def test_only_encodings_that_we_know() -> None:
    with pytest.raises(WrongType):
        inflater("deflate")
    assert zlib.decompress(compressed(b"a" * 5000, "gzip"), wbits=31) == b"a" * 5000
