"""Somebody at the door, as the hooks see him."""

from __future__ import annotations

from msgspec import Struct

from holdfast.broker.hooks import Login


class Guest(Struct, frozen=True):
    """`hooks.Client`."""

    name: str = ""
    client_id: str = "c1"
    is_server: bool = False


def login(
    username: str | None = None,
    password: str | bytes | None = None,
    *,
    address: str = "192.0.2.1",
    certificate_name: str | None = None,
    client_id: str = "c1",
) -> Login:
    return Login(
        client_id=client_id,
        username=username,
        password=password.encode() if isinstance(password, str) else password,
        version=5,
        address=address,
        certificate_name=certificate_name,
    )
