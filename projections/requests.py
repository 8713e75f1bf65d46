"""The requests of a session, each with what came of it.

Fold it over everything that was logged: a request that was rewound away was sent all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from brute.events.entries import Entry, Record
from brute.events.events import (
    ReplyInterrupted,
    ReplyReceived,
    RequestFailed,
    RequestRetried,
    RequestSent,
    TurnStarted,
)

Kind: TypeAlias = Literal["reply", "summary", "interrupted", "failed"]


class Request(msgspec.Struct, kw_only=True):
    """One request, as far as it has come."""

    position: int
    turn: int | None
    """Position of its turn."""
    transport: str
    version: int
    upto: int
    """The position up to which the prompt was built."""
    settings: str | None = None
    """Digest of the settings of the body."""
    chain: str | None = None
    """Chain digest over the body's items."""
    items: int = 0
    run: str | None = None
    lane: str = "/"
    at: int = 0
    """When it was recorded, milliseconds since 1970 (UTC). For people."""
    retries: int = 0
    """How often it was sent again."""
    outcome: int | None = None
    """Position of its outcome."""
    kind: Kind | None = None
    """What the outcome is."""
    duration_ms: int | None = None
    """From the request to its outcome by the clocks of their writers. For people."""


class Requests:
    """All requests of a session, in the order in which they were sent."""

    __slots__ = ("_by_position", "_open", "_turns", "requests")

    def __init__(self) -> None:
        self.requests: list[Request] = []
        """The projection's own: read it, never change it."""
        self._by_position: dict[int, Request] = {}
        self._open: dict[int, Request] = {}
        self._turns: dict[str, int] = {}  # by lane

    @property
    def open(self) -> list[Request]:
        """Those without an outcome."""
        return list(self._open.values())

    def get(self, position: int) -> Request | None:
        """The request at `position`, or None."""
        return self._by_position.get(position)

    def outcome_of(self, position: int) -> int | None:
        """The position of the outcome of the request at `position`, or None."""
        request = self._by_position.get(position)
        return request.outcome if request is not None else None

    def __iter__(self) -> Iterator[Request]:
        return iter(self.requests)

    def __len__(self) -> int:
        return len(self.requests)

    def __repr__(self) -> str:
        return f"Requests({self.requests!r})"

    # -- folding ---------------------------------------------------------------------------

    def _turn_started(self, position: int, record: Record, event: TurnStarted) -> None:
        self._turns[record.lane] = position

    def _request_sent(self, position: int, record: Record, event: RequestSent) -> None:
        request = Request(
            position=position,
            turn=self._turns.get(record.lane),
            transport=event.transport,
            version=event.version,
            upto=event.upto,
            settings=event.settings,
            chain=event.chain,
            items=event.items,
            run=record.run,
            lane=record.lane,
            at=record.at,
        )
        self.requests.append(request)
        self._by_position[position] = self._open[position] = request

    def _request_retried(self, position: int, record: Record, event: RequestRetried) -> None:
        request = self._by_position.get(record.cause) if record.cause is not None else None
        if request is not None:
            request.retries += 1

    def _reply_received(self, position: int, record: Record, event: ReplyReceived) -> None:
        self._end(position, record, event.kind)

    def _reply_interrupted(self, position: int, record: Record, event: ReplyInterrupted) -> None:
        self._end(position, record, "interrupted")

    def _request_failed(self, position: int, record: Record, event: RequestFailed) -> None:
        self._end(position, record, "failed")

    def _end(self, position: int, record: Record, kind: Kind) -> None:
        request = self._open.pop(record.cause, None) if record.cause is not None else None
        if request is not None:
            request.outcome, request.kind = position, kind
            request.duration_ms = max(0, record.at - request.at)

    steps: ClassVar[dict[type[object], Step]] = {
        TurnStarted: _turn_started,
        RequestSent: _request_sent,
        RequestRetried: _request_retried,
        ReplyReceived: _reply_received,
        ReplyInterrupted: _reply_interrupted,
        RequestFailed: _request_failed,
    }
    """What each event does; every other event does nothing."""


Step: TypeAlias = Callable[[Requests, int, Record, Any], None]

_STEPS = Requests.steps


def initial() -> Requests:
    """No requests."""
    return Requests()


def apply(state: Requests, entry: Entry) -> Requests:
    """The requests after one more entry, rewound or not; `state` is changed and returned."""
    record = entry.record
    step = _STEPS.get(type(record.event))
    if step is not None:
        step(state, entry.position, record, record.event)
    return state
