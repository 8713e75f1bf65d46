"""Append through the log, against raw sqlite3 with the same table and the same structs encoded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from brute.events.entries import Record
from brute.events.events import TAGS, AnyEvent, SessionOpened
from brute.events.log import EventLog
from tests.bench.common import (
    INSERT,
    SESSIONS,
    SESSIONS_INDEX,
    TABLE,
    Line,
    events,
    folder,
    ratio,
    raw_connection,
    raw_encode,
    take_turns,
)

COMMITS = {1: 400, 10: 150, 100: 60}
"""Commits of a round, by events a commit."""

WARM_UP = 20

ALLOWED = {
    ("FULL", 1): 1.2,
    ("FULL", 100): 1.35,
    ("NORMAL", 1): 1.45,
    ("NORMAL", 10): 1.45,
    ("NORMAL", 100): 1.45,
}

Sync = Literal["FULL", "NORMAL"]
Batches = list[list[AnyEvent]]


def ours(path: Path, sync: Sync, batches: Batches) -> Callable[[int], object]:
    """Append through the log."""
    log = EventLog.open(path, synchronous=sync)
    session = log.new_id()
    last = log.append(session, [SessionOpened()], expect=-1)[-1].position

    def append(turn: int) -> None:
        nonlocal last
        last = log.append(session, batches[turn], expect=last)[-1].position

    return append


def raw(path: Path, sync: Sync, batches: Batches, *, row: bool) -> Callable[[int], object]:
    """The same rows by sqlite3 alone; with `row`, the same work on a session row too."""
    connection = raw_connection(path, sync, TABLE, *((SESSIONS, SESSIONS_INDEX) if row else ()))
    execute, executemany = connection.execute, connection.executemany
    session, last, at = "0" * 32, -1, 1_796_000_000_000
    records = [[Record(at=at, event=event) for event in batch] for batch in batches]
    if row:
        execute(
            "INSERT INTO sessions (id, created, updated, last, newest) VALUES (?,0,0,-1,0)",
            (session,),
        )
    touch = "UPDATE sessions SET last=?, updated=?, newest=last_insert_rowid() WHERE id=?"

    def append(turn: int) -> None:
        nonlocal last
        rows = [
            (session, position, TAGS[type(record.event)], raw_encode(record))
            for position, record in enumerate(records[turn], last + 1)
        ]
        last += len(rows)
        execute("BEGIN IMMEDIATE")
        if len(rows) == 1:
            execute(INSERT, rows[0])
        else:
            executemany(INSERT, rows)
        if row:
            execute(touch, (last, at, session))
        execute("COMMIT")

    return append


def measure(sync: Sync, size: int, rounds: int, *, row: bool) -> Line:
    """One line: `size` events a commit."""
    commits = COMMITS[size]
    source = events(size * (commits + WARM_UP) + 1)[1:]
    batches = [source[start : start + size] for start in range(0, len(source), size)]
    times: list[tuple[float, float]] = []
    for _ in range(rounds):
        with folder() as path:
            sides = (
                ours(path / "ours.db", sync, batches),
                raw(path / "raw.db", sync, batches, row=row),
            )
            times.append(take_turns(*sides, commits, WARM_UP))
    what = f"append, {sync}, {size} a commit" + (", raw with a session row" if row else "")
    return ratio(what, times, ALLOWED.get((sync, size)))


def lines(rounds: int) -> list[Line]:
    """The log alone at FULL; at NORMAL against equal work."""
    full = [measure("FULL", size, rounds, row=False) for size in COMMITS]
    return full + [measure("NORMAL", size, rounds, row=True) for size in COMMITS]
