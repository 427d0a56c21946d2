"""JSON bodies, read strictly: wrong types, NaN and numbers over 63 bits are refused, unknown fields ignored.

`StrictJson` is the application's reader for every handler with a `data` parameter: the bytes become the handler's
type in one step, and an error names the field.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar, cast, get_origin

import msgspec
from litestar.dto import AbstractDTO, DTOConfig
from litestar.dto.data_structures import DTOFieldDefinition
from litestar.openapi.spec import Reference, Schema
from litestar.typing import FieldDefinition

from holdfast.errors import InvalidField, Malformed

T = TypeVar("T")


_decoders: dict[type, msgspec.json.Decoder[object]] = {}


def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    found = _decoders.get(kind)
    if found is None:
        found = _decoders[kind] = cast("msgspec.json.Decoder[object]", msgspec.json.Decoder(kind))
    return cast("msgspec.json.Decoder[T]", found)


def read_json(raw: bytes, kind: type[T]) -> T:
    """`raw` as a `kind`, or an error that names the field."""
    try:
        return _decoder(kind).decode(raw)
    except msgspec.ValidationError as error:
        raise invalid(error) from None
    except msgspec.DecodeError as error:
        raise Malformed(f"The body is not JSON: {error}") from None
    except UnicodeDecodeError:
        raise Malformed("The body is not UTF-8.") from None
    except RecursionError:
        raise Malformed("The body is nested too deeply.") from None


def invalid(error: msgspec.ValidationError) -> InvalidField:
    why, _, where = str(error).partition(" - at ")
    return InvalidField(where.strip("`").removeprefix("$.") or "body", why[:1].lower() + why[1:])


class StrictJson(AbstractDTO[T]):
    """Given to Litestar once, for the whole application."""

    config = DTOConfig()

    _kinds: dict[str, type] = {}  # noqa: RUF012 - filled while the routes are built, by handler

    @classmethod
    def is_supported_model_type_field(cls, field_definition: FieldDefinition) -> bool:
        kind = field_definition.annotation
        if field_definition.name != "data":
            return False
        return get_origin(kind) is not None or (isinstance(kind, type) and issubclass(kind, msgspec.Struct))

    @classmethod
    def create_for_field_definition(
        cls, field_definition: FieldDefinition, handler_id: str, backend_cls: object = None
    ) -> None:
        cls._kinds[handler_id] = field_definition.annotation

    @classmethod
    def create_openapi_schema(
        cls, field_definition: FieldDefinition, handler_id: str, schema_creator: object
    ) -> Reference | Schema:
        made: Reference | Schema = schema_creator.for_field_definition(field_definition)  # type: ignore[attr-defined]
        return made

    def decode_bytes(self, value: bytes) -> object:
        return read_json(value, self._kinds[self.asgi_connection.route_handler.handler_id])

    @classmethod
    def generate_field_definitions(cls, model_type: type) -> Generator[DTOFieldDefinition, None, None]:
        yield from ()

    @classmethod
    def detect_nested_field(cls, field_definition: FieldDefinition) -> bool:
        return False
