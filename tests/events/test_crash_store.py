"""kill -9 while appends are on their way: what was acknowledged is there, and whole.

`BRUTE_KILLS` sets the number of kills.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from brute.events.events import NoteAdded
from brute.events.log import EventLog
from tests.events.store_contract import notes
from tests.events.workers import context, write_until_killed

KILLS = int(os.environ.get("BRUTE_KILLS", "60"))


@pytest.mark.slow
def test_no_acknowledged_event_is_lost_to_a_kill_and_no_batch_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "crash.db"
    rnd = random.Random(11)
    with EventLog.open(path) as log:
        log.append("s", notes("0+1"), expect=-1)

    for _ in range(KILLS):
        acknowledged = killed_at_random(str(path), rnd)
        with EventLog.open(path) as log:
            assert log.last("s") >= acknowledged
            whole(log)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def killed_at_random(path: str, rnd: random.Random) -> int:
    """Let a process write, kill it, and give the last position it acknowledged."""
    processes = context()
    reader, writer = processes.Pipe(duplex=False)
    process = processes.Process(target=write_until_killed, args=(path, writer, rnd.random()))
    process.start()
    writer.close()
    acknowledged = int(reader.recv_bytes())
    time.sleep(rnd.uniform(0, 0.1))  # the random point
    process.kill()
    process.join()
    with contextlib.suppress(EOFError, OSError):  # the last word may be torn
        while True:
            acknowledged = int(reader.recv_bytes())
    assert process.exitcode == -signal.SIGKILL
    return acknowledged


def whole(log: EventLog) -> None:
    """Positions without a hole, batches without a missing event, the session's row up to date."""
    found = [
        (entry.position, entry.event.text, entry.append_id is not None)
        for entry in log.read("s")
        if isinstance(entry.event, NoteAdded)
    ]
    assert [position for position, _, _ in found] == list(range(log.last("s") + 1))
    for text, group in itertools.groupby(found, key=lambda row: row[1]):
        start, size = map(int, text.split("+"))
        rows = list(group)
        assert [position for position, _, _ in rows] == list(range(start, start + size))
        assert [first for _, _, first in rows] == [True] + [False] * (size - 1)


def test_ctrl_c_at_any_moment_leaves_a_log_that_goes_on(tmp_path: Path) -> None:
    acknowledged: list[int] = []
    interrupted = 0
    with EventLog.open(tmp_path / "agent.db", synchronous="NORMAL") as log:
        last = log.append("s", notes("a"), expect=-1)[-1].position
        rnd = random.Random(5)
        for _ in range(150):
            try:
                # Again and again: one that falls into a callback of the collector is swallowed.
                signal.setitimer(signal.ITIMER_REAL, rnd.uniform(1e-5, 1e-3), 0.05)
                while True:
                    last = log.append("s", notes("b", "c"), expect=last)[-1].position
                    acknowledged.append(last)
                    list(log.read("s", after=last - 5))
            except KeyboardInterrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
                interrupted += 1
                last = log.last("s")
        entries = list(log.read("s"))

    assert interrupted == 150
    assert [entry.position for entry in entries] == list(range(last + 1))
    assert len(entries) % 2 == 1
    assert set(acknowledged) <= {entry.position for entry in entries}


@pytest.fixture(autouse=True)
def _alarm_is_ctrl_c() -> object:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
