"""Folding: how any projection is driven, and which entries it is driven over.

A projection is two functions, `initial() -> state` and `apply(state, entry) -> state`; a module
with both is one (`brute.projections.messages`), and so is an object. It is

- pure: no I/O, no clock, no randomness;
- total: any entries in any order, unknown events, wrong causes and repeats included, leave a
  sensible state, and none raises;
- incremental: one more entry costs that entry, and `fold(p, a + b) == fold(p, b, fold(p, a))`.

`apply` may change the state it is given and return it: after the call the old one is spent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from brute.events.entries import Entry
from brute.events.events import HistoryRewound

S = TypeVar("S")


class Projection(Protocol[S]):
    """What can be folded. Modules and objects both fit."""

    def initial(self) -> S:
        """The state before the first entry."""
        ...

    def apply(self, state: S, entry: Entry, /) -> S:
        """The state after one more entry; `state` itself is spent."""
        ...


def fold(projection: Projection[S], entries: Iterable[Entry], state: S | None = None) -> S:
    """The state of `projection` after `entries`, from `state` on where one is given.

    A given `state` is used up.
    """
    apply = projection.apply
    if state is None:
        state = projection.initial()
    for entry in entries:
        state = apply(state, entry)
    return state


def at(entries: Sequence[Entry], position: int) -> Sequence[Entry]:
    """The entries up to and including `position`; all of them if they end before it."""
    return _prefix(entries, _count_upto(entries, position, len(entries)))


def lineage(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries that are still said: every `history.rewound` resolved.

    A rewind is a fork in place: after `rewound(to=n)` the session stands as it stood at position
    n, whatever had been rewound by then. So a rewind to a position that an earlier rewind had
    taken back brings that one's past to life again. The `rewound` entries themselves are not part
    of it. One that points at itself or ahead changes nothing.

    Without a rewind the answer is `entries` itself. O(n).
    """
    rewinds = [i for i, e in enumerate(entries) if type(e.record.event) is HistoryRewound]
    if not rewinds:
        return entries
    stretches: list[Sequence[Entry]] = []
    end = len(entries)
    for index in reversed(rewinds):  # from the end back along the path that led here
        if index >= end:
            continue
        stretches.append(entries[index + 1 : end])
        end = _count_upto(entries, _target(entries[index]), index)
    stretches.append(entries[:end])
    return [entry for stretch in reversed(stretches) for entry in stretch]


def last_rewind(entries: Sequence[Entry]) -> int | None:
    """The position of the newest `history.rewound`, or None.

    What was running when it was said is cut off from its outcome: see `Calls.unknown`.
    """
    for entry in reversed(entries):
        if type(entry.record.event) is HistoryRewound:
            return entry.position
    return None


def _target(entry: Entry) -> int:
    event = entry.record.event
    assert isinstance(event, HistoryRewound)
    return event.to


def _count_upto(entries: Sequence[Entry], position: int, end: int) -> int:
    """How many of the first `end` entries stand at `position` or before it."""
    return bisect_right(entries, position, 0, end, key=_position)


def _position(entry: Entry) -> int:
    return entry.position


def _prefix(entries: Sequence[Entry], count: int) -> Sequence[Entry]:
    return entries if count == len(entries) else entries[:count]
