"""Walking through a request with JSON pointers: what the rule books of all providers share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from brute.events.jsontypes import JSON, JSONObject
from brute.transports.wire import is_array, is_object, is_text, mend_arguments

Find = tuple[str, str]


def numbered(value: JSON) -> Iterator[tuple[int, JSONObject]]:
    """The objects of an array with their indexes; nothing for what is no array."""
    if is_array(value):
        yield from ((i, item) for i, item in enumerate(value) if is_object(item))


def scalars(value: JSON, pointer: str = "") -> Iterator[tuple[str, JSON]]:
    """Every text, number and key in a JSON value, however deep, with its pointer."""
    todo: list[tuple[str, JSON]] = [(pointer, value)]
    while todo:
        at, item = todo.pop()
        if is_object(item):
            for key, held in item.items():
                place = f"{at}/{escaped(key)}"
                yield place, key
                todo.append((place, held))
        elif is_array(item):
            todo.extend((f"{at}/{index}", held) for index, held in enumerate(item))
        else:
            yield at, item


def escaped(key: str) -> str:
    """A key as a JSON pointer writes it."""
    return str(key).replace("~", "~0").replace("/", "~1")


def not_unicode(body: JSONObject) -> Iterator[Find]:
    """Texts with lone surrogates, as they are or as escapes inside argument text."""
    for at, value in scalars(body):
        if isinstance(value, str):
            hidden = at.endswith("/arguments") and mend_arguments(value) != value
            if hidden or not is_text(value):
                yield at, "a lone surrogate"


def _not_json(body: JSONObject) -> Iterator[Find]:
    for at, value in scalars(body):
        if isinstance(value, float) and not math.isfinite(value):
            yield at, f"the number {value}"


NOT_JSON: Callable[[JSONObject], Iterator[Find]] = _not_json
"""Numbers that JSON has no word for."""
