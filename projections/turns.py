"""The turns of a session: one request, its outcome, and the settings it ran with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import msgspec

from brute.events.entries import Entry, Record
from brute.events.events import (
    Failure,
    ReplyInterrupted,
    ReplyReceived,
    RequestFailed,
    RequestSent,
    Settings,
    TurnStarted,
)
from brute.events.messages import Finish, Usage
from brute.projections.pairing import calls_of


class Turn(msgspec.Struct, kw_only=True):
    """One turn, as far as it has come."""

    index: int
    """Which turn of the session, counted from 0."""
    position: int
    """Of its `turn.started`."""
    settings: Settings
    """All settings in force, unchanged ones included."""
    run: str | None = None
    """The run that started it."""
    lane: str = "/"
    request: int | None = None
    """Position of the (newest) request."""
    outcome: int | None = None
    """Position of that request's outcome."""
    finish: Finish | None = None
    """How the reply ended; `interrupted` or `error` where none came whole."""
    usage: Usage | None = None
    error: Failure | None = None
    calls: tuple[tuple[int, int], ...] = ()
    """The calls of the reply, each by its identity (reply, part); see `Calls.get`."""

    @property
    def agent(self) -> str | None:
        """The agent whose turn it was."""
        return self.settings.agent

    @property
    def open(self) -> bool:
        """Whether its outcome is still to come (or its request still to be sent)."""
        return self.outcome is None


class Turns:
    """All turns of a session, and the settings in force."""

    __slots__ = ("_current", "_requests", "settings", "turns")

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        """In the order in which they started. The projection's own: read it, never change it."""
        self.settings = Settings()
        """In force now: what the next turn's changes are counted from."""
        self._current: dict[str, Turn] = {}  # by lane
        self._requests: dict[int, Turn] = {}  # no outcome yet

    @property
    def last(self) -> Turn | None:
        """The newest turn."""
        return self.turns[-1] if self.turns else None

    def __len__(self) -> int:
        return len(self.turns)

    def __repr__(self) -> str:
        return f"Turns({self.turns!r})"

    def _outcome(self, position: int, record: Record) -> Turn | None:
        """The turn that an outcome ends; None for a second outcome or one of an older request."""
        cause = record.cause
        turn = self._requests.pop(cause, None) if cause is not None else None
        if turn is None or turn.request != cause:
            return None
        turn.outcome = position
        return turn

    def _turn_started(self, position: int, record: Record, event: TurnStarted) -> None:
        self.settings = self.settings.after(event)
        turn = Turn(
            index=len(self.turns),
            position=position,
            settings=self.settings,
            run=record.run,
            lane=record.lane,
        )
        self.turns.append(turn)
        self._current[record.lane] = turn

    def _request_sent(self, position: int, record: Record, event: RequestSent) -> None:
        turn = self._current.get(record.lane)
        if turn is None:
            return
        turn.request, turn.outcome, turn.finish = position, None, None
        turn.usage, turn.error, turn.calls = None, None, ()
        self._requests[position] = turn

    def _reply_received(self, position: int, record: Record, event: ReplyReceived) -> None:
        turn = self._outcome(position, record)
        if turn is not None:
            turn.finish, turn.usage = event.finish, event.usage
            turn.calls = tuple((position, part) for part in calls_of(event.message))

    def _reply_interrupted(self, position: int, record: Record, event: ReplyInterrupted) -> None:
        turn = self._outcome(position, record)
        if turn is not None:
            turn.finish, turn.usage, turn.error = "interrupted", event.usage, event.error
            if event.message is not None:
                turn.calls = tuple((position, part) for part in calls_of(event.message))

    def _request_failed(self, position: int, record: Record, event: RequestFailed) -> None:
        turn = self._outcome(position, record)
        if turn is not None:
            turn.finish, turn.error = "error", event.error

    steps: ClassVar[dict[type[object], Step]] = {
        TurnStarted: _turn_started,
        RequestSent: _request_sent,
        ReplyReceived: _reply_received,
        ReplyInterrupted: _reply_interrupted,
        RequestFailed: _request_failed,
    }
    """What each event does; every other event does nothing."""


Step: TypeAlias = Callable[[Turns, int, Record, Any], None]

_STEPS = Turns.steps


def initial() -> Turns:
    """No turns, no settings."""
    return Turns()


def apply(state: Turns, entry: Entry) -> Turns:
    """The turns after one more entry of the lineage; `state` is changed and returned."""
    record = entry.record
    step = _STEPS.get(type(record.event))
    if step is not None:
        step(state, entry.position, record, record.event)
    return state
