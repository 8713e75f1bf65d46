"""A log in memory, and a run function that says what a test scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

import brute
from brute.transports import OpenAI


@pytest.fixture
def log() -> Iterable[brute.Log]:
    """An empty log."""
    with brute.open(":memory:") as opened:
        yield opened


@pytest.fixture
def session(log: brute.Log) -> brute.Session:
    """A session with one question in it."""
    session = log.start(id="s")
    session.user("Hello?")
    return session


Scripted = Callable[..., "brute.Run[Any]"]


@pytest.fixture
def scripted() -> Scripted:
    """`scripted(reply, …)`: a run function; an exception in the script is raised."""

    def script(*replies: Any) -> brute.Run[Any]:
        rest: Iterator[Any] = iter(replies)

        def model(request: dict[str, Any]) -> Any:
            requests.append(request)
            reply = next(rest)
            if isinstance(reply, BaseException):
                raise reply
            return reply

        requests: list[dict[str, Any]] = []
        run: brute.Run[Any] = brute.run(OpenAI)(model)
        vars(run)["requests"] = requests
        return run

    return script
