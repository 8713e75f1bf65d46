"""Addresses: `S`, `S@12`, `S@-1`, `S@turn:4`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from brute.events.errors import UnknownPosition, UsageError
from brute.projections import turns
from brute.projections.fold import fold

if TYPE_CHECKING:
    from brute.log import Log

_PLACE: Final = re.compile(r"(?P<position>-?\d{1,18})|turn:(?P<turn>\d{1,18})", re.ASCII)


class Address(msgspec.Struct, frozen=True):
    """A session, and a place in it where one was named."""

    session: str
    """An id, a beginning or end of one, or `last`."""
    position: int | None = None
    """Below zero: counted from the end, -1 being the last."""
    turn: int | None = None
    """Counted from 1."""

    @property
    def has_place(self) -> bool:
        """Whether a place in the session was named."""
        return self.position is not None or self.turn is not None


def parse(text: str) -> Address:
    """Read an address.

    >>> parse("t1@turn:4")
    Address(session='t1', position=None, turn=4)

    Raises `UsageError` for what is behind an `@` and no place.
    """
    session, at, place = text.partition("@")
    if not session:
        raise UsageError(f"{text!r} names no session; give an id, a part of one, or 'last'")
    if not at:
        return Address(session)
    found = _PLACE.fullmatch(place)
    if found is None:
        raise UsageError(
            f"{text!r}: {place!r} is no place in a session; "
            "give a position (12), one from the end (-1) or a turn (turn:4)"
        )
    if found["turn"] is not None:
        return Address(session, turn=int(found["turn"]))
    return Address(session, position=int(found["position"]))


def position_of(log: Log, session: str, address: Address) -> int:
    """The position in the session that the address names; its last one where it names none.

    Raises `UnknownPosition` for a position, and `UsageError` for a turn, that it does not have.
    """
    last = log.events.last(session)
    if address.turn is not None:
        return _end_of_turn(log, session, address.turn)
    if address.position is None:
        return last
    position = address.position if address.position >= 0 else last + 1 + address.position
    if not 0 <= position <= last:
        raise UnknownPosition(session, address.position, last)
    return position


def _end_of_turn(log: Log, session: str, number: int) -> int:
    found = fold(turns, log.events.read(session)).turns
    if not 1 <= number <= len(found):
        raise UsageError(
            f"{session}@turn:{number}: there is no such turn; "
            + (f"its turns are 1 to {len(found)}" if found else "it has no turns yet")
        )
    turn = found[number - 1]
    return next(p for p in (turn.outcome, turn.request, turn.position) if p is not None)
