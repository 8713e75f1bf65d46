"""What a turn gives back: the reply, where it stands, and the calls it asks for."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from brute.events.errors import BruteError
from brute.events.events import Failure, ReplyReceived
from brute.events.messages import Finish, Message, Usage
from brute.projections.calls import Call


class Reply:
    """One reply of a model."""

    def __init__(self, position: int, event: ReplyReceived, calls: Sequence[Call]) -> None:
        self.position = position
        """Its position in the session."""
        self.message: Message = event.message
        self.finish: Finish = event.finish
        self.finish_raw: str | None = event.finish_raw
        """The provider's own word for `finish`."""
        self.usage: Usage | None = event.usage
        self.calls = list(calls)
        """The calls it asks for; empty for an interrupted reply, whose calls are never run."""

    @property
    def text(self) -> str:
        """The text of the reply."""
        return self.message.content

    def __repr__(self) -> str:
        return f"<Reply @{self.position} {self.finish} {self.text[:60]!r} {len(self.calls)} calls>"


class AsyncReply(Reply):
    """A reply of an async run function: its calls are run async too."""


class StreamCut(BruteError):
    """The stream of a reply ended before the provider said it was done."""

    def __init__(self, session: str, position: int, reason: str) -> None:
        super().__init__(session, position, reason)
        self.session, self.position, self.reason = session, position, reason

    def __str__(self) -> str:
        return (
            f"{self.session}@{self.position}: the reply was cut ({self.reason}); what had come of "
            "it is in the log, its calls are not run. Take another turn to go on"
        )


class RequestFailure(BruteError):
    """A recorded request had failed; a replay is served its failure."""

    def __init__(self, session: str, position: int, failure: Failure) -> None:
        super().__init__(session, position, failure)
        self.session, self.position, self.failure = session, position, failure

    def __str__(self) -> str:
        status = f" (HTTP {self.failure.status})" if self.failure.status else ""
        return (
            f"{self.session}@{self.position}: the recorded request failed with "
            f"{self.failure.kind}{status}: {self.failure.message}"
        )


class EffectFailure(BruteError):
    """A recorded effect had raised; a replay is served its failure."""

    def __init__(self, name: str, failure: Failure) -> None:
        super().__init__(name, failure)
        self.name, self.failure = name, failure

    def __str__(self) -> str:
        return f"effect {self.name} had raised {self.failure.kind}: {self.failure.message}"


class OutcomeUnknown(BruteError):
    """An effect was started and nobody knows whether it happened; it is not run again."""

    def __init__(self, session: str, position: int, name: str) -> None:
        super().__init__(session, position, name)
        self.session, self.position, self.name = session, position, name

    def __str__(self) -> str:
        return (
            f"{self.session}@{self.position}: {self.name} was started and the process died before "
            "its outcome was known. Find out whether it happened; declare it "
            "@brute.effect(idempotent=True) if it may run again"
        )


E = TypeVar("E", bound=BruteError)

_HOMES = ("builtins", "asyncio", "openai", "anthropic", "httpx", "httpx2")
"""Modules whose errors a replay raises as what they were, if they are loaded. Nothing is ever
imported by a name that stands in a log."""


def as_it_was(error: E, failure: Failure, namespace: Mapping[str, object] | None = None) -> E:
    """`error`, as an instance of the recorded exception's class too, so that it is caught alike.

    The class is looked up by its name in `namespace` (the globals of the user's own function) and
    in loaded modules; where there is none, `error` itself comes back.
    """
    original = _named(failure.kind, namespace or {})
    if original is None or isinstance(error, original):
        return error
    try:
        twin: Any = type(failure.kind, (type(error), original), {})
        raised: E = twin.__new__(twin)
    except TypeError:  # two classes whose instances cannot be one object
        return error
    raised.__dict__.update(error.__dict__)
    raised.args = error.args
    if failure.status is not None:
        raised.__dict__["status_code"] = failure.status
    return raised


def _named(name: str, namespace: Mapping[str, object]) -> type[BaseException] | None:
    places = [namespace, *(vars(sys.modules[m]) for m in _HOMES if m in sys.modules)]
    for place in places:
        found = place.get(name)
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
    return None


class TurnLimit(BruteError):
    """The agent reached its maximum number of turns with calls still open."""

    def __init__(self, session: str, turns: int) -> None:
        super().__init__(session, turns)
        self.session, self.turns = session, turns

    def __str__(self) -> str:
        return (
            f"{self.session}: {self.turns} turns were made and the model still asks for tools; "
            "the session can be continued with a higher max_turns"
        )
