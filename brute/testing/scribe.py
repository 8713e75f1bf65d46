"""Writes conversations and logs from plain plans: what an agent would have left behind.

The strategies draw a flat list of `Round`s; this turns them into messages or entries, always in
the same way. Ids are counted, never drawn, so that a failing example shrinks to `call_1`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from brute.events import events as e
from brute.events.entries import Entry, Record
from brute.events.messages import (
    AnyPart,
    Finish,
    Message,
    Origin,
    Outcome,
    Reasoning,
    Text,
    ToolCall,
    Usage,
)

Ending: TypeAlias = Literal["received", "interrupted", "failed", "open"]
"""How a request ended; an open one has no outcome in the log."""

ORIGIN = Origin(provider="openai", platform="openai", api="openai.chat", model="gpt-5")


class Round(NamedTuple):
    """One turn of a conversation, and what came before and after it."""

    asked: tuple[str, ...] = ("a",)
    """What the user said first; nothing, if the model just goes on."""
    thought: str | None = None
    said: str | None = "a"
    calls: tuple[ToolCall, ...] = ()
    """The calls of the reply; their ids are put in when it is written."""
    results: tuple[tuple[str, Outcome] | None, ...] = ()
    """What each call gave back; a call that has none stays open."""
    order: int = 0
    """In which order the results came: the number of a permutation."""
    ending: Ending = "received"
    settings: e.TurnStarted = e.TurnStarted()
    usage: Usage | None = None
    asides: tuple[Aside, ...] = ()


class Aside(NamedTuple):
    """Something that happened in a round beside the talk: an event and, if it has one, its end."""

    event: e.AnyEvent
    outcome: e.AnyEvent | None = None


def conversation(rounds: Iterable[Round]) -> list[Message]:
    """The messages of these rounds: every call answered once, every result after its call."""
    messages: list[Message] = []
    for round_ in _numbered(rounds):
        if round_.asked:
            messages.append(Message.user(*round_.asked))
        messages.append(_reply(round_))
        for index, (text, outcome) in _results(round_):
            messages.append(Message.tool(round_.calls[index], text, outcome=outcome))
    return messages


def log(rounds: Iterable[Round], *, session: str = "s1", closed: bool = False) -> list[Entry]:
    """The entries that an agent which ran these rounds would have left behind."""
    scribe = Scribe(session)
    scribe.add(e.SessionOpened(agent="agent"))
    scribe.add(e.RunStarted(agent="agent"))
    for round_ in _numbered(rounds):
        scribe.round(round_)
    if closed:
        scribe.add(e.RunEnded())
        scribe.add(e.SessionClosed())
    return scribe.entries


class Scribe:
    """Writes entries one after another, with the position and the cause that each would have."""

    def __init__(self, session: str = "s1") -> None:
        self.session = session
        self.entries: list[Entry] = []
        self.prompts: list[int] = []
        """Positions of the entries that messages come from."""

    def add(self, event: e.AnyEvent, *, cause: int | None = None, lane: str = "/") -> int:
        """Write one event and return its position."""
        position = len(self.entries)
        record = Record(at=1_750_000_000_000 + position, event=event, cause=cause, lane=lane)
        if position:
            record = msgspec.structs.replace(record, run="run-1")
        self.entries.append(Entry(self.session, position, record))
        return position

    def round(self, round_: Round) -> None:
        """Write one round: the prompt, the turn, the request, how it ended, and its calls."""
        if round_.asked:
            self.prompts.append(self.add(e.PromptAppended(message=Message.user(*round_.asked))))
        self.add(round_.settings)
        for aside in round_.asides:
            self._aside(aside)
        request = self.add(e.RequestSent(transport="openai.chat", upto=len(self.entries) - 1))
        match round_.ending:
            case "received":
                self._calls(round_, self._received(round_, request))
            case "interrupted":
                cut = Message.assistant(*([round_.said] if round_.said else []))
                self.add(e.ReplyInterrupted(message=cut, reason="cut"), cause=request)
            case "failed":
                failure = e.Failure(kind="RateLimitError", message="slow down", status=429)
                self.add(e.RequestFailed(error=failure), cause=request)
            case "open":
                pass

    def _received(self, round_: Round, request: int) -> int:
        finish: Finish = "tool_calls" if round_.calls else "stop"
        reply = self.add(
            e.ReplyReceived(message=_reply(round_), finish=finish, usage=round_.usage),
            cause=request,
        )
        self.prompts.append(reply)
        return reply

    def _calls(self, round_: Round, reply: int) -> None:
        first = len(_reply(round_).parts) - len(round_.calls)
        begun = {
            index: self.add(e.ToolCalled(reply=reply, part=first + index), lane=f"/{index}")
            for index in range(len(round_.calls))
        }
        for index, (text, outcome) in _results(round_):
            returned = e.ToolReturned(content=(Text(text=text),), outcome=outcome)
            self.add(returned, cause=begun[index], lane=f"/{index}")

    def _aside(self, aside: Aside) -> None:
        event = aside.event
        match event:  # what points into the log points at what is there
            case e.PromptEdited():
                anchor = self.prompts[-1] if self.prompts else None
                event = msgspec.structs.replace(event, anchor=anchor)
            case e.HistoryRewound():
                event = e.HistoryRewound(to=event.to % len(self.entries))
            case e.HistoryCompacted():
                if not self.prompts:
                    return
                start, end = self.prompts[0], self.prompts[-1]
                summary = self.add(e.PromptAppended(message=Message.user("s"), author="compactor"))
                event = e.HistoryCompacted(start=start, end=end, summary=summary)
            case _:
                pass
        position = self.add(event)
        if aside.outcome is not None:
            self.add(aside.outcome, cause=position)


def _numbered(rounds: Iterable[Round]) -> Iterator[Round]:
    """The rounds with ids in their calls: call_1, call_2 and so on."""
    number = 0
    for round_ in rounds:
        calls: list[ToolCall] = []
        for call in round_.calls:
            number += 1
            calls.append(msgspec.structs.replace(call, id=f"call_{number}"))
        yield round_._replace(calls=tuple(calls))


def _reply(round_: Round) -> Message:
    parts: list[AnyPart] = [
        *([Reasoning(text=round_.thought)] if round_.thought is not None else []),
        *([Text(text=round_.said)] if round_.said is not None else []),
        *round_.calls,
    ]
    return Message(role="assistant", parts=tuple(parts), origin=ORIGIN)


def _results(round_: Round) -> list[tuple[int, tuple[str, Outcome]]]:
    """What came back, with the index of its call, in the order in which it came."""
    there = [(index, found) for index, found in enumerate(round_.results) if found is not None]
    return [there[place] for place in permutation(range(len(there)), round_.order)]


def permutation(items: Sequence[int], number: int) -> list[int]:
    """One order of `items`; 0 is the order they are in."""
    left, out = list(items), list[int]()
    while left:
        number, index = divmod(number, len(left))
        out.append(left.pop(index))
    return out
