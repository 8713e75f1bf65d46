"""Anything as one short line that a terminal can show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from typing import cast

from brute.events.jsontypes import JSON, JSONObject

WIDTH = 200
"""Characters of a line at most."""

_DEPTH = 4
_ITEMS = 12
_BITS = 256
_JOINERS = "\u200c\u200d"  # they hold emoji and scripts together, and do no harm


def one_line(text: str, width: int = WIDTH) -> str:
    """`text` in one line of at most `width` characters.

    Line breaks and tabs are shown as a space; what a terminal would obey rather than show
    (controls, direction marks, lone surrogates) is shown as an escape. O(width), however long the
    text is.
    """
    line = text[: width + 1]
    if not line.isprintable():
        line = "".join(map(_shown, line))
    return line if len(line) <= width else line[: width - 1] + "…"


def _shown(character: str) -> str:
    if character.isprintable() or character in _JOINERS:
        return character
    if character.isspace():
        return " "
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def brief(value: JSON, depth: int = _DEPTH) -> str:
    """A JSON value as JSON, as far as a line has room; the cost does not grow with the value.

    What is long, deep or many ends in `…`.
    """
    if isinstance(value, str):
        return json.dumps(value[: WIDTH + 1], ensure_ascii=False)
    if isinstance(value, dict):
        return _brief_object(cast(JSONObject, value), depth)
    if isinstance(value, (list, tuple)):
        return _brief_array(cast("Sequence[JSON]", value), depth)
    if isinstance(value, int) and value.bit_length() > _BITS:  # Python refuses thousands of digits
        return f"<an integer of {value.bit_length()} bits>"
    try:
        return json.dumps(value)
    except TypeError:
        return f"<{type(value).__name__}>"


def _brief_object(value: JSONObject, depth: int) -> str:
    if value and depth == 0:
        return "{…}"
    items = [f"{brief(str(k))}: {brief(v, depth - 1)}" for k, v in islice(value.items(), _ITEMS)]
    return "{" + ", ".join(items + ["…"] * (len(value) > _ITEMS)) + "}"


def _brief_array(value: Sequence[JSON], depth: int) -> str:
    if value and depth == 0:
        return "[…]"
    items = [brief(v, depth - 1) for v in value[:_ITEMS]]
    return "[" + ", ".join(items + ["…"] * (len(value) > _ITEMS)) + "]"
