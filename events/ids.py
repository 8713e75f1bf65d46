"""Ids of sessions and commits."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Iterator

from brute.events.errors import UsageError, WrongType, shown

SIBLING = "~"
"""Stands between a session's id and the position a sibling stream belongs to: `S~12`."""

_RESERVED = "@~/"
_MAX = 200

_lock = threading.Lock()
_millisecond = 0
_count = 0


def new_id() -> str:
    """A new session id: a UUID of version 7 as 32 hex digits.

    Ids of one process rise, also within a millisecond (RFC 9562, section 6.2, method 1).
    """
    global _millisecond, _count  # noqa: PLW0603 - the clock this process has handed out
    with _lock:
        now = time.time_ns() // 1_000_000
        if now > _millisecond:
            _millisecond, _count = now, secrets.randbits(11)
        else:
            _count += 1
            if _count >> 12:
                _millisecond, _count = _millisecond + 1, 0
        head = _millisecond << 16 | 0x7000 | _count
    return f"{head:016x}{0x8 << 60 | secrets.randbits(62):016x}"


def append_ids() -> Iterator[str]:
    """Commit ids of one writer: a random name for it, and a count."""
    return map(f"{secrets.token_urlsafe(8)}.{{:x}}".format, itertools.count(1))


def is_sibling(stream: str) -> bool:
    """Whether a stream is a sibling of a session rather than a session."""
    return SIBLING in stream


def check_session_id(id: str) -> None:
    """Raise `UsageError` if no session can have this id.

    `S@n`, `S/branch` and `S~n` are addresses, so an id has none of these characters.
    """
    check_text("a session id", id)
    if not 0 < len(id) <= _MAX or not id.isprintable():
        raise UsageError(f"{shown(id)} is no session id: give 1 to {_MAX} printable characters")
    if id == "last" or " " in id or any(c in id for c in _RESERVED):
        raise UsageError(
            f"{id!r} is no session id: 'last', spaces and {_RESERVED} mean other things"
        )


def check_sibling(stream: str) -> None:
    """Raise `UsageError` if `stream` is not `SESSION~POSITION`."""
    check_text("a sibling stream", stream)
    session, _, position = stream.partition(SIBLING)
    check_session_id(session)
    if not (position.isascii() and position.isdigit()):
        raise UsageError(f"{stream!r} is no sibling stream: give SESSION{SIBLING}POSITION")


def check_text(what: str, value: object) -> None:
    """Raise `WrongType` if `value`, called `what` in the message, is no text."""
    if not isinstance(value, str):
        raise WrongType(what, value, "a text")


def check_number(what: str, value: object) -> None:
    """Raise `WrongType` if `value`, called `what` in the message, is no whole number."""
    if type(value) is not int:  # True is one to Python
        raise WrongType(what, value, "a whole number")
