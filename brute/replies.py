"""What a turn gives back: the reply, where it stands, and the calls it asks for."""

from __future__ import annotations

from collections.abc import Sequence

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
            "it is in the log, its calls are not run. Send the turn again to go on"
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
