"""All sessions in one store: `brute.open`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from brute.events.entries import Entry
from brute.events.errors import UnknownSession, UsageError
from brute.events.events import SessionOpened
from brute.events.ids import check_session_id
from brute.events.log import Draft, EventLog
from brute.events.store.base import SessionInfo
from brute.journal import Live
from brute.session import Session
from brute.tools import canonical


class Log:
    """All sessions in one store. A context manager; `close()` it when you are done."""

    def __init__(self, events: EventLog) -> None:
        self.events = events
        """The event log beneath: entries without projections."""

    def start(
        self,
        *,
        agent: str | None = None,
        id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Session:
        """Begin a session. Its id is made up unless you give one.

        Raises `UsageError` if the id is taken or cannot be one.
        """
        session = id if id is not None else self.events.new_id()
        opened = SessionOpened(
            agent=agent,
            cwd=str(Path.cwd()),
            metadata=canonical(metadata) if metadata is not None else None,
        )
        return self._begin(session, opened)

    def _begin(self, session: str, opened: SessionOpened) -> Session:
        check_session_id(session)
        if self.has(session):
            raise UsageError(
                f"there is a session {session!r} already; log.session({session!r}) opens it"
            )
        journal = Live(self.events, session, [])
        journal.append([Draft(event=opened)])
        return Session(self, session, journal)

    def has(self, session: str) -> bool:
        """Whether there is a session of exactly this id."""
        try:
            self.events.info(session)
        except UnknownSession:
            return False
        return True

    def session(self, address: str) -> Session:
        """Open a session: by its id, any unique beginning or end of it, or `"last"` (the newest).

        Raises `UnknownSession`.
        """
        session = self.events.find(address)
        return Session(self, session, Live(self.events, session, self.entries(session)))

    def sessions(self, *, limit: int | None = None) -> list[SessionInfo]:
        """The sessions, newest first."""
        return list(self.events.sessions(limit=limit))

    def follow(
        self, address: str | None = None, *, after: int = -1, timeout: float | None = None
    ) -> Iterator[Entry]:
        """The entries of a session (default: of all) as they are appended, by any process.

        `after` is a position; `timeout` the seconds of silence after which the iteration ends.
        """
        session = self.events.find(address) if address is not None else None
        return self.events.follow(session, after=after, timeout=timeout)

    def close(self) -> None:
        """Close the store. What was acknowledged is durable without it."""
        self.events.close()

    def entries(self, session: str) -> list[Entry]:
        """All entries of a session, a fork's shared prefix included. Raises `UnknownSession`."""
        return list(self.events.read(session))

    def fork(self, session: str, position: int, *, id: str | None = None) -> Session:
        """A new session that shares the entries of `session` up to `position`, by reference.

        Raises `UnknownPosition` and `UnknownSession`.
        """
        child = self.events.fork(session, position, id=id)
        return Session(self, child, Live(self.events, child, self.entries(child)))

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Log {self.events!r}>"


def open(  # noqa: A001 - the name users know from the standard library
    url: str | os.PathLike[str],
    *,
    synchronous: Literal["FULL", "NORMAL"] = "FULL",
    read_only: bool = False,
    create: bool = True,
) -> Log:
    """Open a log: a path (`"agent.db"`), `"sqlite:///path"`, or `":memory:"`.

    synchronous: FULL keeps what was acknowledged through a power cut, NORMAL through a crash of
    the process only, and is faster.

    Raises `StoreError` (read-only, not a log, corrupt, no such folder, …) and `UsageError` for a
    store Brute does not know.
    """
    return Log(EventLog.open(url, synchronous=synchronous, read_only=read_only, create=create))
