"""What people see: texts made safe, columns, colours and one JSON object a line.

What a log holds was written by models, tools and web pages. Printed as it is, it could move the
cursor, set the window's title or hide text, so every text of a log goes through `visible`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

import click

from brute.events.jsontext import dumps
from brute.events.jsontypes import JSON


def muted(text: str) -> str:
    """A text that stands back. Not grey: many terminals show that as their background."""
    return click.style(text, dim=True)


_JOINERS: Final = "\u200c\u200d"
"""They hold emoji and scripts together, and do no harm."""


def visible(text: str) -> str:
    """A text with everything that a terminal would obey, or could not write, as its escape."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isprintable() or character in "\n\t" or character in _JOINERS:
        return character
    if character.isspace() and character.isascii():
        return character.encode("unicode_escape").decode()
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str) -> str:
    """A text as one line: blanks of any kind and number become one blank."""
    return " ".join(visible(text).split())


def width_of(text: str) -> int:
    """How many columns a plain text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, columns: int) -> str:
    """A plain text cut to a width, with an ellipsis where something is missing."""
    if width_of(text) <= columns:
        return text
    used, kept = 0, 0
    for character in text:
        used += _columns(character)
        if used > columns - 1:
            break
        kept += 1
    return text[:kept].rstrip() + "…"


def pad(text: str, columns: int) -> str:
    """A plain text filled up with blanks to a width; `columns` below zero fills in front."""
    blanks = " " * (abs(columns) - width_of(text))
    return blanks + text if columns < 0 else text + blanks


def screen_width() -> int | None:
    """The columns of the terminal; None where the output goes elsewhere and is never cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


class Column:
    """A column of a table."""

    def __init__(self, title: str, *, right: bool = False, style: str | None = None) -> None:
        self.title, self.right, self.style = title, right, style


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table, its titles first; a column that is empty in every row is left out."""
    texts = [[one_line(cell) for cell in row] for row in rows]
    shown = [n for n in range(len(columns)) if any(row[n] for row in texts)]
    sizes = {
        n: max(width_of(columns[n].title), *(width_of(row[n]) for row in texts)) for n in shown
    }

    def line(cells: Sequence[str], *, title: bool) -> str:
        out: list[str] = []
        filled = [n for n in shown if cells[n]]
        for n in shown[: shown.index(filled[-1]) + 1] if filled else ():
            cell = pad(cells[n], -sizes[n] if columns[n].right else sizes[n])
            if n == filled[-1]:
                cell = cell.rstrip()
            style = columns[n].style
            out.append(muted(cell) if title else click.style(cell, fg=style) if style else cell)
        return "  ".join(out)

    titles = line([column.title for column in columns], title=True)
    return [titles, *(line(row, title=False) for row in texts)]


# Controls beyond ASCII, and what reorders or hides text (https://unicode.org/reports/tr36/); JSON
# escapes the controls of ASCII itself, all but DEL.
_UNSEEN: Final = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def visible_json(text: str) -> str:
    r"""JSON with what a terminal would obey, or not show, as `\uXXXX`: the same value."""
    return text if text.isascii() and "\x7f" not in text else _UNSEEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1] if found[0] != "\x7f" else "\\u007f"


def write_json(value: JSON) -> None:
    """Write one JSON object as one line."""
    click.echo(visible_json(dumps(value)))


# -- quantities ------------------------------------------------------------------------------------


def count(number: int, word: str, plural: str | None = None) -> str:
    """`1 event`, `7,004 events`."""
    return f"{number:,} {word if number == 1 else plural or word + 's'}"


_UNITS: Final = (("B", 1), ("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000))


def size(number: int) -> str:
    """A number of bytes: `411 B`, `4.3 MB`."""
    unit, step = next((u for u in reversed(_UNITS) if number >= u[1]), _UNITS[0])
    return f"{number:,} {unit}" if step == 1 else f"{number / step:,.1f} {unit}"


def tokens(number: int) -> str:
    """A number of tokens, short: `214`, `12.3k`, `4.1M`."""
    if number < 10_000:
        return f"{number:,}"
    return f"{number / 1_000:,.1f}k" if number < 1_000_000 else f"{number / 1_000_000:,.1f}M"


_AGES: Final = ((60, 1, "s"), (3_600, 60, "min"), (86_400, 3_600, "h"), (10**12, 86_400, "d"))


def age(at: int, now: float | None = None) -> str:
    """How long ago a time (milliseconds since 1970) was: `2 min`, `3 d`."""
    seconds = max(0, int((time.time() if now is None else now) - at / 1_000))
    limit = next(a for a in _AGES if seconds < a[0])
    return f"{seconds // limit[1]} {limit[2]}"
