"""Types by content: what a file is called, and what its sender says it is, is not looked at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.ledger.image_types import ENOUGH, GIF, HEIC, JPEG, PNG, WEBP, ImageType, image_type


def heif(*brands: bytes, length: int | None = None) -> bytes:
    body = b"ftyp" + brands[0] + b"\0\0\0\0" + b"".join(brands[1:])
    return (len(body) + 4 if length is None else length).to_bytes(4) + body + b"\0\0\0\x08meta"


KNOWN = [
    (b"\xff\xd8\xff\xe0\x00\x10JFIF", JPEG),
    (b"\xff\xd8\xff\xe1\x00\x10Exif", JPEG),
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"GIF87a", GIF),
    (b"GIF89a", GIF),
    (b"RIFF\x10\0\0\0WEBPVP8 ", WEBP),
    (heif(b"heic", b"mif1"), HEIC),
    (heif(b"heix"), HEIC),
    (heif(b"mif1", b"miaf", b"heic"), HEIC),
    (heif(b"msf1", b"hevc"), HEIC),
    (heif(b"mif1", b"avif"), None),
    (heif(b"avif", b"mif1", b"heic"), None),
    (heif(b"isom", b"mp42"), None),
    (heif(b"mif1", b"xxxx", length=2**32 - 1)[:16], None),
    (b"RIFF\x10\0\0\0WAVEfmt ", None),
    (b"GIF88a", None),
    (b"\xff\xd8", None),
    (b"\x89PNG\n\x1a\n", None),
    (b"%PDF-1.7", None),
    (b"<svg xmlns='http://www.w3.org/2000/svg'>", None),
    (b"<html><script>", None),
    (b"BM6\0\0\0", None),
    (b"", None),
]


@pytest.mark.parametrize(("head", "kind"), KNOWN)
def test_a_file_is_what_its_first_bytes_say(head: bytes, kind: ImageType | None) -> None:
    assert image_type(head) == kind
    assert image_type(head + b"\0" * 200) == kind
    assert image_type(b" " + head) is None


@given(st.binary(max_size=100))
def test_any_bytes_have_an_answer_and_more_bytes_do_not_change_it(head: bytes) -> None:
    if len(head) >= ENOUGH:
        assert image_type(head) == image_type(head[:ENOUGH])
