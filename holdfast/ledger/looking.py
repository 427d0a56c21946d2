"""What may be seen or done, read from a snapshot: for answers that need no lock, or must come before the work."""

from __future__ import annotations

from msgspec import Struct

from holdfast import blobs, feed
from holdfast.blobs import Blob
from holdfast.errors import FileGone, NotFound
from holdfast.ids import is_xid
from holdfast.ledger import queries as sql
from holdfast.ledger.errors import Deleted
from holdfast.ledger.model import StoredImage
from holdfast.ledger.rules import require_creator
from holdfast.store import Snapshot


class Visible(Struct, frozen=True):
    image: StoredImage
    blob: Blob


def visible_image(view: Snapshot, user_id: int, id_: str) -> Visible:
    """An image and its file, for a member of its book."""
    image = view.row(sql.IMAGE, id=id_) if is_xid(id_) else None
    if image is None or not feed.is_inside(view, user_id, image.space):
        raise NotFound
    if image.deleted_ms is not None:
        raise Deleted
    blob = blobs.find(view, image.sha256)
    if blob is None:
        raise FileGone
    return Visible(image, blob)


def require_own_bill(view: Snapshot, user_id: int, bill_id: str) -> None:
    """That he may add an image to this bill, as far as can be told before it is added."""
    bill = view.row(sql.BILL, id=bill_id) if is_xid(bill_id) else None
    if bill is None or not feed.is_inside(view, user_id, bill.space):
        raise NotFound
    if bill.deleted_ms is not None:
        raise Deleted
    require_creator(user_id, bill.creator)
