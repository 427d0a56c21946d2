"""How SQLite finds the rows of each statement: by keys, never by reading a table to sift it.

It guesses what a statement costs without having counted any rows, and where it is asked for a list of ids in one
space it has guessed wrong before: a page of a feed of 100,000 then took 20 ms instead of half of one.
"""

from __future__ import annotations

import importlib
import pkgutil
import re

import apsw

import holdfast
from holdfast import app
from holdfast.store import Statement
from holdfast.store.migrations import of_rooms
from tests.servers.stores import SqliteStores

WALKERS = ("check", "verify", "backup")
"""Modules that read everything, because that is what they are for."""
SIFTS = re.compile(r"BLOOM FILTER|AUTOMATIC")


def statements() -> list[tuple[str, Statement]]:
    found = {}
    for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
        if module.name.endswith(("__main__", *WALKERS)):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Statement):
                found[value.sqlite] = (f"{module.name}.{name}", value)
    return list(found.values())


async def test_no_statement_reads_a_whole_table_to_sift_it(sqlite_stores: SqliteStores) -> None:
    async with sqlite_stores(of_rooms(*app.ROOMS)):
        pass
    connection = apsw.Connection(sqlite_stores.where)
    sifting = {}
    for name, statement in statements():
        named = dict.fromkeys(re.findall(r"(?<![:\w]):(\w+)", statement.sqlite))
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement.sqlite}", named)]
        if any(SIFTS.search(str(line)) for line in plan):
            sifting[name] = plan
    connection.close()
    assert not sifting
