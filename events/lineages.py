"""Which streams a session's entries lie in.

A fork shares its parent's entries by reference: those up to the fork are read from the parent's
stream (or from what that was forked from), those behind it from its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from brute.events.ids import check_number, check_text, is_sibling
from brute.events.store.base import SessionInfo

END = 2**62
"""Above every position."""

REMEMBERED = 10_000
"""Sessions whose lineage is kept in memory."""

Segment: TypeAlias = tuple[str, int, int]
"""A stream, and the first and last position to be read in it."""

Lineage: TypeAlias = tuple[tuple[str, int], ...]
"""The streams of a session, newest first, each with the first position that is read in it."""


class Lineages:
    """The lineages of a log. One never changes, so it is remembered."""

    def __init__(self, info: Callable[[str], SessionInfo]) -> None:
        self._info = info
        self._known: dict[str, Lineage] = {}

    def segments(self, session: str, after: int, upto: int | None) -> list[Segment]:
        """Where the entries above `after` up to `upto` lie, oldest first.

        Raises `UnknownSession`, and `UsageError` for what is no id or no position.
        """
        check_text("a session's id", session)
        check_number("after", after)
        if upto is not None:
            check_number("upto", upto)
        low, high = max(after + 1, 0), END if upto is None else min(upto, END)
        segments: list[Segment] = []
        for stream, start in self._known.get(session) or self._follow_back(session):
            if high >= start and low <= high:
                segments.append((stream, max(low, start), high))
            high = min(high, start - 1)
        return segments[::-1]

    def _follow_back(self, session: str) -> Lineage:
        if is_sibling(session):
            return ((session, 0),)
        lineage: list[tuple[str, int]] = []
        info, end = self._info(session), END
        while True:
            if info.start <= end:  # else it was forked before it said anything itself
                lineage.append((info.id, info.start))
            if info.link != "fork" or info.parent is None or info.parent_position is None:
                break
            end = min(end, info.parent_position)
            info = self._info(info.parent)
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[session] = tuple(lineage)
        return self._known[session]
