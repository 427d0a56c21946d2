"""One tree of errors for the whole product.

Every error a user can meet is a class here or a child of one, with a stable number and a stable word;
the class docstring is the sentence shown when nobody has a better one. Doors turn them into answers
(`http.envelope`, the gateway, the uplink); nothing else knows status codes. This module imports nothing.

A room's own errors stand in its `errors.py`, as children of these, with numbers of its own: 0 to 9 everybody's,
10 ledger, 20 library, 30 chat, 40 blobs, 50 broker (ten each).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class HoldfastError(Exception):
    """Something went wrong on the server."""

    status: ClassVar[int] = 500
    number: ClassVar[int] = 0
    reason: ClassVar[str] = "internal_error"

    by_code: ClassVar[dict[int, type[HoldfastError]]] = {}

    def __init__(
        self,
        message: str | None = None,
        *,
        retry_after: float | None = None,
        data: object | None = None,
    ) -> None:
        self.message = message or type(self).__doc__ or self.reason
        self.retry_after = retry_after
        self.data = data
        super().__init__(self.message)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        taken = HoldfastError.by_code.setdefault(cls.code(), cls)
        if taken.reason != cls.reason:
            raise TypeError(f"{cls.__name__} and {taken.__name__} share the code {cls.code()}")

    @classmethod
    def code(cls) -> int:
        """The stable number of the wire: `status * 100 + n`."""
        return cls.status * 100 + cls.number


HoldfastError.by_code[HoldfastError.code()] = HoldfastError


# 400: what was sent cannot be understood, or is not allowed to look like this


class Invalid(HoldfastError):
    """The request is not valid."""

    status, number, reason = 400, 0, "invalid"


class Malformed(Invalid):
    """The body is not well formed."""

    status, number, reason = 400, 1, "malformed"


class InvalidField(Invalid):
    """A field has a wrong value."""

    status, number, reason = 400, 2, "invalid_field"

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}", data={"field": field})
        self.field = field


# 401: who are you?


class NotLoggedIn(HoldfastError):
    """Log in first: send an access token as `Authorization: Bearer …`."""

    status, number, reason = 401, 0, "not_logged_in"


class InvalidToken(NotLoggedIn):
    """The token is not valid; log in again."""

    status, number, reason = 401, 1, "invalid_token"


class TokenExpired(NotLoggedIn):
    """The token has expired; refresh it or log in again."""

    status, number, reason = 401, 2, "token_expired"


class SessionInvalid(NotLoggedIn):
    """This session was ended; log in again."""

    status, number, reason = 401, 3, "session_invalid"


class WrongCredentials(NotLoggedIn):
    """The user name or the password is wrong."""

    status, number, reason = 401, 4, "wrong_credentials"


# 403, 404, 405, 409, 412, 413, 415


class Forbidden(HoldfastError):
    """You may not do this."""

    status, number, reason = 403, 0, "forbidden"


class RegistrationClosed(Forbidden):
    """Registration is closed on this server; ask its operator for an account."""

    status, number, reason = 403, 1, "registration_closed"


class NotFound(HoldfastError):
    """There is no such thing here."""

    status, number, reason = 404, 0, "not_found"


class FileGone(NotFound):
    """There is no such file."""

    status, number, reason = 404, 40, "file_gone"


class MethodNotAllowed(HoldfastError):
    """This address does not take that method."""

    status, number, reason = 405, 0, "method_not_allowed"


class Conflict(HoldfastError):
    """This is in conflict with what is there."""

    status, number, reason = 409, 0, "conflict"


class NameTaken(Conflict):
    """This user name is taken."""

    status, number, reason = 409, 1, "name_taken"


class KeyReused(Conflict):
    """This Idempotency-Key was used for another request."""

    status, number, reason = 409, 2, "idempotency_key_reused"


class AlreadyThere(Conflict):
    """A row with this key exists."""

    status, number, reason = 409, 3, "already_there"


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


class VersionConflict(HoldfastError):
    """Somebody else was first; get the newer version and try again."""

    status, number, reason = 412, 0, "version_conflict"


class TooLarge(HoldfastError):
    """This is larger than allowed."""

    status, number, reason = 413, 0, "too_large"


class WrongType(HoldfastError):
    """This type of content is not accepted here."""

    status, number, reason = 415, 0, "wrong_type"


class RangeNotSatisfiable(HoldfastError):
    """The file does not have these bytes."""

    status, number, reason = 416, 0, "range_not_satisfiable"


class TooManyRequests(HoldfastError):
    """Too many requests; wait a moment."""

    status, number, reason = 429, 0, "too_many_requests"


class TooManyLogins(TooManyRequests):
    """Too many failed logins for this name from this address; wait a moment."""

    status, number, reason = 429, 1, "too_many_logins"


# 500 and 503: us


class ActionFailed(HoldfastError):
    """The server made a mistake; its log says more under this request's id."""

    status, number, reason = 500, 1, "action_failed"


class Unavailable(HoldfastError):
    """The service is not available at the moment; try again."""

    status, number, reason = 503, 0, "unavailable"

    def __init__(self, message: str | None = None, *, retry_after: float | None = 1.0) -> None:
        super().__init__(message, retry_after=retry_after)


class QueueFull(Unavailable):
    """The server has more to write than it can take at the moment; try again."""

    status, number, reason = 503, 1, "queue_full"


class StoreUnavailable(Unavailable):
    """The store cannot be reached at the moment; try again."""

    status, number, reason = 503, 2, "store_unavailable"


class DiskFull(StoreUnavailable):
    """The disk is full: nothing can be written until there is room."""

    status, number, reason = 503, 3, "disk_full"


class OutcomeUnknown(StoreUnavailable):
    """The commit failed and nobody knows whether it took place; send the same request again."""

    status, number, reason = 503, 4, "outcome_unknown"


class ReadTooLong(StoreUnavailable):
    """This took too long to read; ask for less at a time."""

    status, number, reason = 503, 5, "read_too_long"


class Stopping(Unavailable):
    """The server is stopping; try again in a moment."""

    status, number, reason = 503, 6, "stopping"


class FilesUnavailable(Unavailable):
    """The files cannot be reached at the moment; try again."""

    status, number, reason = 503, 40, "files_unavailable"


class CannotStart(Exception):
    """Something outside keeps holdfast from starting; the message is the one sentence to show (exit code 2)."""


def catalogue() -> Mapping[int, type[HoldfastError]]:
    """Every code this build can answer, for the documentation and the test that keeps it complete."""
    return dict(sorted(HoldfastError.by_code.items()))
