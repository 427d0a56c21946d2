"""The password file of `holdfast broker`: one `name:hash` a line, in our own hashes and in Mosquitto's.

| begins with | what it is | from |
|---|---|---|
| `$argon2id$` | argon2id in its usual encoding (PHC) | holdfast, Mosquitto from 2.1 built with argon2 |
| `$7$` | PBKDF2-HMAC-SHA512: iterations, salt, hash | Mosquitto 2.0, 2.1 |
| `$6$` | one SHA-512 over password and salt | Mosquitto 1.6 and earlier |

New passwords are always argon2id. Verifying takes tens of milliseconds on purpose: a listener does it in a
thread. Pure: no file is opened here.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import b64decode
from functools import cache
from typing import Final
from zlib import crc32

import msgspec
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

_HASHER: Final = PasswordHasher()
_SHA512_BYTES: Final = 64
_MAX_ITERATIONS: Final = 10_000_000


class PasswordFileError(ValueError):
    """A line of the file cannot be read; the message names it and never holds the hash."""


class PasswordFile(msgspec.Struct, frozen=True):
    """User names and their password hashes, in the file's order."""

    hashes: dict[str, str] = {}

    def verify(self, username: str, password: bytes) -> bool:
        """Whether this is the user's password. An unknown user takes as long as a wrong password."""
        known = self.hashes.get(username)
        if known is None:
            verify_password(self._somebodys_hash(username), password)
            return False
        return verify_password(known, password)

    def _somebodys_hash(self, username: str) -> str:
        """For one name always the same: in a file of several forms, unknown names are as slow as known ones."""
        if not self.hashes:
            return _nobodys_hash()
        return list(self.hashes.values())[crc32(username.encode()) % len(self.hashes)]

    def with_user(self, username: str, password: bytes) -> PasswordFile:
        """The file with this user added, or with a new password."""
        _check_username(username)
        return PasswordFile({**self.hashes, username: hash_password(password)})

    def without_user(self, username: str) -> PasswordFile:
        return PasswordFile({name: known for name, known in self.hashes.items() if name != username})

    def render(self) -> str:
        return "".join(f"{name}:{known}\n" for name, known in self.hashes.items())


def parse_passwords(text: str) -> PasswordFile:
    """The users of a file, or PasswordFileError."""
    hashes: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        name, colon, known = entry.partition(":")
        if not colon or not name:
            raise PasswordFileError(f"line {number}: not of the form name:hash")
        if name in hashes:
            raise PasswordFileError(f"line {number}: the user {name!r} is there twice")
        if not _is_hash(known):
            raise PasswordFileError(
                f"line {number}: the password of {name!r} is not hashed, or in a form that is not known"
            )
        hashes[name] = known
    return PasswordFile(hashes)


def hash_password(password: bytes) -> str:
    return _HASHER.hash(password)


def verify_password(known: str, password: bytes) -> bool:
    """Whether a password has this hash, in any of the known forms."""
    if not known.isascii():
        return False
    if known.startswith("$argon2"):
        try:
            return _HASHER.verify(known, password)
        except (VerificationError, InvalidHashError):
            return False
    salted = _Salted.read(known)
    return salted is not None and hmac.compare_digest(salted.digest(password), salted.hash)


class _Salted(msgspec.Struct, frozen=True):
    """Mosquitto's own forms; `iterations` is 0 for the single SHA-512."""

    iterations: int
    salt: bytes
    hash: bytes

    @classmethod
    def read(cls, known: str) -> _Salted | None:
        match known.split("$"):
            case ["", "6", salt, digest]:
                iterations = 0
            case ["", "7", count, salt, digest] if count.isascii() and count.isdigit() and len(count) < 9:
                iterations = int(count)
                if not 0 < iterations <= _MAX_ITERATIONS:
                    return None
            case _:
                return None
        try:
            found = cls(iterations, b64decode(salt, validate=True), b64decode(digest, validate=True))
        except (binascii.Error, ValueError):
            return None
        return found if found.salt and len(found.hash) == _SHA512_BYTES else None

    def digest(self, password: bytes) -> bytes:
        if self.iterations:
            return hashlib.pbkdf2_hmac("sha512", password, self.salt, self.iterations)
        return hashlib.sha512(password + self.salt).digest()


def _is_hash(known: str) -> bool:
    if not known.isascii():
        return False
    if not known.startswith("$argon2"):
        return _Salted.read(known) is not None
    try:
        _HASHER.check_needs_rehash(known)
    except InvalidHashError:
        return False
    return True


def _check_username(username: str) -> None:
    if not username or username.startswith("#") or username.strip() != username or not username.isprintable():
        raise ValueError("a user name is not empty and has no control characters, nor blanks around it")
    if ":" in username:
        raise ValueError("a user name contains no colon")


@cache
def _nobodys_hash() -> str:
    return hash_password(b"whoever asks, this is not it")
