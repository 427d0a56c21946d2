"""The library's files."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from holdfast.settings.fields import MIB, Bytes, means


class Files(Struct, frozen=True, forbid_unknown_fields=True):
    """The library's files."""

    instant_upload: Annotated[
        Literal["proof", "open", "off"],
        means(
            "a file that is known already: proof asks the client to show that it has it, open believes it,"
            " off asks for the file"
        ),
    ] = "proof"
    proof_bytes: Annotated[
        Bytes, means("bytes of a file that a client is asked about to show that it has the file")
    ] = MIB
