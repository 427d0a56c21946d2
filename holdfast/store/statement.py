"""SQL, written once for both databases, as named statements beside the code that uses them.

The text is PostgreSQL's with `:name` parameters. On SQLite three things read differently and are translated
here: row locks vanish (the one writer holds the whole file), `= ANY(:list)` reads the list as JSON, and lines
that begin with `--sqlite:` or `--postgresql:` hold for that database alone. Nothing else is rewritten: what
the two cannot share stands in such lines, to be seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

Backend = Literal["sqlite", "postgresql"]
Value = int | str | bytes | float | bool | None
Parameter = Value | list[int] | list[str]

R = TypeVar("R")

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_LOCK = re.compile(
    r"\bFOR\s+(NO\s+KEY\s+UPDATE|UPDATE|SHARE|KEY\s+SHARE)(\s+OF\s+\w+(\s*,\s*\w+)*)?(\s+(SKIP\s+LOCKED|NOWAIT))?",
    re.I,
)
_TRANSACTION = re.compile(r"\s*(BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE)\b", re.I)
_ANY = re.compile(r"=\s*ANY\s*\(\s*:([a-z_][a-z0-9_]*)\s*\)", re.I)
_SCALARS = (int, str, bytes, float)


def lines_for(backend: Backend, text: str) -> str:
    """The lines of `text` that hold for `backend`."""
    kept = []
    for line in text.splitlines():
        bare = line.lstrip()
        if bare.startswith("--sqlite:"):
            line = bare.removeprefix("--sqlite:") if backend == "sqlite" else ""
        elif bare.startswith("--postgresql:"):
            line = bare.removeprefix("--postgresql:") if backend == "postgresql" else ""
        kept.append(line)
    return "\n".join(kept).strip()


class Statement:
    """A statement that changes rows and returns none.

    `names` are its parameters in the order in which they first appear: the order of a row for `execute_many`.
    """

    __slots__ = ("lists", "names", "postgresql", "sqlite")

    def __init__(self, text: str) -> None:
        if _TRANSACTION.match(text):
            raise ValueError(f"transactions are the store's: {text}")
        sqlite = lines_for("sqlite", text)
        self.lists: Final = frozenset(_ANY.findall(sqlite))
        sqlite = _ANY.sub(r"IN (SELECT value FROM json_each(:\1))", sqlite)
        self.sqlite: Final = _LOCK.sub("", sqlite)
        postgresql = lines_for("postgresql", text).replace("%", "%%")
        self.postgresql: Final = _PARAMETER.sub(r"%(\1)s", postgresql)
        self.names: Final = tuple(dict.fromkeys(_PARAMETER.findall(sqlite)))


class Query(Statement, Generic[R]):
    """A statement that returns rows, and what one row is.

    `Query(int, …)`: the first column. `Query(tuple[int, str], …)`: the row as it comes. `Query(User, …)`: the
    columns, in their order, are what the class is made from; SQLite's 0 and 1 become its bools.
    """

    __slots__ = ("make",)

    def __init__(self, row: type[R], text: str) -> None:
        super().__init__(text)
        self.make: Final[Callable[[tuple[Value, ...]], R] | None] = _maker(row)


def _maker(row: type[R]) -> Callable[[tuple[Value, ...]], R] | None:
    if get_origin(row) is tuple:
        if bool in get_args(row):
            raise TypeError("SQLite has no bool: name the columns in a class, or read an int")
        return None
    if row is bool:
        return lambda columns: bool(columns[0])  # type: ignore[return-value]
    if row in _SCALARS:
        return lambda columns: columns[0]  # type: ignore[return-value]
    build: Callable[..., R] = row
    flags = [at for at, hint in enumerate(get_type_hints(row).values()) if hint is bool]
    if not flags:
        return lambda columns: build(*columns)

    def with_bools(columns: tuple[Value, ...]) -> R:
        values = list(columns)
        for at in flags:
            values[at] = bool(values[at])
        return build(*values)

    return with_bools
