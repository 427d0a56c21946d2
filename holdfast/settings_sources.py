"""Where settings come from: flags over environment over file over default, each value with its origin."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import msgspec

from holdfast.errors import CannotStart
from holdfast.settings import Settings

PREFIX = "HOLDFAST_"
NOT_SETTINGS = frozenset({"HOLDFAST_CONFIG", "HOLDFAST_RESTARTS", "HOLDFAST_TOKEN", "HOLDFAST_URL"})


class Row(msgspec.Struct, frozen=True):
    """One setting as `holdfast settings` and the documentation show it."""

    name: str
    default: object
    help: str
    secret: bool
    listed: bool  # a list: commas in the environment and on the command line

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper().replace(".", "_")


class Loaded(msgspec.Struct, frozen=True):
    settings: Settings
    origins: Mapping[str, str]

    def value(self, row: Row) -> object:
        found: object = self.settings
        for part in row.name.split("."):
            found = getattr(found, part)
        return found


def rows() -> list[Row]:
    """Every setting there is, in the order of the settings file."""
    return list(_rows_of(Settings, ""))


def _rows_of(section: type[msgspec.Struct], path: str) -> Iterator[Row]:
    hints = get_type_hints(section, include_extras=True)
    for field in msgspec.structs.fields(section):
        name = path + field.name
        hint = hints[field.name]
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield from _rows_of(hint, name + ".")
            continue
        meta = next((m for m in get_args(hint)[1:] if isinstance(m, msgspec.Meta) and m.description), None)
        if meta is None or meta.description is None:
            raise TypeError(f"the setting {name} has no description")
        yield Row(
            name=name,
            default=field.default,
            help=meta.description,
            secret=bool((meta.extra or {}).get("secret")),
            listed=get_origin(get_args(hint)[0]) is tuple,
        )


def load(
    flags: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Loaded:
    """Settings from all sources; raises `CannotStart` with one sentence that names the source and the key."""
    known = {row.name: row for row in rows()}
    values: dict[str, object] = {}
    origins: dict[str, str] = dict.fromkeys(known, "default")

    def put(name: str, value: object, origin: str) -> None:
        row = known.get(name)
        if row is None:
            raise CannotStart(f"{origin}: there is no setting {name!r}; `holdfast settings` lists them all")
        if row.listed and isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        values[name] = value
        origins[name] = origin

    if file is not None:
        for name, value in _flat(_read(file), known):
            put(name, value, f"file {file}")
    by_variable = {row.variable: row.name for row in known.values()}
    for variable, text in (environ or {}).items():
        if variable.startswith(PREFIX) and variable not in NOT_SETTINGS:
            put(by_variable.get(variable, variable), text, f"environment {variable}")
    for name, text in (flags or {}).items():
        put(name, text, "command line")
    return Loaded(_convert(values, origins), origins)


def _convert(values: Mapping[str, object], origins: Mapping[str, str]) -> Settings:
    tree: dict[str, object] = {}
    for name, value in values.items():
        *path, last = name.split(".")
        at = tree
        for part in path:
            at = at.setdefault(part, {})  # type: ignore[assignment]
        at[last] = value
    try:
        return msgspec.convert(tree, Settings, strict=False)
    except msgspec.ValidationError as error:
        why, _, where = str(error).partition(" - at ")
        name = where.strip("`").removeprefix("$.").partition("[")[0]
        if "regex" in why:  # the one pattern is that of an address
            why = f"{values.get(name)!r} is not HOST:PORT, for instance 127.0.0.1:8000"
        raise CannotStart(f"{origins.get(name, 'settings')}: {name}: {why[:1].lower()}{why[1:]}") from None


def _read(file: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise CannotStart(f"cannot read the settings file {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CannotStart(f"the settings file {file} is not valid TOML: {error}") from None


def _flat(
    table: Mapping[str, object], known: Mapping[str, Row], path: str = ""
) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        name = path + key
        if isinstance(value, Mapping) and name not in known:
            yield from _flat(value, known, name + ".")
        else:
            yield name, value
