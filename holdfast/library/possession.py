"""Who has a file: by having sent it, or by proving it. Knowing a hash is not having a file.

A proof answers a challenge: some bytes of the file, which the server chooses, hashed behind a word that it made up.
Which bytes it asks a user for is always the same for one file, so that nobody can ask until they fit what he has.
The challenge is not kept: it travels in its own id, under our signature.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64

import msgspec

from holdfast.blobs import Blob, claim
from holdfast.errors import InvalidField
from holdfast.library import queries as sql
from holdfast.library.actions import holder
from holdfast.store import Query, Statement, Transaction

SECONDS = 300
SIGNATURE = 16

_MAKE = Statement("INSERT INTO meta (name, value) VALUES ('library.proof', :key) ON CONFLICT DO NOTHING")
_READ = Query(str, "SELECT value FROM meta WHERE name = 'library.proof'")


def proof_key(tx: Transaction) -> bytes:
    """What challenges are signed with; the first to ask makes it."""
    tx.execute(_MAKE, key=secrets.token_hex(32))
    return bytes.fromhex(tx.one(_READ))


class Challenge(msgspec.Struct, frozen=True, array_like=True):
    user_id: int
    sha256: str
    offset: int
    length: int
    nonce: str
    until_ms: int


def challenge(key: bytes, user_id: int, blob: Blob, most: int, now_ms: int) -> Challenge:
    length = min(most, blob.size)
    word = hmac.digest(key, f"{user_id} {blob.sha256}".encode(), "sha256")
    offset = int.from_bytes(word) % (blob.size - length + 1)
    return Challenge(user_id, blob.sha256, offset, length, secrets.token_hex(16), now_ms + SECONDS * 1000)


def sealed(key: bytes, made: Challenge) -> str:
    said = msgspec.msgpack.encode(made)
    return urlsafe_b64encode(hmac.digest(key, said, "sha256")[:SIGNATURE] + said).decode()


def unsealed(key: bytes, claim_id: str, user_id: int, now_ms: int) -> Challenge:
    try:
        raw = urlsafe_b64decode(claim_id.encode())
    except (NotBase64, ValueError):
        raise InvalidField("claimId", "is not one of ours") from None
    said = raw[SIGNATURE:]
    if not hmac.compare_digest(hmac.digest(key, said, "sha256")[:SIGNATURE], raw[:SIGNATURE]):
        raise InvalidField("claimId", "is not one of ours")
    made = msgspec.msgpack.decode(said, type=Challenge)
    if made.user_id != user_id or made.until_ms < now_ms:
        raise InvalidField("claimId", "has expired; ask for another one")
    return made


def answered(made: Challenge, pieces: bytes) -> str:
    """What whoever has the bytes answers."""
    return hashlib.sha256(made.nonce.encode() + pieces).hexdigest()


def possess(tx: Transaction, user_id: int, sha256: str) -> None:
    tx.execute(sql.POSSESS, user=user_id, sha256=sha256)


def claim_proved(tx: Transaction, user_id: int, sha256: str, until_ms: int) -> None:
    """The file is kept for this user until then, who may refer to it. Raises `FileMissing`."""
    claim(tx, sha256, holder(user_id), until_ms)
    possess(tx, user_id, sha256)
