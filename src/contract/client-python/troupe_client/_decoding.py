"""
Decodes the data that the server sends. A later server may send members, events and parts of outputs that this version does not
know: those are left out, and are never an error.
"""

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, TypeVar, cast, get_args

import msgspec

from .models import OutputPart

T = TypeVar("T")

_PART_TYPES = {part.__struct_config__.tag for part in get_args(OutputPart)}


@cache
def _decoder(type: Hashable) -> Callable[[bytes | str], Any]:
    """Returns the decoder of a type. It takes time to make one, so each is made once."""
    return msgspec.json.Decoder(cast(Any, type)).decode


def decode(content: bytes | str, type: type[T]) -> T:
    """
    Returns the JSON as a value of `type`. Raises `msgspec.DecodeError` for anything else, and `msgspec.ValidationError` for
    another shape.
    """
    try:
        value: T = _decoder(cast(Hashable, type))(content)
        return value
    except msgspec.ValidationError as error:
        if "Invalid value" not in str(error):
            raise
        return msgspec.convert(_without_unknown_parts(msgspec.json.decode(content)), type)


def decode_event(data: str, union: Any) -> Any:
    """Returns an event of a union. Returns None for an event that this version does not know."""
    try:
        return _decoder(union)(data)
    except msgspec.ValidationError as error:
        # The first is about an unknown type, the second about an unknown word such as a status.
        if "Invalid value" in str(error) or "Invalid enum value" in str(error):
            return None
        raise


def _without_unknown_parts(value: Any) -> Any:
    """Returns decoded JSON without the parts of outputs whose type is unknown, wherever a run is in it."""
    if isinstance(value, list):
        return [_without_unknown_parts(entry) for entry in value]
    if not isinstance(value, dict) or "data" in value:
        return value
    return {
        name: [part for part in member if part.get("type") in _PART_TYPES]
        if name == "parts" and isinstance(member, list)
        else _without_unknown_parts(member)
        for name, member in value.items()
    }
