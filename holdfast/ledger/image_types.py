"""What a file is, by its first bytes: names and declared types are what somebody says. Pure."""

from __future__ import annotations

from msgspec import Struct


class ImageType(Struct, frozen=True):
    mime: str
    ext: str


JPEG = ImageType("image/jpeg", "jpg")
PNG = ImageType("image/png", "png")
GIF = ImageType("image/gif", "gif")
WEBP = ImageType("image/webp", "webp")
HEIC = ImageType("image/heic", "heic")

ENOUGH = 64
"""Bytes after which more of them would not change the answer."""

# ISO/IEC 23008-12: brands of HEVC-coded images; `mif1` and `msf1` only say that it is some image
_HEIC_BRANDS = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"}
_ANY_IMAGE = {b"mif1", b"msf1"}


def image_type(head: bytes) -> ImageType | None:
    """None: not one of the types that are accepted."""
    if head.startswith(b"\xff\xd8\xff"):
        return JPEG
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return PNG
    if head.startswith((b"GIF87a", b"GIF89a")):
        return GIF
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return WEBP
    if head[4:8] == b"ftyp":
        return _of_brands(head)
    return None


def _of_brands(head: bytes) -> ImageType | None:
    length = min(int.from_bytes(head[:4]), len(head), ENOUGH)
    brands = {head[at : at + 4] for at in (8, *range(16, length - 3, 4))}
    if head[8:12] in _HEIC_BRANDS or (head[8:12] in _ANY_IMAGE and brands & _HEIC_BRANDS):
        return HEIC
    return None
