"""Entries of every kind: well-formed sessions, and any sequence at all."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from brute.events.entries import Entry, Record
from brute.events.events import (
    EVENTS,
    ApprovalAsked,
    ApprovalGiven,
    EffectCalled,
    EffectReturned,
    ExchangeRecorded,
    Failure,
    HistoryCompacted,
    HistoryRewound,
    Link,
    ModelRef,
    NoteAdded,
    PromptAppended,
    PromptEdited,
    ReplyInterrupted,
    ReplyReceived,
    RequestFailed,
    RequestRetried,
    RequestSent,
    RunEnded,
    RunStarted,
    SessionClosed,
    SessionOpened,
    StreamChunked,
    ToolCalled,
    ToolReturned,
    ToolSpec,
    TurnStarted,
    UnknownEvent,
    ValueRecorded,
)
from brute.events.messages import (
    Foreign,
    Hosted,
    Json,
    Media,
    Message,
    Native,
    Origin,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)

NASTY = ["", "a", "é\n\x00\x1b[31m", "\ud800", "\u202e\u2028\r\n", "🙂\u200d", "x" * 500]

texts = st.sampled_from(NASTY)
ids = st.sampled_from([None, "", "1", "2", "3"])
positions = st.integers(-1, 30)
json_values = st.sampled_from(
    [
        None,
        True,
        0,
        -1.5,
        "\ud800\n",
        [],
        {},
        {"a": [1, {"b": [[[[["deep"]]]]]}]},
        10**400,
        [0] * 99,
    ]
)
raws = st.sampled_from(["", "{}", "null", '{"q": "kyoto"}', '{"a": 1, "b": 2}', "{", "[1]", "\x00"])
outcomes = st.sampled_from(["ok", "error", "denied", "interrupted", "unknown"])
lifetimes = st.sampled_from(["turn", "task", "session"])
failures = st.builds(
    Failure, kind=texts, message=texts, status=st.sampled_from([None, 429]), body=json_values
)
usages = st.none() | st.builds(
    Usage,
    input=st.integers(0, 100),
    output=st.integers(0, 100),
    cache_read=st.integers(0, 100),
    cache_write=st.integers(0, 100),
)

calls = st.builds(
    ToolCall, id=ids, name=texts, raw=raws, kind=st.sampled_from(["function", "custom"])
)
contents = st.lists(
    st.one_of(
        st.builds(Text, text=texts),
        st.builds(Json, value=json_values),
        st.builds(Media, kind=st.just("image"), name=st.none() | texts),
        st.builds(Native, api=texts, kind=texts, block=json_values),
    ),
    max_size=2,
).map(tuple)
results = st.builds(
    ToolResult, call_id=ids, name=st.none() | texts, content=contents, outcome=outcomes
)
parts = st.one_of(
    st.builds(Text, text=texts),
    calls,
    calls,
    results,
    st.builds(Reasoning, text=texts),
    st.builds(Refusal, text=texts),
    st.builds(Hosted, tool=texts, name=st.none() | texts, input=json_values),
    st.builds(Json, value=json_values),
    st.builds(Media, kind=st.just("document"), data=st.just(b"x")),
    st.just(Foreign(b'{"type":"hologram"}')),
)
origins = st.none() | st.builds(Origin, api=st.just("x"), model=st.none() | texts)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    parts=st.lists(parts, max_size=4).map(tuple),
    origin=origins,
)
replies = st.builds(
    Message,
    role=st.just("assistant"),
    parts=st.lists(calls | st.builds(Text, text=texts), max_size=3).map(tuple),
    origin=origins,
)

_settings: dict[str, Any] = {
    "agent": st.none() | texts,
    "model": st.none() | st.builds(ModelRef, id=texts),
    "system": st.none() | texts,
    "format": st.none() | st.just({"type": "object"}),
    "parameters": st.none() | st.just({"max_tokens": 3}),
    "tools": st.none() | st.lists(st.builds(ToolSpec, name=texts), max_size=2).map(tuple),
}
turns = st.fixed_dictionaries({}, optional=_settings).map(lambda some: TurnStarted(**some))

BY_CLASS: dict[type, st.SearchStrategy[Any]] = {
    SessionOpened: st.builds(
        SessionOpened,
        agent=st.none() | texts,
        link=st.none()
        | st.builds(Link, kind=st.sampled_from(["fork", "import"]), session=st.none() | texts),
    ),
    SessionClosed: st.builds(SessionClosed),
    RunStarted: st.builds(RunStarted, agent=texts, args=st.none() | st.just({"a": 1})),
    RunEnded: st.builds(RunEnded, value=json_values, error=st.none() | failures),
    TurnStarted: turns,
    RequestSent: st.builds(RequestSent, transport=texts, upto=positions, items=st.integers(0, 3)),
    ReplyReceived: st.builds(
        ReplyReceived,
        message=replies | messages,
        finish=st.sampled_from(["stop", "tool_calls", "length"]),
        usage=usages,
        kind=st.sampled_from(["reply", "reply", "summary"]),
    ),
    ReplyInterrupted: st.builds(
        ReplyInterrupted,
        message=st.none() | replies,
        reason=texts,
        error=st.none() | failures,
        usage=usages,
    ),
    RequestFailed: st.builds(RequestFailed, error=failures),
    RequestRetried: st.builds(RequestRetried, why=texts, error=st.none() | failures),
    PromptAppended: st.builds(PromptAppended, message=messages, author=texts, lifetime=lifetimes),
    PromptEdited: st.builds(
        PromptEdited,
        op=st.sampled_from(["prepend", "append_to", "insert_before", "insert_after", "sideways"]),
        message=messages,
        anchor=st.none() | positions,
        lifetime=lifetimes,
    ),
    HistoryRewound: st.builds(HistoryRewound, to=positions),
    HistoryCompacted: st.builds(
        HistoryCompacted, start=positions, end=positions, summary=positions
    ),
    ToolCalled: st.builds(
        ToolCalled, reply=positions, part=st.integers(-1, 3), child=st.none() | texts
    ),
    ToolReturned: st.builds(
        ToolReturned, content=contents, outcome=outcomes, message=st.none() | messages
    ),
    EffectCalled: st.builds(EffectCalled, name=texts, args=json_values),
    EffectReturned: st.builds(
        EffectReturned,
        value=json_values,
        error=st.none() | failures,
        outcome=st.sampled_from(["ok", "error", "unknown"]),
    ),
    ApprovalAsked: st.builds(ApprovalAsked, about=texts),
    ApprovalGiven: st.builds(ApprovalGiven, granted=st.booleans(), why=st.none() | texts),
    ValueRecorded: st.builds(ValueRecorded, name=texts, value=json_values),
    ExchangeRecorded: st.builds(ExchangeRecorded, request=json_values),
    NoteAdded: st.builds(NoteAdded, text=texts, data=json_values),
    StreamChunked: st.builds(StreamChunked, frames=st.just(({"a": 1},))),
    UnknownEvent: st.builds(UnknownEvent, tag=texts, raw=st.sampled_from([b"{}", b"\xff\x00"])),
}
assert BY_CLASS.keys() == {*EVENTS.values(), UnknownEvent}, "a new event needs a strategy here"

events = st.one_of(list(BY_CLASS.values()))
busy_events = st.one_of(
    [
        BY_CLASS[cls]
        for cls in (
            PromptAppended,
            PromptEdited,
            TurnStarted,
            RequestSent,
            ReplyReceived,
            ReplyInterrupted,
            ToolCalled,
            ToolReturned,
            HistoryCompacted,
        )
    ]
)
"""The events that move the message list."""

_envelopes: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "cause": st.none() | positions,
        "lane": st.sampled_from(["/", "/0", "/0/2", "/1", ""]),
        "run": st.sampled_from([None, "r1", "r2"]),
        "at": st.integers(0, 10_000),
    }
)


@st.composite
def logs(draw: st.DrawFn, some: st.SearchStrategy[Any] = events) -> list[Entry]:
    """Any events at all, with any causes, at positions 0, 1, 2 …"""
    drawn = draw(st.lists(st.tuples(some, _envelopes), max_size=30))
    return [Entry("s1", i, Record(event=e, **kw)) for i, (e, kw) in enumerate(drawn)]


@st.composite
def wild_logs(draw: st.DrawFn) -> list[Entry]:
    """Any events at positions that rise, stand still and jump back."""
    drawn = draw(st.lists(st.tuples(positions, events, _envelopes), max_size=30))
    return [Entry("s1", p, Record(event=e, **kw)) for p, e, kw in drawn]


# -- sessions that could have happened --------------------------------------------------------

WORDS = ["user", "turn", "ask", "reply", "call", "return", "edit", "cut", "fail", "adopt"]
MORE = ["rewind", "compact"]


class _Writer:
    """Writes a log by steps; a step that cannot be taken now is left out."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.asked: list[int] = []
        self.calls: list[tuple[int, int]] = []
        self.intents: list[int] = []
        self.said: list[int] = []

    def add(self, event: Any, cause: int | None = None, lane: str = "/") -> int:
        position = len(self.entries)
        record = Record(at=position, event=event, cause=cause, lane=lane, run="r1")
        self.entries.append(Entry("s1", position, record))
        return position

    def step(self, word: str, number: int, lifetime: Any) -> None:
        getattr(self, f"_{word}")(number, lifetime)

    def _user(self, number: int, lifetime: Any) -> None:
        event = PromptAppended(message=Message.user(f"u{len(self.entries)}"), lifetime=lifetime)
        self.said.append(self.add(event))

    def _turn(self, number: int, lifetime: Any) -> None:
        self.add(TurnStarted())

    def _ask(self, number: int, lifetime: Any) -> None:
        upto = len(self.entries) - 1 - number % 3
        self.asked.append(self.add(RequestSent(transport="t", upto=upto)))

    def _reply(self, number: int, lifetime: Any) -> None:
        cause = self.asked.pop(number % len(self.asked)) if self.asked else None
        asks = [ToolCall.of(f"t{i}", id=["", "1", "1", "2"][i]) for i in range(number % 4)]
        words = f"a{len(self.entries)}"
        reply = self.add(
            ReplyReceived(
                message=Message.assistant(words, *asks), finish="tool_calls" if asks else "stop"
            ),
            cause,
        )
        self.said.append(reply)
        self.calls += [(reply, 1 + i) for i in range(len(asks))]

    def _cut(self, number: int, lifetime: Any) -> None:
        if self.asked:
            message = Message.assistant("half", ToolCall.of("t", id="1")) if number % 2 else None
            self.add(ReplyInterrupted(message=message), self.asked.pop())

    def _fail(self, number: int, lifetime: Any) -> None:
        if self.asked:
            self.add(RequestFailed(error=Failure(kind="E")), self.asked.pop())

    def _call(self, number: int, lifetime: Any) -> None:
        if self.calls:
            reply, part = self.calls.pop(number % len(self.calls))
            self.intents.append(self.add(ToolCalled(reply=reply, part=part), lane=f"/{number}"))

    def _return(self, number: int, lifetime: Any) -> None:
        if self.intents:
            cause = self.intents.pop(number % len(self.intents))
            event = ToolReturned(content=(Text(text=f"r{len(self.entries)}"),))
            self.said.append(self.add(event, cause))

    def _adopt(self, number: int, lifetime: Any) -> None:
        message = Message.tool(["", "1", "2"][number % 3], f"m{len(self.entries)}")
        event = (ToolReturned(message=message), PromptAppended(message=message))[number % 2]
        self.said.append(self.add(event))

    def _edit(self, number: int, lifetime: Any) -> None:
        ops: list[Any] = ["prepend", "append_to", "insert_before", "insert_after"]
        anchor = self.said[-1 - number % len(self.said)] if self.said else None
        message = (Message.user, Message.system)[number % 2](f"e{len(self.entries)}")
        event = PromptEdited(op=ops[number % 4], message=message, anchor=anchor, lifetime=lifetime)
        self.said.append(self.add(event))

    def _rewind(self, number: int, lifetime: Any) -> None:
        self.add(HistoryRewound(to=len(self.entries) - 1 - number * 2))

    def _compact(self, number: int, lifetime: Any) -> None:
        if self.said:
            first = self.said[-1 - number % len(self.said)]
            last = len(self.entries) - 1 - number % 2
            summary = self.add(
                ReplyReceived(message=Message.assistant(f"s{last}"), kind="summary")
                if number % 3
                else PromptAppended(message=Message.user(f"s{last}"), author="compactor")
            )
            self.add(HistoryCompacted(start=first, end=last, summary=summary))


def sessions(*words: str) -> st.SearchStrategy[list[Entry]]:
    """Sessions that could have happened, several requests and calls under way at a time."""

    def write(steps: list[tuple[str, int, Any]]) -> list[Entry]:
        writer = _Writer()
        for step in steps:
            writer.step(*step)
        return writer.entries

    step = st.tuples(st.sampled_from([*WORDS, *words]), st.integers(0, 7), lifetimes)
    return st.lists(step, max_size=40).map(write)
