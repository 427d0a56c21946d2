"""The offline-first client: every create, change, delete and read is local and at once; it settles by itself.

    from holdfast.client import Holdfast

    async with Holdfast("home.db", server="127.0.0.1:8000") as app:
        book = await app.ledger.add_book("Our home")
        await app.ledger.add_bill(book.id, "12.50", "lunch")

Installing holdfast alone brings this and nothing of the server. docs/client.md shows the rest.
"""

from holdfast.client.blocking import Blocking
from holdfast.client.chat.model import Conversation, Group, Message
from holdfast.client.errors import (
    AlreadyHere,
    AnotherUser,
    Busy,
    ClientError,
    DamagedFile,
    InvalidValue,
    LoginNeeded,
    NotHere,
    NotOwner,
    Offline,
    Refused,
    ReplicaClosed,
    ReplicaTooNew,
    Unanswered,
)
from holdfast.client.holdfast import Client, Holdfast
from holdfast.client.ledger.model import Bill, Book, Image, Lost, Refusal, ShareCode
from holdfast.client.library.model import Entry, Part, Score, Setlist
from holdfast.client.news import (
    ChangeLost,
    ChatEnded,
    Differs,
    Event,
    Fault,
    LoggedOut,
    MessageArrived,
    Online,
    Parked,
    Signal,
    Status,
    Synced,
    Transfer,
    Verified,
    Waiting,
)
from holdfast.client.notes import notes
from holdfast.client.timing import Timing

__all__ = [
    "AlreadyHere",
    "AnotherUser",
    "Bill",
    "Blocking",
    "Book",
    "Busy",
    "ChangeLost",
    "ChatEnded",
    "Client",
    "ClientError",
    "Conversation",
    "DamagedFile",
    "Differs",
    "Entry",
    "Event",
    "Fault",
    "Group",
    "Holdfast",
    "Image",
    "InvalidValue",
    "LoggedOut",
    "LoginNeeded",
    "Lost",
    "Message",
    "MessageArrived",
    "NotHere",
    "NotOwner",
    "Offline",
    "Online",
    "Parked",
    "Part",
    "Refusal",
    "Refused",
    "ReplicaClosed",
    "ReplicaTooNew",
    "Score",
    "Setlist",
    "ShareCode",
    "Signal",
    "Status",
    "Synced",
    "Timing",
    "Transfer",
    "Unanswered",
    "Verified",
    "Waiting",
    "notes",
]
