"""`HOST:PORT`, as a listening socket."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from holdfast.errors import CannotStart


@lru_cache(maxsize=10_000)
def neighbourhood(address: str) -> str:
    """What to count by: an IPv4 address, or an IPv6 /64, since whoever has one address of it has all."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        found = found.ipv4_mapped or found
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


BACKLOG = 2_048  # connections the kernel holds for us while we are busy


def split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def is_loopback(address: str) -> bool:
    host, _ = split(address)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listening(address: str) -> socket.socket:
    """A listening socket on `address`, or one sentence that says why not."""
    host, port = split(address)
    if port > 65_535:
        raise CannotStart(f"there is no port {port}: {address}")
    try:
        family, kind, proto, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, proto)
    except OSError as error:
        raise CannotStart(f"cannot listen on {address}: {error.strerror}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setblocking(False)
        listener.bind(where)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno in (98, 48):
            raise CannotStart(
                f"{address} is in use: another server listens there; choose another port"
            ) from None
        raise CannotStart(f"cannot listen on {address}: {error.strerror}") from None
    return listener


def spelled(listener: socket.socket) -> str:
    """The address a socket really has, as `HOST:PORT`."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def write_ready_file(path: Path, addresses: Mapping[str, str]) -> None:
    """Appears in one step: whoever waits for it never reads half of it."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(addresses) + "\n", "utf-8")
    os.replace(part, path)
