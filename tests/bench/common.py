"""What the benchmarks share: the workload, the raw baseline, and how ratios are taken.

Only ratios mean anything on a shared machine. Both sides of one take turns, call by call in random
order, in one process with the collector on; a round gives the ratio of their medians; a line gives
the median of the rounds, and their spread.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from brute.events.entries import Record
from brute.events.events import (
    AnyEvent,
    PromptAppended,
    ReplyReceived,
    RequestSent,
    SessionOpened,
    ToolCalled,
    ToolReturned,
    TurnStarted,
)
from brute.events.messages import Message, Origin, Text, ToolCall, Usage

WORKLOAD = (
    "one agent session; a turn is turn.started, prompt.appended, request.sent, reply.received with "
    "a tool call, tool.called, tool.returned, request.sent, reply.received; 330 bytes an event"
)

TABLE = """CREATE TABLE stored_events (
  originator_id TEXT NOT NULL, originator_version INTEGER NOT NULL, topic TEXT NOT NULL,
  state BLOB NOT NULL, notification_id INTEGER PRIMARY KEY AUTOINCREMENT,
  UNIQUE (originator_id, originator_version))"""
SESSIONS = """CREATE TABLE sessions (
  id TEXT PRIMARY KEY, created INTEGER NOT NULL, updated INTEGER NOT NULL, last INTEGER NOT NULL,
  newest INTEGER NOT NULL, link TEXT, parent TEXT, parent_position INTEGER, agent TEXT, title TEXT,
  critical TEXT) WITHOUT ROWID"""
SESSIONS_INDEX = "CREATE INDEX sessions_newest ON sessions (newest)"
INSERT = (
    "INSERT INTO stored_events (originator_id, originator_version, topic, state) VALUES (?,?,?,?)"
)
SELECT = (
    "SELECT originator_version, state FROM stored_events WHERE originator_id=?"
    " ORDER BY originator_version"
)

raw_encode = msgspec.json.Encoder().encode
raw_decode = msgspec.json.Decoder(Record).decode

_TEXT = (
    "the log keeps every prompt call and reply as an immutable event so that a session survives "
    "a crash and any earlier position can be read again while the list of messages is rebuilt"
)
_WORDS = _TEXT.split()


def events(count: int) -> list[AnyEvent]:
    """The workload: the first `count` events of one session, the same every time."""
    rnd = random.Random(1)
    made: list[AnyEvent] = [SessionOpened(agent="bench")]
    while len(made) < count:
        made += _turn(rnd, len(made))
    return made[:count]


def _words(rnd: random.Random, low: int, high: int) -> str:
    return " ".join(rnd.choices(_WORDS, k=rnd.randint(low, high)))


def _turn(rnd: random.Random, at: int) -> list[AnyEvent]:
    origin = Origin(provider="openai", api="openai.chat", model="gpt-x")
    usage = Usage(input=1000 + at, output=120, cache_read=900)
    call = ToolCall.of("search", {"query": _words(rnd, 3, 8), "limit": 5}, id=f"call_{at:08x}")
    said = Message(role="assistant", parts=(Text(text=_words(rnd, 5, 30)), call), origin=origin)
    answer = Message(role="assistant", parts=(Text(text=_words(rnd, 40, 120)),), origin=origin)
    digest = f"{rnd.getrandbits(256):064x}"

    def request(upto: int) -> RequestSent:
        return RequestSent(transport="openai.chat", upto=upto, settings=digest, chain=digest)

    return [
        TurnStarted(),
        PromptAppended(message=Message.user(_words(rnd, 20, 80))),
        request(at + 1),
        ReplyReceived(message=said, finish="tool_calls", usage=usage, response_id=f"r{at:08x}"),
        ToolCalled(reply=at + 3, part=1),
        ToolReturned(content=(Text(text=_words(rnd, 30, 150)),)),
        request(at + 5),
        ReplyReceived(message=answer, usage=usage, response_id=f"s{at:08x}"),
    ]


def raw_connection(path: Path, synchronous: str, *statements: str) -> sqlite3.Connection:
    """A connection as somebody opens it who uses sqlite3 alone and knows it well."""
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=128)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute("PRAGMA cache_size=-16384")
    for statement in statements:
        connection.execute(statement)
    return connection


class Line(NamedTuple):
    """One line of the table."""

    what: str
    figures: list[float]
    """One a round: a ratio, or bytes."""
    allowed: float | None = None
    ours: float = 0
    raw: float = 0
    """Median seconds of both sides, for a ratio of times."""

    def __str__(self) -> str:
        spread = f"{min(self.figures):,.2f} - {max(self.figures):,.2f}"
        times = [f"{t * 1e6:,.1f} µs" if t else "" for t in (self.ours, self.raw)]
        allowed = f"{self.allowed:,.2f}" if self.allowed else ""
        figure = f"**{statistics.median(self.figures):,.2f}**"
        return f"| {self.what} | {figure} | {spread} | {allowed} | {times[0]} | {times[1]} |"


HEAD = "| what | median | spread | allowed | ours | raw |\n|---|---|---|---|---|---|"


def ratio(what: str, times: list[tuple[float, float]], allowed: float | None, per: int = 1) -> Line:
    """The line for rounds of (ours, raw) seconds; `per`: what they are divided by for show."""
    ours, raw = (statistics.median(side) / per for side in zip(*times, strict=True))
    return Line(what, [a / b for a, b in times], allowed, ours, raw)


def take_turns(
    ours: Callable[[int], object],
    raw: Callable[[int], object],
    turns: int,
    warm_up: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float]:
    """Median seconds of both, called by turns in random order; each is given the turn's number.

    `clock`: `time.process_time` where no disk is waited for, so that neighbours matter less.
    """
    times: tuple[list[float], list[float]] = ([], [])
    sides = [(times[0], ours), (times[1], raw)]
    rnd = random.Random(turns)
    for turn in range(turns + warm_up):
        rnd.shuffle(sides)
        for spent, call in sides:
            start = clock()
            call(turn)
            end = clock()
            if turn >= warm_up:
                spent.append(end - start)
    return statistics.median(times[0]), statistics.median(times[1])


@contextmanager
def folder() -> Iterator[Path]:
    """An empty folder where temporary files go (`TMPDIR`)."""
    path = Path(tempfile.mkdtemp(prefix="brute-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path)
