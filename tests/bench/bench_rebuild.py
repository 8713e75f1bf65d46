"""Rebuild a session's message list through the log, against raw sqlite3 and msgspec.

The fold is the same function on both sides: once the product's own projection, once a plain list
of what was said, which shows what reading alone costs. Times are the process's own (CPU).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from brute.events.entries import Entry
from brute.events.events import PromptAppended, ReplyReceived, ToolReturned
from brute.events.log import EventLog
from brute.events.messages import Message
from brute.projections import messages
from tests.bench.common import (
    SELECT,
    Line,
    events,
    folder,
    ratio,
    raw_connection,
    raw_decode,
    take_turns,
)

ALLOWED = 1.35
SIZES = (1_000, 100_000)


def write(path: Path, count: int) -> tuple[EventLog, str]:
    """A log with one session of `count` events."""
    log = EventLog.open(path, synchronous="NORMAL")
    session, source, last = log.new_id(), events(count), -1
    for start in range(0, count, 500):
        last = log.append(session, source[start : start + 500], expect=last)[-1].position
    return log, session


def projection(entries: Iterable[Entry]) -> object:
    """The product's own list of messages."""
    apply, state = messages.apply, messages.initial()
    for entry in entries:
        state = apply(state, entry)
    return state


def plain_list(entries: Iterable[Entry]) -> list[tuple[int, Message]]:
    """The least that a list of messages can be: what was said, in the order of the log."""
    said: list[tuple[int, Message]] = []
    for entry in entries:
        event = entry.record.event
        if isinstance(event, (PromptAppended, ReplyReceived)):
            said.append((entry.position, event.message))
        elif isinstance(event, ToolReturned):
            said.append((entry.position, Message(role="tool", parts=event.content)))
    return said


def measure(path: Path, count: int, rounds: int) -> list[Line]:
    """Both folds over one session."""
    log, session = write(path / f"{count}.db", count)
    connection = raw_connection(path / f"{count}.db", "NORMAL")

    def rows() -> Iterator[Entry]:
        for position, state in connection.execute(SELECT, (session,)):
            yield Entry(session, position, raw_decode(state))

    def line(fold: Callable[[Iterable[Entry]], object]) -> Line:
        turns = max(5, 20_000 // count)
        times = [
            take_turns(
                lambda _: fold(log.read(session)),
                lambda _: fold(rows()),
                turns,
                warm_up=1,
                clock=time.process_time,
            )
            for _ in range(rounds)
        ]
        what = f"rebuild, {count:,} events, {fold.__name__.replace('_', ' ')}, an event"
        return ratio(what, times, ALLOWED, per=count)

    return [line(projection), line(plain_list)]


def lines(rounds: int) -> list[Line]:
    """Both folds over sessions of every size."""
    with folder() as path:
        return [line for count in SIZES for line in measure(path, count, rounds)]
