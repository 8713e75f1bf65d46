"""What the store tests let other processes do."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import Barrier
from typing import Any

from brute.events.errors import Conflict
from brute.events.events import Event, NoteAdded
from brute.events.log import EventLog


def context() -> ForkServerContext:
    """Processes that share nothing with this one, and start quickly."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["tests.events.workers", "brute.events.store.sqlite"])
    return found


def together(work: Callable[..., object], count: int, *args: Any) -> list[Any]:
    """What `count` processes give that begin at the same moment."""
    processes = context()
    barrier = processes.Barrier(count)
    pipes = [processes.Pipe(duplex=False) for _ in range(count)]
    started = [
        processes.Process(target=_begin, args=(work, barrier, writer, number, args))
        for number, (_, writer) in enumerate(pipes)
    ]
    for process in started:
        process.start()
    results = [reader.recv() if reader.poll(60) else "no answer" for reader, _ in pipes]
    for process in started:
        process.join(60)
    return results


def _begin(
    work: Callable[..., object], barrier: Barrier, pipe: Connection, number: int, args: Any
) -> None:
    try:
        barrier.wait(30)
        pipe.send(work(number, *args))
    except BaseException as error:  # noqa: BLE001 - sent to the test
        pipe.send(f"{type(error).__name__}: {error}")


def open_and_append(number: int, path: str) -> str:
    """Open a log that may not be there yet, and begin a session."""
    with EventLog.open(path) as log:
        log.append(f"s{number}", [NoteAdded(text="a")], expect=-1)
    return "ok"


def race(number: int, path: str, session: str, count: int) -> list[int]:
    """Append until `count` appends were accepted; their positions."""
    positions: list[int] = []
    with EventLog.open(path, synchronous="NORMAL") as log:
        while len(positions) < count:
            try:
                note = NoteAdded(text=str(number))
                entries = log.append(session, [note], expect=log.last(session))
            except Conflict:
                continue
            positions.append(entries[0].position)
    return positions


def append_slowly(number: int, path: str, session: str, count: int) -> str:
    """Append in batches of one to three, each entry said by its position."""
    rnd = random.Random(number)
    with EventLog.open(path, synchronous="NORMAL") as log:
        last = log.last(session)
        while last < count:
            size = rnd.randint(1, 3)
            events: list[Event] = [NoteAdded(text=str(last + 1 + n)) for n in range(size)]
            last = log.append(session, events, expect=last)[-1].position
    return "ok"


def write_until_killed(path: str, pipe: Connection, seed: int) -> None:
    """Append single events and batches for ever; tell the pipe each last position once durable."""
    rnd = random.Random(seed)
    with EventLog.open(path) as log:
        last = log.last("s")
        pipe.send_bytes(b"%d" % last)
        while True:
            size = rnd.choice((1, 1, 1, 7))
            batch = NoteAdded(text=f"{last + 1}+{size}", data="x" * rnd.randrange(10, 9000))
            last = log.append("s", [batch] * size, expect=last)[-1].position
            pipe.send_bytes(b"%d" % last)
