"""Converts JSON to the dataclasses of `fhaim.models` and back, by their annotations."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, Literal, Union
from uuid import UUID

from fhaim.errors import Error


def encode(value: Any) -> Any:
    """Converts a value for `json.dumps`. Absent fields are left out."""
    if dataclasses.is_dataclass(value):
        fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: encode(content) for name, content in fields if content is not None}
    if isinstance(value, dict):
        return {name: encode(content) for name, content in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat()
    return value


def decode(kind: Any, value: Any) -> Any:
    """Converts JSON to a value of a kind. Unknown fields are ignored, so that a newer service can
    be read."""
    try:
        return _decode(kind, value)
    except (KeyError, TypeError, ValueError) as error:
        name = getattr(kind, "__name__", str(kind))
        detail = f"expected a {name}: {error}"
        raise Error(
            "unreadable",
            "A service's answer cannot be read",
            detail,
            way_out="Update this package, or check the address.",
        ) from error


def _decode(kind: Any, value: Any) -> Any:
    if kind is Any:
        return value
    if dataclasses.is_dataclass(kind):
        return _object(kind, value)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return _decode(_member(arguments, value), value)
    if origin is list:
        return [_decode(arguments[0], item) for item in _expect(list, value)]
    if origin is dict:
        return {name: _decode(arguments[1], item) for name, item in _expect(dict, value).items()}
    if origin is Literal:
        return _expect(str, value)  # also accepts values of a newer service
    if kind is UUID:
        return UUID(_expect(str, value))
    if kind is datetime:
        return _datetime(_expect(str, value))
    if kind is float and type(value) is int:
        return float(value)
    return _expect(kind, value)


def _expect(kind: type, value: Any) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"expected {kind.__name__}, found {type(value).__name__}")
    return value


@lru_cache(maxsize=None)
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _object(kind: Any, value: Any) -> Any:
    value, hints = _expect(dict, value), _hints(kind)
    found = {name: _decode(hints[name], value[name]) for name in hints if name in value}
    return kind(**found)  # a TypeError names the missing fields


def _member(members: tuple[Any, ...], value: Any) -> Any:
    """Returns the member of a union that a value belongs to."""
    if value is None and type(None) in members:
        return type(None)
    members = tuple(member for member in members if member is not type(None))
    if len(members) == 1:
        return members[0]
    for member in members:
        hints = _hints(member)
        tags = {
            name: typing.get_args(hint)
            for name, hint in hints.items()
            if typing.get_origin(hint) is Literal and len(typing.get_args(hint)) == 1
        }
        if tags and all(value.get(name) in allowed for name, allowed in tags.items()):
            return member
    raise ValueError("unknown kind of value")


def _datetime(text: str) -> datetime:
    """Parses RFC 3339. Digits after the sixth of a second are dropped, because Python 3.10 rejects
    them."""
    text = re.sub(r"[zZ]$", "+00:00", text)
    found = re.fullmatch(r"(.{19})(?:\.(\d+))?(.*)", text)
    if found is None:
        raise ValueError(f"{text!r} is not a time")
    start, fraction, zone = found.groups()
    return datetime.fromisoformat(f"{start}.{(fraction or '0')[:6]:0<6}{zone}")
