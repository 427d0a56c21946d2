"""What changes books: one function for each operation, over the caller's transaction, for every door.

    deed = bills.create(tx, desk, by, new)      the rules decide, SQL writes the rows
    (done,) = post(tx, by, [deed])              files counted, places in the feeds given, news for after the commit

An operation raises before it writes, or answers a `Deed`. One transaction posts its deeds together and last, since
every feed they touch is locked from there to the commit.
"""

from holdfast.ledger.actions import batch, bills, books, images, membership, uplink
from holdfast.ledger.actions.deed import Deed, Membership, News, Say
from holdfast.ledger.actions.desk import Desk
from holdfast.ledger.actions.post import do, post
from holdfast.ledger.actions.step import Step

__all__ = [
    "Deed",
    "Desk",
    "Membership",
    "News",
    "Say",
    "Step",
    "batch",
    "bills",
    "books",
    "do",
    "images",
    "membership",
    "post",
    "uplink",
]
