"""A request as it is written with an SDK, its objects among the dicts, as plain JSON."""

from __future__ import annotations

from typing import Any, cast

from brute.transports.wire import plain

DEPTH = 6
"""Levels down to which objects of an SDK stand in a request: body, messages, message, content,
block, content of a result. Below lies the user's own data."""


def without_objects(value: object, depth: int = DEPTH) -> Any:
    """`value` with the SDK's objects in it as dicts, and tuples as lists.

    What has none is given back as it is. Official examples append a reply's `content` (a list of
    objects), or the reply's message itself, to the list of messages.
    """
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        return _plain_object(given, depth) if depth else given
    if isinstance(value, (list, tuple)):
        whole = cast("list[Any]", value)
        items = [without_objects(item, depth - 1) for item in whole] if depth else list(whole)
        same = all(a is b for a, b in zip(whole, items, strict=True))
        return whole if same and type(whole) is list else items
    return plain(value)


def _plain_object(value: dict[str, Any], depth: int) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for key, item in value.items():
        new = without_objects(item, depth - 1)
        if new is not item:
            changed[key] = new
    return {**value, **changed} if changed else value
