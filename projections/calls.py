"""The tool calls of a session, and what became of each.

A call's identity is (position of the reply, part index): provider ids repeat and may be empty.
Its life is `open` -> `started` (a `tool.called` was written) -> answered. Three things end it
otherwise: a later assistant message closes a call that nobody answered; a call that was cut or
is malformed is never run; and a started one whose writer is gone is *unknown*, never open again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeAlias

import msgspec

from brute.events.entries import Entry, Record
from brute.events.events import (
    PromptAppended,
    ReplyInterrupted,
    ReplyReceived,
    RequestFailed,
    RequestSent,
    ToolCalled,
    ToolReturned,
)
from brute.events.messages import Message, Outcome, ToolCall
from brute.projections.pairing import calls_of, oldest_match, results_of


class Call(msgspec.Struct, kw_only=True):
    """One call of a reply, as far as it has come."""

    reply: int
    """Position of the assistant message that calls."""
    part: int
    """Index of the call among that message's parts."""
    call: ToolCall
    cut: bool = False
    """Of an interrupted reply, or the last of a length-stopped one: it may be incomplete."""
    closed: bool = False
    """A later assistant message was asked for without its result; it is not to be run any more."""
    intent: int | None = None
    """Position of the (newest) `tool.called`."""
    run: str | None = None
    """The run that wrote it."""
    lane: str | None = None
    """The lane it runs in."""
    child: str | None = None
    """The session of the sub-agent that runs it."""
    outcome: Outcome | None = None
    result: int | None = None
    """Position of the entry that answered it."""

    @property
    def runnable(self) -> bool:
        """Whether the call may be run at all: whole, and its arguments one JSON object."""
        return not self.cut and self.call.malformed is None


