"""Logs written by hand, one short line an entry."""

from __future__ import annotations

from typing import Any

from brute.events.entries import Entry, Record
from brute.events.events import (
    AnyEvent,
    HistoryCompacted,
    HistoryRewound,
    Lifetime,
    PromptAppended,
    PromptEdited,
    ReplyInterrupted,
    ReplyReceived,
    RequestSent,
    ToolCalled,
    ToolReturned,
    TurnStarted,
    UnknownEvent,
)
from brute.events.messages import AnyPart, Finish, Message, Outcome, Text, ToolCall, Usage
from brute.projections import fold, lineage, messages
from brute.projections.messages import MessageList


class Log:
    """A log in memory. Each method appends one entry and says its position."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, event: AnyEvent | UnknownEvent, **envelope: Any) -> int:
        position = len(self.entries)
        record = Record(**{"at": position * 1000, "event": event, "run": "r1", **envelope})
        self.entries.append(Entry("s1", position, record))
        return position

    def say(self, message: Message, lifetime: Lifetime = "session", **envelope: Any) -> int:
        return self.add(PromptAppended(message=message, lifetime=lifetime), **envelope)

    def user(self, text: str, lifetime: Lifetime = "session", **envelope: Any) -> int:
        return self.say(Message.user(text), lifetime, **envelope)

    def edit(
        self, op: Any, message: Message, anchor: int | None = None, lifetime: Lifetime = "turn"
    ) -> int:
        return self.add(PromptEdited(op=op, message=message, anchor=anchor, lifetime=lifetime))

    def turn(self, lane: str = "/", **settings: Any) -> int:
        return self.add(TurnStarted(**settings), lane=lane)

    def ask(self, upto: int | None = None, **envelope: Any) -> int:
        """A request for all that has been said (or up to there)."""
        upto = len(self.entries) - 1 if upto is None else upto
        return self.add(RequestSent(transport="test", upto=upto), **envelope)

    def reply(
        self,
        request: int | None,
        *parts: str | AnyPart,
        finish: Finish | None = None,
        kind: Any = "reply",
        usage: Usage | None = None,
        **envelope: Any,
    ) -> int:
        message = Message.assistant(*parts)
        finish = finish or ("tool_calls" if message.tool_calls else "stop")
        event = ReplyReceived(message=message, finish=finish, kind=kind, usage=usage)
        return self.add(event, cause=request, **envelope)

    def cut(self, request: int | None, *parts: str | AnyPart) -> int:
        message = Message.assistant(*parts) if parts else None
        return self.add(ReplyInterrupted(message=message, reason="hung up"), cause=request)

    def round(self, *parts: str | AnyPart) -> int:
        """A turn with its request and reply; the reply's position."""
        self.turn()
        return self.reply(self.ask(), *parts)

    def call(self, reply: int, part: int, **envelope: Any) -> int:
        return self.add(ToolCalled(reply=reply, part=part), **envelope)

    def returned(self, intent: int | None, text: str, outcome: Outcome = "ok") -> int:
        return self.add(ToolReturned(content=(Text(text=text),), outcome=outcome), cause=intent)

    def run(self, reply: int, part: int, text: str) -> int:
        """A call and its result; the result's position."""
        return self.returned(self.call(reply, part), text)

    def rewind(self, to: int) -> int:
        return self.add(HistoryRewound(to=to))

    def compact(self, start: int, end: int, summary: int) -> int:
        return self.add(HistoryCompacted(start=start, end=end, summary=summary))

    # -- what comes of it --------------------------------------------------------------------

    @property
    def state(self) -> MessageList:
        return fold(messages, lineage(self.entries))

    @property
    def said(self) -> list[str]:
        """`role text` of each message; a call is shown as its tool's name in brackets."""
        return [spoken(message) for message in self.state.messages]


def spoken(message: Message) -> str:
    """One message as a short word."""
    words = [f"[{p.name}]" if isinstance(p, ToolCall) else "" for p in message.parts]
    return f"{message.role} {message.content}{''.join(words)}"


def call(name: str, id: str | None = "", raw: str = "{}") -> ToolCall:
    """A call whose id is its name, unless another is given."""
    return ToolCall(id=name if id == "" else id, name=name, raw=raw)
