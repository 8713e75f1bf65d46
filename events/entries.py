"""Where an event stands: its envelope, and the entry that reading a log gives.

The envelope is the log's business: when it was appended, by which run, in which lane, in answer
to what. The position is the row's own and is not stored twice.
"""

from __future__ import annotations

import msgspec

from brute.events.events import AnyEvent, Event, UnknownEvent
from brute.events.messages import Value


class Record(Value, frozen=True, kw_only=True):
    """An event with its envelope: what one row's `state` holds."""

    at: int
    """Milliseconds since 1970 (UTC). For people; nothing is ever ordered by it."""
    append_id: str | None = msgspec.field(default=None, name="id")
    """On the first record of a commit: by it a retried commit that had succeeded is recognised."""
    event: AnyEvent
    run: str | None = None
    """The run (or, outside a run, the writer) that appended it."""
    lane: str = "/"
    """The path of the task inside the run: `/`, `/0`, `/0/2`."""
    cause: int | None = None
    """The position of the intent that this outcome answers."""
    place: str | None = None
    """The code that asked for it, `file:line`; for people, never part of a digest."""
    critical: bool = False
    """A version that does not know this event must not go on as if it were not there."""
    large: bool = False
    """As stored only: its media refer to bytes beside the log, which reading puts back."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One event of a log, with its place and envelope."""

    session: str
    position: int
    record: Record
    raw: bytes | None = None
    """The stored bytes, where this version does not understand all of them."""

    @property
    def event(self) -> Event | UnknownEvent:
        """The event."""
        return self.record.event

    @property
    def at(self) -> int:
        """When it was appended, milliseconds since 1970 (UTC)."""
        return self.record.at

    @property
    def run(self) -> str | None:
        """The run or writer that appended it."""
        return self.record.run

    @property
    def lane(self) -> str:
        """The path of the task that appended it."""
        return self.record.lane

    @property
    def cause(self) -> int | None:
        """The position of the intent that it answers."""
        return self.record.cause

    @property
    def append_id(self) -> str | None:
        """The id of the commit, on its first entry."""
        return self.record.append_id