class Calls:
    """All calls of a session, in the order in which they arrived."""

    __slots__ = (
        "_all",
        "_awaited",
        "_extra",
        "_intents",
        "_last",
        "_of",
        "_requests",
        "_started",
    )

    def __init__(self) -> None:
        self._all: dict[tuple[int, int], Call] = {}
        self._of: dict[int, list[Call]] = {}  # by reply
        self._awaited: dict[tuple[int, int], Call] = {}  # neither answered nor closed
        self._started: dict[tuple[int, int], Call] = {}  # an intent and no answer
        self._intents: dict[int, Call | None] = {}
        self._requests: dict[int, int] = {}  # no outcome yet: upto
        self._last: dict[int, Call] = {}  # of the newest assistant message, not answered
        self._extra: list[int] = []

    @property
    def open(self) -> list[Call]:
        """To be run: no intent, no answer, not closed, and runnable."""
        return [c for c in self._awaited.values() if c.intent is None and c.runnable]

    @property
    def unrunnable(self) -> list[Call]:
        """Never to be run (cut or malformed), and neither answered nor closed yet."""
        return [c for c in self._awaited.values() if c.intent is None and not c.runnable]

    @property
    def started(self) -> list[Call]:
        """An intent was written and no outcome, whoever wrote it."""
        return list(self._started.values())

    def unknown(self, *live: str | None, before: int = 0) -> list[Call]:
        """Started calls whose outcome nobody will write: run by none of the runs `live`.

        With `before` (the position of the last rewind) also those of a live run that were started
        before it. Closed ones are left out: their place in the history has been passed.
        """
        return [
            c
            for c in self._awaited.values()
            if c.intent is not None and (c.intent < before or c.run not in live)
        ]

    @property
    def answered(self) -> list[Call]:
        """Those with an outcome."""
        return [c for c in self._all.values() if c.outcome is not None]

    @property
    def extra(self) -> list[int]:
        """Positions of outcomes that did not count: second ones, and those of no known call."""
        return self._extra

    def get(self, reply: int, part: int) -> Call | None:
        """The call in part `part` of the reply at position `reply`, or None."""
        return self._all.get((reply, part))

    def by_intent(self, position: int) -> Call | None:
        """The call that the `tool.called` at `position` was about, or None."""
        return self._intents.get(position)

    def of(self, reply: int) -> list[Call]:
        """The calls of the reply at position `reply`, in call order."""
        return list(self._of.get(reply, ()))

    def __iter__(self) -> Iterator[Call]:
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        return f"Calls({list(self)!r})"

    def _ask(self, upto: int, position: int, message: Message, cut: int | None) -> None:
        """An assistant message arrived: it closes what it was asked without, and calls.

        Its calls from the `cut`-th on (counted as a slice counts) are cut; None: none of them.
        """
        closing = [key for key in self._awaited if key[0] <= upto]
        for key in closing:
            self._awaited.pop(key).closed = True
        found = list(calls_of(message).items())
        if not found:
            self._last = {}
            return
        whole = len(found) if cut is None else len(found[:cut])
        self._last = {}
        self._of[position] = []
        for number, (part, call) in enumerate(found):
            new = Call(reply=position, part=part, call=call, cut=number >= whole)
            self._of[position].append(new)
            self._all[position, part] = self._awaited[position, part] = self._last[part] = new

    def _answer(self, call: Call, outcome: Outcome, position: int) -> None:
        call.outcome, call.result = outcome, position
        key = call.reply, call.part
        self._awaited.pop(key, None)
        self._started.pop(key, None)
        if self._last.get(call.part) is call:
            del self._last[call.part]

    def _adopt(self, message: Message, position: int) -> None:
        """A tool message that only its ids pair with calls."""
        for result in results_of(message):
            part = oldest_match(((p, c.call) for p, c in self._last.items()), result)
            if part is not None:
                self._answer(self._last[part], result.outcome, position)

    def _request_sent(self, position: int, record: Record, event: RequestSent) -> None:
        self._requests[position] = min(event.upto, position - 1)

    def _request_failed(self, position: int, record: Record, event: object) -> None:
        if record.cause is not None:
            self._requests.pop(record.cause, None)

    def _reply_received(self, position: int, record: Record, event: ReplyReceived) -> None:
        upto = self._asked_upto(position, record)
        if upto is not None and event.kind != "summary":
            self._ask(upto, position, event.message, cut=-1 if event.finish == "length" else None)

    def _reply_interrupted(self, position: int, record: Record, event: ReplyInterrupted) -> None:
        upto = self._asked_upto(position, record)
        if upto is not None and event.message is not None:
            self._ask(upto, position, event.message, cut=0)

    def _asked_upto(self, position: int, record: Record) -> int | None:
        """What the reply had seen; None if it is a second one or its request is not said."""
        if record.cause is None:
            return position - 1
        return self._requests.pop(record.cause, None)

    def _prompt_appended(self, position: int, record: Record, event: PromptAppended) -> None:
        message = event.message
        if event.lifetime != "session":
            return
        if message.role == "tool":
            self._adopt(message, position)
        elif message.role == "assistant":
            self._ask(position - 1, position, message, cut=None)

    def _tool_called(self, position: int, record: Record, event: ToolCalled) -> None:
        call = self._all.get((event.reply, event.part))
        self._intents[position] = call
        if call is not None and call.outcome is None:
            call.intent, call.run, call.lane = position, record.run, record.lane
            call.child = event.child
            self._started[event.reply, event.part] = call

    def _tool_returned(self, position: int, record: Record, event: ToolReturned) -> None:
        if record.cause is None:
            if event.message is not None:
                self._adopt(event.message, position)
            return
        call = self._intents.get(record.cause)
        if call is None or call.outcome is not None:
            self._extra.append(position)
        else:
            self._answer(call, event.outcome, position)

    steps: ClassVar[dict[type[object], Step]] = {
        RequestSent: _request_sent,
        RequestFailed: _request_failed,
        ReplyReceived: _reply_received,
        ReplyInterrupted: _reply_interrupted,
        PromptAppended: _prompt_appended,
        ToolCalled: _tool_called,
        ToolReturned: _tool_returned,
    }
    """What each event does; every other event does nothing."""


Step: TypeAlias = Callable[[Calls, int, Record, Any], None]

_STEPS = Calls.steps


def initial() -> Calls:
    """No calls."""
    return Calls()


def apply(state: Calls, entry: Entry) -> Calls:
    """The calls after one more entry of the lineage; `state` is changed and returned."""
    record = entry.record
    step = _STEPS.get(type(record.event))
    if step is not None:
        step(state, entry.position, record, record.event)
    return state
