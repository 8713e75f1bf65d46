"""kill -9 at random points: what was acknowledged is there, and the session goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import brute
from brute.transports import Anthropic, OpenAI
from tests.brute.replies import chat

KILLS = int(os.environ.get("BRUTE_KILLS", "200"))
ROOT = Path(__file__).parent.parent.parent


class Nursery:
    """Workers to kill, forked by a process that has everything loaded."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.brute.crash_agent"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def kill_one(self, path: Path, session: str, seed: int, after: float) -> int:
        """Let a worker work for `after` seconds, kill it; the last position it acknowledged."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        acks = path.with_suffix(".acks")
        acks.unlink(missing_ok=True)
        self.process.stdin.write(f"{path} {session} {acks} {seed}\n")
        self.process.stdin.flush()
        worker = int(self.process.stdout.readline())
        while not acks.exists() or not acks.read_bytes():
            time.sleep(0.001)
        time.sleep(after)
        os.kill(worker, signal.SIGKILL)
        assert self.process.stdout.readline() == "dead\n"
        return int(acks.read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[2])

    def close(self) -> None:
        """End the nursery."""
        self.process.communicate()


@pytest.fixture
def nursery() -> Iterable[Nursery]:
    """A nursery of workers."""
    opened = Nursery()
    yield opened
    opened.close()


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_to_a_kill_and_the_session_goes_on(
    tmp_path: Path, nursery: Nursery
) -> None:
    path = tmp_path / "crash.db"
    rng = random.Random(7)
    unknown = torn_streams = 0

    for kill in range(KILLS):
        name = f"crash-{kill // 10}"  # ten kills a session
        acknowledged = nursery.kill_one(path, name, kill, rng.random() * 0.08)
        with brute.open(path) as log:
            session = log.session(name)
            assert session.position >= acknowledged
            assert [e.position for e in session.entries] == list(range(session.position + 1))
            unknown += len(session.calls.unknown("nobody"))
            torn_streams += len(session.requests.open)
            if not session.messages:  # killed before the first word
                session.user("Hello?")
            assert OpenAI.check(OpenAI.request(session)) == []
            assert Anthropic.check(Anthropic.request(session, max_tokens=10)) == []
            if kill % 10 == 9:
                goes_on(session)

    assert KILLS < 50 or (unknown > 0 and torn_streams > 0), "no kill fell into a call or a reply"


def goes_on(session: brute.Session) -> None:
    """One more whole turn in the session that was left behind."""

    @brute.run(OpenAI)
    def model(request: dict[str, Any]) -> Any:
        assert OpenAI.check(request) == []
        return chat("Fine.")

    session.user("Are you still there?")
    assert session.complete(model, model="gpt-x").text == "Fine."
    session.recover()
    assert session.requests.open == []
    assert session.calls.unknown("nobody") == []
