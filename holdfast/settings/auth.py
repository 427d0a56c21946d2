"""Users, passwords, tokens."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.settings.fields import Count, means


class Auth(Struct, frozen=True, forbid_unknown_fields=True):
    """Users, passwords, tokens."""

    registration: Annotated[
        Literal["auto", "open", "closed"],
        means("who may register: auto is open while HTTP listens on a loopback address, closed otherwise"),
    ] = "auto"
    single_device: Annotated[bool, means("a login ends every other session of that user")] = False
    access_seconds: Annotated[Count, means("lifetime of an access token")] = 1800
    refresh_days: Annotated[Count, means("lifetime of a refresh token")] = 30
    refresh_grace: Annotated[
        Count, means("seconds for which a refresh token still works after it was exchanged")
    ] = 60
    issuer: Annotated[str, means("the `iss` of our tokens")] = "holdfast"
    secret: Annotated[
        str,
        means("HS256 secret, at least 32 characters; empty: one is made and kept in the store", secret=True),
    ] = ""
    private_key_file: Annotated[
        str,
        means("PEM file with an Ed25519 key: tokens are then EdDSA, public keys at /.well-known/jwks.json"),
    ] = ""
    previous_key_files: Annotated[
        tuple[str, ...], means("PEM files of earlier Ed25519 keys whose tokens are still accepted")
    ] = ()
    login_tries: Annotated[Count, means("failed logins a minute for one name from one address")] = 5
    password_min: Annotated[Count, means("shortest password, in characters")] = 8
    argon2_memory_kib: Annotated[int, Meta(ge=8), means("memory of one argon2id hash")] = 19_456
    argon2_passes: Annotated[Count, means("passes of one argon2id hash")] = 2
    hash_threads: Annotated[Count, means("threads that hash passwords")] = 1
    hash_queue: Annotated[Count, means("logins that may wait for a hash; more are answered with 503")] = 256
