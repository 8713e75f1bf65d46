"""How much a log takes on the disk."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from brute.events.log import EventLog
from tests.bench.common import INSERT, TABLE, Line, events, folder, raw_connection

COUNT = 20_000
FORKS = 1_000


def size(path: Path) -> int:
    """Bytes of the file once the write-ahead log is in it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


def growth(path: Path) -> list[Line]:
    """Twice the events, and the same rows by sqlite3 alone."""
    source = events(2 * COUNT)
    sizes: list[int] = []
    with EventLog.open(path / "ours.db", synchronous="NORMAL") as log:
        session, last = log.new_id(), -1
        for start in range(0, len(source), 8):
            last = log.append(session, source[start : start + 8], expect=last)[-1].position
            if last + 1 in (COUNT, 2 * COUNT):
                sizes.append(size(path / "ours.db"))
        rows = list(log.states(session))
    with closing(raw_connection(path / "raw.db", "NORMAL", TABLE)) as connection:
        connection.execute("BEGIN")
        connection.executemany(INSERT, rows)
        connection.execute("COMMIT")
    raw = size(path / "raw.db")
    state = sum(len(row[-1]) for row in rows)
    return [
        Line(f"bytes at {2 * COUNT:,} events / at {COUNT:,}", [sizes[1] / sizes[0]], 2.05),
        Line("bytes of the log / of the raw table alone", [sizes[1] / raw]),
        Line("bytes an event", [sizes[1] / len(source)]),
        Line("of these, its JSON", [state / len(source)]),
    ]


def forks(path: Path, length: int) -> Line:
    """Bytes that a fork adds."""
    source = events(length)
    with EventLog.open(path / f"forks{length}.db", synchronous="NORMAL") as log:
        session = log.new_id()
        log.append(session, source, expect=-1)
        before = size(path / f"forks{length}.db")
        for n in range(FORKS):
            log.fork(session, n % length)
        added = size(path / f"forks{length}.db") - before
    return Line(f"bytes a fork, {FORKS:,} forks of {length:,} events", [added / FORKS], 1024)


def lines(rounds: int) -> list[Line]:
    """Sizes are the same every time, so one round is enough."""
    with folder() as path:
        return [*growth(path), forks(path, 10), forks(path, 10_000)]
