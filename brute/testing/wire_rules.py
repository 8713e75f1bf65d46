"""What the providers' rule books share. A rule reads a body and yields what it breaks, in order.

Only the first find is ever taken, as a provider says only one thing at a time. So a rule may go on
after a find as if it had been mended.

This is the providers' side: it knows nothing of Brute's transports, so that a mistake of theirs
cannot hide in a mistake of ours. The names of the rules are those of the reference page.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import TypeGuard

from brute.testing.wire_script import JSON, JSONObject, is_array, is_object

NAME = re.compile(r"[a-zA-Z0-9_-]+")
"""Names of tools, and Anthropic's ids of calls."""

_SURROGATE = re.compile("[\ud800-\udfff]")

_TYPES: dict[type, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
    str: "a string",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


def words(text: str) -> frozenset[str]:
    """The words of a table's line."""
    return frozenset(text.split())


def kind(value: JSON) -> str:
    """A value's JSON type with its article, as the providers name it."""
    return _TYPES[type(value)]


def strings(value: JSON) -> Iterator[str]:
    """Every string in a JSON value, keys included, however deep it is nested."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif is_array(item):
            stack.extend(item)
        elif is_object(item):
            stack.extend(item)
            stack.extend(item.values())


def is_one_of(value: JSON, allowed: Container[str]) -> TypeGuard[str]:
    """Whether a JSON value is one of some words; asking for a list in a set would raise."""
    return isinstance(value, str) and value in allowed


def lone_surrogate(body: JSONObject, raw: bytes) -> bool:
    """Whether a text of the body is no text: half of a surrogate pair, legal in Python only.

    It can only come as an escape, so that the bytes tell most bodies apart at once.
    """
    if b"\\ud" not in raw and b"\\uD" not in raw:
        return False
    return any(_SURROGATE.search(text) for text in strings(body))


def objects(value: JSON) -> Iterator[tuple[int, JSONObject]]:
    """The objects of an array with their places; nothing for what is no array."""
    if is_array(value):
        yield from ((place, item) for place, item in enumerate(value) if is_object(item))
