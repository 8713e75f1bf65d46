"""What every import shares: reading lines that may be anything, and saying what was found."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, Final, Literal, TypeAlias

import msgspec

from brute.events.errors import BruteError, UsageError

if TYPE_CHECKING:
    from brute.log import Log

MAX_LINE: Final = 64 * 1024 * 1024
"""Bytes of one line, or of a whole request body. No provider takes a body as large as that, and an
export keeps its lines far below it."""

Source: TypeAlias = Literal["openai", "anthropic", "messages", "brute"]
"""What was imported: a Chat Completions body, a Messages body, chat messages, an export."""


class ImportFailure(BruteError):
    """What was to be imported cannot be read; nothing was written."""

    def __init__(self, where: str, found: str, now: str) -> None:
        super().__init__(where, found, now)
        self.where, self.found, self.now = where, found, now

    def __str__(self) -> str:
        return f"{self.where}: {self.found}; {self.now}. Nothing was imported"


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import has done."""

    session: str
    source: Source
    entries: int
    """How many entries the session has."""
    notes: tuple[str, ...] = ()
    """What of the file could not be kept, each with its place."""


class Lines:
    """The lines of a file, counted, none longer than `MAX_LINE`."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self.name = file, name
        self.number = 0
        """Of the line read last, counted from 1."""

    @property
    def where(self) -> str:
        """The place of the line read last."""
        return f"{self.name}, line {self.number:,}"

    def next(self) -> bytes:
        """The next line that is not blank; empty at the end of the file."""
        while True:
            line = self._file.readline(MAX_LINE + 1)
            self.number += 1
            if len(line) > MAX_LINE:
                raise ImportFailure(
                    self.where,
                    f"the line is longer than {MAX_LINE:,} bytes, the most that is read",
                    "give a file with one JSON object a line",
                )
            if self.number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if not line or not line.isspace():
                return line

    def rest(self, first: bytes) -> bytes:
        """All that is left; with the line read last, not more than `MAX_LINE` either."""
        data = self._file.read(MAX_LINE + 1 - len(first))
        if len(first) + len(data) > MAX_LINE:
            raise ImportFailure(
                self.name,
                f"the document is longer than {MAX_LINE:,} bytes, the most that is read",
                "give a single request body, or messages, one JSON object a line",
            )
        return data

    def fail(self, found: str, now: str) -> ImportFailure:
        """An error about the line read last."""
        return ImportFailure(self.where, found, now)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.next, b"")


def copy_session(source: Log, session: str, target: Log) -> int:
    """Append a whole session of one log to another that has none of its id.

    Returns the last position.
    """
    rows = (row[1:] for row in source.events.states(session))
    large = dict(source.events.blobs(session))
    return target.events.import_states(session, rows, expect=-1, blobs=large)


def require_free(log: Log, session: str) -> None:
    """Raise `UsageError` if there is a session of that id."""
    if log.has(session):
        raise UsageError(
            f"there is a session {session!r} already; give the new one another id (--id)"
        )
