"""Sessions in and out: export to JSON lines, import of them and of what others wrote.

An export is a text file, one JSON object a line:

    {"brute":"export","version":1,"session":"t1","agent":"trips","entries":14}
    {"blob":"sha256:…","data":"<base64>"}
    {"position":0,"type":"session.opened","state":{…}}
    …
    {"brute":"end","entries":14}

`state` is what the log stores, byte for byte: what this version does not understand goes through
unread. Large bytes of media stand before the first entry that refers to them, in pieces where they
are long. A state that does not fit a line (too long, or not on one line) travels as a blob too,
and its entry says `"bytes":"sha256:…"` in place of `state`. A fork is written with the past that
it shares, so that the file stands alone.

An import is all or nothing: the session is appended in one transaction, at the last line.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, BinaryIO, Final, TypeAlias, TypeVar

import msgspec

from brute.events import blobs
from brute.events.errors import CorruptStore, UnknownSession, UsageError
from brute.events.ids import check_session_id
from brute.events.jsontext import dumps, members
from brute.foreign import import_history, read_history
from brute.intake import MAX_LINE, Imported, ImportFailure, Lines, Source

if TYPE_CHECKING:
    from brute.log import Log

__all__ = [
    "MAX_LINE",
    "ImportFailure",
    "Imported",
    "Source",
    "export_session",
    "import_file",
]

VERSION: Final = 1

MAX_STATE: Final = 16 * 1024 * 1024
"""Bytes of a state that is written into its line."""

PIECE: Final = 6 * 1024 * 1024
"""Bytes of a blob in one line; a multiple of 3, so that its base64 has no padding inside."""

Row: TypeAlias = tuple[int, str, bytes]
"""Position, topic (the event's tag) and state."""

# -- export ----------------------------------------------------------------------------------------


def export_session(log: Log, session: str, *, upto: int | None = None) -> Iterator[bytes]:
    """The lines of an export of the session with that id, up to a position (default: all).

    Raises `UnknownSession`.
    """
    events = log.events
    info = events.info(session)
    last = info.last if upto is None else min(upto, info.last)
    head = {"brute": "export", "version": VERSION, "session": session, "agent": info.agent}
    yield _line({**head, "entries": last + 1})
    written: set[str] = set()
    expected = 0
    for row in events.states(session, upto=last):
        _, position, topic, state = row
        if position != expected:
            break
        expected += 1
        for name in events.references(row):
            if name not in written:
                written.add(name)
                yield from _blob(name, events.blob(name))
        entry = b'{"position":%d,"type":%s,' % (position, dumps(topic).encode())
        if len(state) <= MAX_STATE and b"\n" not in state and b"\r" not in state:
            yield b'%s"state":%s}\n' % (entry, state)
        else:
            name = blobs.hash_of(state)
            yield from _blob(name, state)
            yield b'%s"bytes":%s}\n' % (entry, dumps(name).encode())
    if expected <= last:
        raise CorruptStore(
            events.where,
            f"{session}: the entry at position {expected} is missing",
            f"restore the file from a backup, or export {session}@{expected - 1}",
        )
    yield _line({"brute": "end", "entries": last + 1})


def _line(value: dict[str, object]) -> bytes:
    return dumps({k: v for k, v in value.items() if v is not None}).encode() + b"\n"


def _blob(name: str, data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), PIECE):
        text = base64.b64encode(data[start : start + PIECE]).decode()
        more = True if start + PIECE < len(data) else None
        yield _line({"blob": name, "data": text, "more": more})


# -- import ----------------------------------------------------------------------------------------


class _Head(msgspec.Struct, frozen=True):
    version: int
    session: str
    entries: int


class _Entry(msgspec.Struct, frozen=True):
    position: int
    type: str
    state: msgspec.Raw = msgspec.Raw()
    bytes: str | None = None


class _Piece(msgspec.Struct, frozen=True):
    blob: str
    data: bytes
    more: bool = False


class _End(msgspec.Struct, frozen=True):
    entries: int


_head = msgspec.json.Decoder(_Head).decode
_flat_entry = msgspec.json.Decoder(_Entry).decode
_piece = msgspec.json.Decoder(_Piece).decode
_end = msgspec.json.Decoder(_End).decode


def _entry(line: bytes) -> _Entry:
    try:
        return _flat_entry(line)
    except RecursionError:  # a state that nests too deep for msgspec
        found = members(line)
        rest = b",".join(b'"%s":%s' % (k.encode(), v) for k, v in found.items() if k != "state")
        flat = _flat_entry(b"{%s}" % rest)
        return msgspec.structs.replace(flat, state=msgspec.Raw(found["state"]))


_HEAD: Final = b'{"brute":"export"'
_PIECE: Final = b'{"blob":'
_END: Final = b'{"brute":"end"'

T = TypeVar("T")


