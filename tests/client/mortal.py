"""A client in a process of its own that writes as fast as it can, says each thing that a call has returned, and waits to be
killed. Run as a script: REPLICA SERVER CHAT TO."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from pathlib import Path

from holdfast.client import Holdfast

PDF = b"%PDF-1.4\n" + b"x" * 3000


def say(*words: str) -> None:
    """In one write, so that it is said whole or not at all."""
    os.write(1, (" ".join(words) + "\n").encode())


async def write(app: Holdfast, to: str, first: int) -> None:
    books = await app.ledger.books()
    book = books[0] if books else await app.ledger.add_book("Home")
    say("book", book.id)
    for number in itertools.count(first):
        bill = await app.ledger.add_bill(book.id, number, "new", remark=f"bill {number}")
        say("bill", bill.id, "new")
        if number % 3 == 0:
            await app.ledger.change_bill(bill.id, category=f"changed {number}")
            say("bill", bill.id, f"changed {number}")
        if number % 5 == 0:
            await app.ledger.delete_bill(bill.id)
            say("bill", bill.id, "-")
        if number % 7 == 0:
            score = await app.library.add_score(f"Score {number}")
            part = await app.library.add_part(score.id, "Piano", pdf=PDF + str(number).encode())
            say("part", part.id, score.id)
        if number % 2 == 0:
            message = await app.chat.send(f"message {number}", to=to)
            say("message", message.client_msg_id, str(number))


async def main(replica: str, server: str, chat: str, to: str, first: str) -> None:
    async with Holdfast(Path(replica), server=server, chat=chat) as app:
        say("ready")
        await write(app, to, int(first))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:6]))
