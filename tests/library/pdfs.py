"""PDFs for tests, and two different ones with one MD5."""

from __future__ import annotations

import hashlib
import random

# The pair of Wang, Feng, Lai and Yu (2004). A PDF's mark may come later in its first KiB, so what follows both blocks
# makes PDFs of them, and their MD5 stays the same.
_PREFIX = "d131dd02c5e6eec4693d9a0698aff95c2fcab5{}12467eab4004583eb8fb7f8955ad340609f4b30283e4888325{}415a085125e8f7"
_MIDDLE = "cdc99fd91dbd{}80373c5bd8823e3156348f5bae6dacd436c919c6dd53e2{}87da03fd02396306d248cda0e99f33420f577ee8ce54"
_END = "b67080{}0d1ec69821bcb6a8839396f965{}6ff72a70"
_BLOCKS = _PREFIX + _MIDDLE + _END


def pdf(seed: int = 0, size: int = 3_000) -> bytes:
    """Another one for each seed."""
    return b"%PDF-1.7\n" + random.Random(seed).randbytes(size - 15) + b"\n%%EOF"


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def colliding() -> tuple[bytes, bytes]:
    tail = pdf(1)
    first = bytes.fromhex(_BLOCKS.format("87", "71", "f2", "b4", "a8", "2b")) + tail
    second = bytes.fromhex(_BLOCKS.format("07", "f1", "72", "34", "28", "ab")) + tail
    assert first != second
    assert md5(first) == md5(second)
    return first, second