def import_file(
    log: Log,
    file: BinaryIO,
    *,
    source: Source | None = None,
    id: str | None = None,
    name: str = "the file",
) -> Imported:
    """Make a session of a file: an export, a request body, or chat messages, one a line.

    source: what the file is; None: find out. id: of the new session; None: the exported one, or a
    new one. name: what errors call the file. An exported session that is there already, entry for
    entry, is left as it is.

    Raises `ImportFailure` for a file that is none of these, `UsageError` if there is another
    session of that id, and what appending raises; nothing is written then.
    """
    if id is not None:
        check_session_id(id)
    lines = Lines(file, name)
    first = lines.next()
    if not first:
        raise ImportFailure(name, "the file is empty", "give one that holds a history")
    if source == "brute" or (source is None and first.startswith(_HEAD)):
        return _import_export(log, lines, first, id)
    known = source if source in ("openai", "anthropic") else None
    return import_history(log, read_history(lines, first, known), id=id)


def _import_export(log: Log, lines: Lines, first: bytes, id: str | None) -> Imported:
    if not first.startswith(_HEAD):
        raise ImportFailure(lines.where, "this is no export of brute", "`brute export` makes one")
    head = _understood(lines, _head, first)
    if head.version > VERSION:
        raise ImportFailure(
            lines.where,
            f"the export has version {head.version}; this brute reads up to {VERSION}",
            "upgrade brute-log",
        )
    session = id or head.session
    rows = _Rows(lines)
    try:
        there = log.events.last(session)
    except UnknownSession:
        last = _append(log, session, rows)
    else:
        last = _same(log, session, rows, there)
    return Imported(session=session, source="brute", entries=last + 1)


def _append(log: Log, session: str, rows: _Rows) -> int:
    """The last position of a new session that has these rows."""
    try:
        return log.events.import_states(session, rows, expect=-1, blobs=rows.blobs)
    except CorruptStore as error:
        if error.where == log.events.where:
            raise
        raise rows.fail(error.found) from error
    except UsageError as error:
        if rows.ended:  # about the log or the id; else about the row read last
            raise
        raise rows.fail(str(error)) from error


def _same(log: Log, session: str, rows: Iterable[Row], last: int) -> int:
    """The last position of a session that has exactly these rows."""
    stored = ((position, topic, state) for _, position, topic, state in log.events.states(session))
    if all(a == b for a, b in zip_longest(rows, stored)):
        return last
    raise UsageError(
        f"there is another session {session!r} in this log, with other entries; "
        "import this one under an id of its own (--id)"
    )


class _Rows:
    """The rows of an export, read as they are asked for; ends with an error unless it is whole."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.blobs: dict[str, bytes] = {}
        self._pieces: dict[str, list[bytes]] = {}
        self.ended = False
        """Whether all rows were read, and are those that were exported."""

    def __iter__(self) -> Iterator[Row]:
        count = 0
        for line in self._lines:
            if line.startswith(_PIECE):
                self._keep(_understood(self._lines, _piece, line))
            elif line.startswith(_END):
                return self._finish(count, _understood(self._lines, _end, line))
            else:
                entry = _understood(self._lines, _entry, line)
                yield entry.position, entry.type, self._state(entry)
                count += 1
        raise ImportFailure(
            self._lines.where,
            f"the export ends after {count:,} entries without its last line",
            "export the session again",
        )

    def _keep(self, piece: _Piece) -> None:
        self._pieces.setdefault(piece.blob, []).append(piece.data)
        if not piece.more:
            data = b"".join(self._pieces.pop(piece.blob))
            if blobs.hash_of(data) != piece.blob:
                raise self.fail(f"the bytes are not those of {piece.blob}")
            self.blobs[piece.blob] = data

    def _state(self, entry: _Entry) -> bytes:
        if state := bytes(entry.state):
            return state
        if entry.bytes not in self.blobs:
            raise self.fail("the entry has no state, and no bytes before it that are its state")
        return self.blobs.pop(entry.bytes)

    def _finish(self, count: int, end: _End) -> None:
        if count != end.entries:
            raise self.fail(f"the export has {count:,} entries; its last line says {end.entries:,}")
        if not count:
            raise self.fail("the export has no entries, and a session has one at least")
        for name in self._pieces:
            raise self.fail(f"the bytes {name} are not whole: their last piece is missing")
        if self._lines.next():
            raise self._lines.fail(
                "something stands behind the last line of the export",
                "give one export at a time, as it was written",
            )
        self.ended = True

    def fail(self, found: str) -> ImportFailure:
        """An error about the line read last."""
        return ImportFailure(self._lines.where, found, "export the session again")


def _understood(lines: Lines, decode: Callable[[bytes], T], line: bytes) -> T:
    try:
        return decode(line)
    except (ValueError, KeyError, RecursionError) as error:
        raise ImportFailure(
            lines.where, f"this is no line of an export ({error})", "export the session again"
        ) from error
