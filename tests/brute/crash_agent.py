"""What the crash test kills: a process that works on a session and says what is acknowledged.

Run as a module it is a nursery: for each line `PATH SESSION ACKS SEED` on standard input it forks
a worker, prints its process id, and `dead` when the worker has died. So a kill costs a fork and
not a Python start.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
import tempfile
from typing import Any

import brute
from brute.transports import OpenAI
from tests.brute.replies import chat, chunks


def work(path: str, session_id: str, acks: str, seed: int) -> None:
    """Open the log and work in one session until killed. Acknowledged positions go to `acks`."""
    rng = random.Random(seed)
    written = os.open(acks, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def acknowledge(position: int) -> None:
        os.write(written, f"{position}\n".encode())

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
        session = log.session(session_id)
    except brute.UnknownSession:
        session = log.start(id=session_id)
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


def load_everything() -> None:
    """Take one turn, so that no worker has to import what is loaded on first use."""
    replies = iter([chat("Hi."), chunks("Hi.")])

    @brute.run(OpenAI)
    def model(request: dict[str, Any]) -> Any:
        return next(replies)

    with tempfile.TemporaryDirectory() as folder, brute.open(f"{folder}/a.db") as log:
        session = log.start()
        session.user("Hello?")
        session.complete(model, model="gpt-x")
        session.complete(model)


def nursery() -> None:
    """Fork a worker for each line of standard input."""
    load_everything()
    for line in sys.stdin:
        path, session, acks, seed = line.split()
        worker = os.fork()
        if worker == 0:
            work(path, session, acks, int(seed))
        print(worker, flush=True)  # noqa: T201
        os.waitpid(worker, 0)
        print("dead", flush=True)  # noqa: T201


if __name__ == "__main__":
    nursery()
