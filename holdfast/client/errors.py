"""What an app can meet when it calls the client. Imports nothing.

Only a call that asks the server something itself (logging in, sharing a book) raises `Offline` or `Refused`; what is
written locally never does: a refusal that comes later is kept with its row (`parked`) and told as an event.
"""

from __future__ import annotations


class ClientError(Exception):
    """Something went wrong in the client."""


class NotOwner(ClientError):
    """Only who made this may change it."""


class NotHere(ClientError):
    """There is no such thing in this replica."""


class InvalidValue(ClientError):
    """A value that the server would refuse; nothing was changed."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field = field


class AlreadyHere(ClientError):
    """Something with this key is in the library already."""


class Offline(ClientError):
    """The server cannot be reached at the moment; what you wrote is kept and goes out later."""


class LoginNeeded(ClientError):
    """Log in: there is no session, or the server has ended it. What you wrote is kept."""


class AnotherUser(ClientError):
    """This replica belongs to another user; open one of your own for this one."""


class ReplicaTooNew(ClientError):
    """This replica was written by a newer version of holdfast."""


class ReplicaClosed(ClientError):
    """The replica is closed."""


class DamagedFile(ClientError):
    """What arrived is not the file that was asked for."""


class Refused(ClientError):
    """The server answered no: `status`, the stable number `code`, the stable word `reason`, and a sentence."""

    def __init__(
        self, status: int, code: int, reason: str, message: str, *, retry_after: float | None = None
    ) -> None:
        super().__init__(message or reason)
        self.status = status
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.data: object = None


class Unanswered(Offline):
    """A request that got no whole answer: nobody knows whether it took place."""


class Busy(Offline):
    """The server is there and asks to be left alone for a while (429, 503, or it failed with 500)."""

    def __init__(self, status: int, message: str, retry_after: float | None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
