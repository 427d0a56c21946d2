"""What only the library refuses."""

from __future__ import annotations

from holdfast.errors import Conflict, Forbidden, HoldfastError, Invalid


class InvalidChange(Invalid):
    """A change of this push is not valid; nothing was changed."""

    status, number, reason = 400, 20, "invalid_change"

    def __init__(self, entity_id: str | None, why: str) -> None:
        super().__init__(f"{entity_id}: {why}" if entity_id else why, data={"entityId": entity_id})


class InvalidDeleteKey(Invalid):
    """A key in `deletes` is not valid; nothing was changed."""

    status, number, reason = 400, 21, "invalid_delete_key"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"{key!r} is not a key like score:123 (score, instrumentScore, setlist or setlistScore)",
            data={"entityId": key},
        )


class KeyTaken(Conflict):
    """Two living entities would have the same key; nothing was changed."""

    status, number, reason = 409, 20, "key_taken"

    def __init__(self, entity_id: str, what: str) -> None:
        super().__init__(
            f"{entity_id}: another {what} has this key; nothing was changed", data={"entityId": entity_id}
        )


class ProofFailed(Forbidden):
    """This does not prove that you have the file; upload it."""

    status, number, reason = 403, 20, "proof_failed"


class ChecksumMismatch(HoldfastError):
    """The bytes do not have the checksum that came with them; send them again."""

    status, number, reason = 460, 20, "checksum_mismatch"


class WrongTusVersion(HoldfastError):
    """This server speaks tus 1.0.0; say so in `Tus-Resumable`."""

    status, number, reason = 412, 20, "wrong_tus_version"
