"""The seam between the log and what keeps its rows.

`EventLog` knows events, lineages and retries; a `Store` knows rows, and keeps three promises:

- a commit is all or nothing, durable when `commit` returns, and refused unless the stream ends
  exactly where the writer said;
- notification ids rise in commit order, are never given out twice, and a row is visible only when
  all rows with smaller ids are;
- whatever goes wrong is one of our errors (`brute.events.errors`), never the driver's.

`tests/events/store_contract.py` holds every store to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

import msgspec

from brute.events.errors import UsageError, shown

Synchronous: TypeAlias = Literal["FULL", "NORMAL"]
"""FULL: what is acknowledged survives a power cut. NORMAL: one may take the last commits."""

Cells: TypeAlias = list[str | int | bytes]
"""Rows laid end to end, four cells a row: stream, position, topic, state. One flat list, because
that is what a multi-row INSERT takes; 100 rows cost 0.62 of what `executemany` costs."""

LONGEST = 2_000_000
"""Seconds that can be waited for another writer; SQLite counts milliseconds in 32 bits."""

StateRow: TypeAlias = tuple[int, bytes]
"""Position and state."""

TopicRow: TypeAlias = tuple[int, str, bytes]
"""Position, topic and state."""

Notification: TypeAlias = tuple[int, str, int, str, bytes]
"""Notification id, stream, position, topic and state."""


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A session as the list of sessions shows it."""

    id: str
    created: int
    """Milliseconds since 1970 (UTC) of its first event."""
    updated: int
    """Milliseconds since 1970 (UTC) of its newest event."""
    last: int
    """Position of its newest event."""
    order: int
    """Its place among the sessions by newest event: higher is newer. Opaque; for paging."""
    link: str | None = None
    """fork, sub-agent or import, where the session comes from another."""
    parent: str | None = None
    parent_position: int | None = None
    agent: str | None = None
    title: str | None = None
    critical: dict[str, int] = {}
    """Tags of its critical events, each with its first position."""

    @property
    def start(self) -> int:
        """The position of the first event of its own; those before it are its parent's."""
        if self.link == "fork" and self.parent_position is not None:
            return self.parent_position + 1
        return 0


class Opening(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the first commit of a session says about it."""

    created: int
    link: str | None = None
    parent: str | None = None
    parent_position: int | None = None
    agent: str | None = None
    title: str | None = None


class Commit(msgspec.Struct, kw_only=True, gc=False):
    """The rare things a commit may carry beside its rows."""

    opening: Opening | None = None
    """The commit begins the session."""
    critical: dict[str, int] | None = None
    """All critical tags of the session from now on, where the commit adds one."""
    blobs: dict[str, bytes] | None = None
    """Large bytes by content hash."""
    despite_critical: bool = False
    """The writer knows every critical tag of the session."""


PLAIN = Commit()
"""A commit with nothing but rows."""


class Watch(Protocol):
    """Tells one follower that something may have been committed, by whichever process."""

    def wait(self, timeout: float) -> bool:
        """Block for at most `timeout` seconds; True if something may have been committed."""
        ...

    def changed(self) -> bool:
        """Whether something may have been committed since the last call; never blocks."""
        ...

    def close(self) -> None:
        """Stop watching."""
        ...


class Store(Protocol):
    """What `EventLog` asks of a store. A stream is a session or a sibling of one (`S~n`)."""

    where: str
    """Names the store in errors."""
    read_only: bool

    @property
    def closed(self) -> bool:
        """Whether it was closed, or cannot be used in this process."""
        ...

    def commit(
        self, stream: str, expect: int, cells: Cells, last: int, at: int, *, extra: Commit = PLAIN
    ) -> bool:
        """Append the rows of one stream in one transaction, and bring its session row up to date.

        False, and nothing written, if the stream does not end at `expect`, or if its session has
        critical events and the writer did not say that it knows them.
        """
        ...

    def append_sibling(self, stream: str, expect: int, cells: Cells) -> bool:
        """`commit` for a stream that has no session row."""
        ...

    def drop(self, stream: str) -> None:
        """Delete the rows of a stream that has no session row."""
        ...

    def states(self, stream: str, low: int, high: int, limit: int) -> list[StateRow]:
        """At most `limit` rows with positions from `low` to `high`, rising."""
        ...

    def states_back(self, stream: str, low: int, high: int, limit: int) -> list[StateRow]:
        """At most `limit` rows with positions from `high` down to `low`, falling."""
        ...

    def topics(self, stream: str, low: int, high: int, limit: int) -> list[TopicRow]:
        """`states` with the topics."""
        ...

    def last(self, stream: str) -> int:
        """The last position of a stream, session or not; -1 if it has no rows."""
        ...

    def notifications(self, after: int, limit: int) -> list[Notification]:
        """At most `limit` rows of all streams with ids above `after`, in commit order."""
        ...

    def head(self) -> int:
        """The highest notification id; 0 in an empty store."""
        ...

    def session(self, id: str) -> SessionInfo | None:
        """The row of one session."""
        ...

    def sessions(self, before: int | None, limit: int) -> list[SessionInfo]:
        """At most `limit` sessions with an order below `before`, newest first."""
        ...

    def matching(self, address: str, limit: int) -> list[str]:
        """At most `limit` ids that begin or end with `address`."""
        ...

    def blob(self, hash: str) -> bytes | None:
        """The bytes with that content hash."""
        ...

    def watch(self) -> Watch:
        """A new watch."""
        ...

    def close(self) -> None:
        """Release everything; calling it again does nothing."""
        ...


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a store is opened."""

    synchronous: Synchronous = "FULL"
    read_only: bool = False
    create: bool = True
    lock_timeout: float = 30.0
    """Seconds to wait for another writer before `StoreBusy`."""

    def __post_init__(self) -> None:
        """Raise `UsageError` for what no store could do."""
        if self.synchronous not in get_args(Synchronous):
            raise UsageError(
                f"synchronous={shown(self.synchronous)}: a log is kept with 'FULL' or 'NORMAL'; "
                "with less, what was acknowledged could be lost or the file be damaged"
            )
        timeout: object = self.lock_timeout
        if type(timeout) not in (int, float) or not 0 <= self.lock_timeout <= LONGEST:
            raise UsageError(f"lock_timeout={shown(timeout)}: give seconds, from 0 to {LONGEST:,}")


Opener: TypeAlias = Callable[[str, Options], Store]
"""Opens the store at the part of the URL behind `scheme://`."""
