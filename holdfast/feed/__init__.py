"""The kernel: logs of spaces, links to their members, positions, pages, checksums, epochs, sweeps.

It knows spaces (numbers), owners (numbers) and entities (a small number for the kind, an id). It must not know
books, bills, HTTP, nor the time: whoever calls tells it. `docs/rooms/feed.md` has the picture.

    def create_bill(tx, …):                                    def changes(view, …):
        space = lock_space(tx, book.space)                         found = page(view, Ask(owner, since, 100), …)
        …rules, the bill's own rows…                               carried = parents_ahead(view, …)
        (done,) = record(tx, now_ms, [Turn(space, changes)])       …the entities' own rows…
"""

from holdfast.feed.digest import Checksum, checksum, revision_hash
from holdfast.feed.epoch import ensure_epoch, new_epoch
from holdfast.feed.head import head
from holdfast.feed.members import (
    is_inside,
    members_of,
    spaces_of,
    version_of,
    was_ever_inside,
    was_inside_at_the_end,
)
from holdfast.feed.page import Ask, Page, Parent, page, page_if_current, parents_ahead
from holdfast.feed.ranges import Entry
from holdfast.feed.record import Recorded, record
from holdfast.feed.space import Change, Space, Turn, lock_space, lock_spaces, open_space
from holdfast.feed.sweep import sweep

__all__ = [
    "Ask",
    "Change",
    "Checksum",
    "Entry",
    "Page",
    "Parent",
    "Recorded",
    "Space",
    "Turn",
    "checksum",
    "ensure_epoch",
    "head",
    "is_inside",
    "lock_space",
    "lock_spaces",
    "members_of",
    "new_epoch",
    "open_space",
    "page",
    "page_if_current",
    "parents_ahead",
    "record",
    "revision_hash",
    "spaces_of",
    "sweep",
    "version_of",
    "was_ever_inside",
    "was_inside_at_the_end",
]
