"""What the rows of settings are written with."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

KIB = 1024
MIB = 1024 * KIB

Address = Annotated[
    str, Meta(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^:\s\[\]]+):\d{1,5}$", examples=["127.0.0.1:8000"])
]
Door = Annotated[
    str, Meta(pattern=r"^((\[[0-9A-Fa-f:.]+\]|[^:\s\[\]]+):\d{1,5})?$", examples=["127.0.0.1:8883"])
]
"""An address, or empty: that door stays closed."""
Count = Annotated[int, Meta(ge=1)]
Bytes = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


def means(help_text: str, *, secret: bool = False) -> Meta:
    return Meta(description=help_text, extra={"secret": secret})
