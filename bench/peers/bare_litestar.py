"""The bare framework: Litestar as its documentation starts, one handler that says ok, on Granian embedded as we do.

python -m bench.peers.bare_litestar PORT
"""

from __future__ import annotations

import sys

from litestar import Litestar, get

from bench.peers.bare_granian import serve


@get("/noop")
async def noop() -> dict[str, str]:
    return {"status": "ok"}


if __name__ == "__main__":
    serve(Litestar([noop], openapi_config=None, logging_config=None), int(sys.argv[1]))
