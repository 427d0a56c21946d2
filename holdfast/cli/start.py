"""What `holdfast` does first: it finds out what is installed. The core is the client alone; the command line for it is
the extra `app`, the server the extra `server`. Imports nothing that may be missing."""

from __future__ import annotations

import sys
from importlib.util import find_spec

NEITHER = (
    "this is the client's library alone; for the command line: pip install 'holdfast[app]',"
    " for the server: pip install 'holdfast[server]'"
)
NO_SERVER = (
    "the server is not installed (only `holdfast app …` is); for the server: pip install 'holdfast[server]'"
)


def main() -> None:
    if find_spec("typer") is None or find_spec("rich") is None:
        sys.exit(_says(NEITHER))
    if sys.argv[1:2] == ["app"]:  # a client's command does not wait for a server's modules
        from holdfast.cli.app import main as only_app

        only_app(sys.argv[2:])
        return
    if find_spec("litestar") is None:
        sys.exit(_says(NO_SERVER))
    from holdfast.cli.main import main as everything

    everything()


def _says(sentence: str) -> int:
    print(f"holdfast: {sentence}", file=sys.stderr)  # noqa: T201 - the one sentence for the person
    return 2
