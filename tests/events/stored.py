"""Every struct that is stored, found by following the types from the record."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, get_args, get_origin

import msgspec

from brute.events.entries import Record


@cache
def structs() -> tuple[type[msgspec.Struct], ...]:
    """The structs that a record is made of, each once, the record first."""
    found: dict[type[msgspec.Struct], None] = {}
    todo: list[Any] = [Record]
    while todo:
        hint = todo.pop(0)
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct) and hint not in found:
            found[hint] = None
            todo += [field.type for field in fields(hint)]
        todo += get_args(hint) if get_origin(hint) is not Literal else ()
    return tuple(found)


def fields(struct: type[msgspec.Struct]) -> Iterator[msgspec.structs.FieldInfo]:
    """The fields that a writer of this version fills: all but the slot."""
    return (field for field in msgspec.structs.fields(struct) if field.name != "rest")


def words(hint: Any) -> tuple[str, ...]:
    """The words of a closed list."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(word for inner in get_args(hint) for word in words(inner))
