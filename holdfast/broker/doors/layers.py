"""What a layer is to the one below it. (What it is to the one above is `Transport`.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from holdfast.broker.transport import Transport


class Consumer(Protocol):
    """Called in the loop's thread; none of these raises."""

    def receive_data(self, data: bytes) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def connection_lost(self) -> None: ...


Above = Callable[[Transport], Consumer]
"""Made when bytes can flow."""
