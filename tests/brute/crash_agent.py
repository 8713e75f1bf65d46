"""What the crash test kills: a process that works on a session and says what is acknowledged."""

from __future__ import annotations

import itertools
import random
from multiprocessing.connection import Connection
from typing import Any

import brute
from brute.transports import OpenAI
from tests.brute.replies import chat, chunks


def work(path: str, pipe: Connection, seed: int) -> None:
    """Open the log and work until killed. Each message on the pipe is a position."""
    rng = random.Random(seed)

    def acknowledge(position: int) -> None:
        pipe.send_bytes(str(position).encode())

    @brute.run(OpenAI)
    def model(request: dict[str, Any]) -> Any:
        if rng.random() < 0.3:
            return chunks(*("word " * 50 for _ in range(20)))
        if rng.random() < 0.5:
            return chat("Done.")
        return chat("Looking.", *(("look", {"n": n}) for n in range(rng.randrange(1, 4))))

    def look(n: int) -> str:
        """Look at something."""
        return "x" * rng.randrange(3000)

    log = brute.open(path)
    try:
        session = log.session("crash")
    except brute.UnknownSession:
        session = log.start(id="crash")
    acknowledge(session.position)
    session.run_calls(tools=[look])
    for number in itertools.count():
        acknowledge(session.user(f"Question {number}").position)
        reply = session.complete(model, model="gpt-x", tools=[look])
        acknowledge(reply.position)
        while reply.calls:
            session.run_calls(reply)
            acknowledge(session.position)
            reply = session.complete(model)
            acknowledge(reply.position)
