"""The keys of access tokens: one HS256 secret, or Ed25519 keys of which the newest signs."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from msgspec import Struct

from holdfast.accounts import actions
from holdfast.errors import CannotStart
from holdfast.settings import Auth
from holdfast.store import Database

SECRET_MIN = 32


class PublicJwk(Struct, frozen=True):
    """A public key as `/.well-known/jwks.json` shows it (RFC 8037)."""

    kid: str
    x: str
    kty: str = "OKP"
    crv: str = "Ed25519"
    use: str = "sig"
    alg: str = "EdDSA"


class Keys(Struct, frozen=True):
    """What signs, and what is accepted, by key id; with one secret there is no key id."""

    algorithm: Literal["HS256", "EdDSA"]
    signing_id: str | None
    signing: bytes | Ed25519PrivateKey
    accepted: Mapping[str | None, bytes | Ed25519PublicKey]

    def __repr__(self) -> str:
        return f"Keys({self.algorithm})"

    def public(self) -> list[PublicJwk]:
        return [_jwk(key) for key in self.accepted.values() if isinstance(key, Ed25519PublicKey)]


def of_secret(secret: str) -> Keys:
    if len(secret) < SECRET_MIN:
        raise CannotStart(f"auth.secret must have at least {SECRET_MIN} characters")
    return Keys("HS256", None, secret.encode(), {None: secret.encode()})


def of_pem(private_pem: bytes, *previous_pems: bytes) -> Keys:
    """An Ed25519 private key, and earlier keys, private or public, whose tokens are still good."""
    signing = _private(private_pem)
    public = [signing.public_key(), *map(_public, previous_pems)]
    accepted: dict[str | None, bytes | Ed25519PublicKey] = {_jwk(key).kid: key for key in public}
    return Keys("EdDSA", _jwk(public[0]).kid, signing, accepted)


async def load(settings: Auth, db: Database) -> Keys:
    """The keys by setting, or else the secret that the store keeps for all its processes."""
    if settings.private_key_file:
        return of_pem(_read(settings.private_key_file), *map(_read, settings.previous_key_files))
    if settings.previous_key_files:
        raise CannotStart("auth.previous_key_files needs auth.private_key_file")
    if settings.secret:
        return of_secret(settings.secret)
    return of_secret(await db.write(actions.keep_secret, secrets.token_urlsafe(48)))


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise CannotStart(f"cannot read the key file {file}: {error.strerror}") from None


def _private(pem: bytes) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CannotStart("auth.private_key_file is not an unencrypted private key in PEM") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise CannotStart("auth.private_key_file is not an Ed25519 key")
    return key


def _public(pem: bytes) -> Ed25519PublicKey:
    if b"PRIVATE KEY" in pem:
        return _private(pem).public_key()
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise CannotStart("a file of auth.previous_key_files is not a key in PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise CannotStart("a file of auth.previous_key_files is not an Ed25519 key")
    return key


def _jwk(key: Ed25519PublicKey) -> PublicJwk:
    x = _base64url(key.public_bytes(Encoding.Raw, PublicFormat.Raw))
    # the key's own thumbprint (RFC 7638): the required members in this order, without spaces
    thumbprint = sha256(msgspec.json.encode({"crv": "Ed25519", "kty": "OKP", "x": x})).digest()
    return PublicJwk(kid=_base64url(thumbprint), x=x)


def _base64url(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()
