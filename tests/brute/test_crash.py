"""kill -9 at random points: what was acknowledged is there, and the session goes on."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

import brute
from brute.transports import Anthropic, OpenAI
from tests.brute.crash_agent import work
from tests.brute.replies import chat

KILLS = int(os.environ.get("BRUTE_KILLS", "200"))


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_to_a_kill_and_the_session_goes_on(tmp_path: Path) -> None:
    path = str(tmp_path / "crash.db")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.brute.crash_agent"])
    rng = random.Random(7)
    unknown = 0

    for kill in range(KILLS):
        acknowledged = killed_at_random(context, path, kill, rng)
        with brute.open(path) as log:
            session = log.session("crash")
            assert session.position >= acknowledged
            assert [e.position for e in session.entries] == list(range(session.position + 1))
            unknown += len(session.calls.unknown("nobody"))
            assert OpenAI.check(OpenAI.request(session)) == []
            assert Anthropic.check(Anthropic.request(session, max_tokens=10)) == []
            if kill % 20 == 19:
                goes_on(session)
    assert unknown > 0, "no kill fell between intent and outcome; the test proves too little"


def killed_at_random(context: Any, path: str, seed: int, rng: random.Random) -> int:
    """Let a process work, kill it, and give the last position it acknowledged."""
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(path, writer, seed))
    process.start()
    writer.close()
    acknowledged = int(reader.recv_bytes())
    time.sleep(rng.random() * 0.08)
    process.kill()
    process.join()
    with contextlib.suppress(EOFError, OSError):  # the last one may be torn
        while True:
            acknowledged = int(reader.recv_bytes())
    reader.close()
    process.close()
    return acknowledged


def goes_on(session: brute.Session) -> None:
    """One more whole turn in the session that was left behind."""

    @brute.run(OpenAI)
    def model(request: dict[str, Any]) -> Any:
        assert OpenAI.check(request) == []
        return chat("Fine.")

    session.user("Are you still there?")
    assert session.complete(model, model="gpt-x").text == "Fine."
