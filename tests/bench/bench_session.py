"""Append through the session face against raw sqlite3 with the same table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import brute
from brute.events.entries import Record
from brute.events.events import TAGS, PromptAppended
from brute.events.messages import Message
from tests.bench.common import INSERT, TABLE, Line, folder, ratio, raw_connection, raw_encode
from tests.bench.common import take_turns as turns_of

COMMITS = {1: 400, 100: 60}
"""Commits of a round, by messages a commit."""

LIMITS = {1: 1.5, 100: None}


def _texts(size: int, turn: int) -> list[str]:
    return [f"message {turn} {number} " + "word " * 50 for number in range(size)]


def ours(path: Path, size: int) -> Callable[[int], object]:
    """Say user messages in a session: one by `user`, many in one commit by `append`."""
    session = brute.open(path).start()
    if size == 1:
        return lambda turn: session.user(_texts(1, turn)[0])
    return lambda turn: session.append(*(Message.user(t) for t in _texts(size, turn)))


def raw(path: Path, size: int) -> Callable[[int], object]:
    """The same rows by sqlite3 alone, encoding the same structs."""
    connection = raw_connection(path, "FULL", TABLE)
    execute, many = connection.execute, connection.executemany
    last = -1

    def append(turn: int) -> None:
        nonlocal last
        rows = []
        for position, text in enumerate(_texts(size, turn), last + 1):
            event = PromptAppended(message=Message.user(text))
            record = Record(at=1796000000000, event=event)
            rows.append(("0" * 32, position, TAGS[type(event)], raw_encode(record)))
        execute("BEGIN IMMEDIATE")
        many(INSERT, rows) if len(rows) > 1 else execute(INSERT, rows[0])
        execute("COMMIT")
        last += len(rows)

    return append


def lines(rounds: int = 5) -> list[Line]:
    """A line for each number of messages a commit."""
    found = []
    for size, commits in COMMITS.items():
        times = []
        for turn in range(rounds):
            with folder() as path:
                sides = ours(path / f"ours{turn}.db", size), raw(path / f"raw{turn}.db", size)
                times.append(turns_of(*sides, commits, 10))
        found.append(ratio(f"append, session face, FULL, {size} a commit", times, LIMITS[size]))
    return found
