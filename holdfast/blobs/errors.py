"""What a user can meet when files are involved; children of the one tree in `holdfast.errors`."""

from __future__ import annotations

from holdfast.errors import Conflict, NotFound, Unavailable


class FileMissing(Conflict):
    """The file is not here; upload it first."""

    status, number, reason = 409, 40, "file_missing"


class DigestTaken(Conflict):
    """Another file with this MD5 is here."""

    status, number, reason = 409, 41, "digest_taken"


class WrongDigest(Conflict):
    """The content is not what its hash says."""

    status, number, reason = 409, 42, "wrong_digest"


class WrongOffset(Conflict):
    """The upload stands at another offset; ask where, and continue there."""

    status, number, reason = 409, 43, "wrong_offset"

    def __init__(self, received: int) -> None:
        super().__init__(data={"offset": received})
        self.received = received


class FileGone(NotFound):
    """There is no such file."""

    status, number, reason = 404, 40, "file_gone"


class FilesUnavailable(Unavailable):
    """The files cannot be reached at the moment; try again."""

    status, number, reason = 503, 40, "files_unavailable"
