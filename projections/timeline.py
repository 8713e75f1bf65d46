"""What happened, a line for each entry, for people.

Fold it over everything that was logged: what was rewound away happened too. A line says what a
person would ask first (which model, which tool, with what, how many tokens, how long) and is never
longer than 200 characters; the whole entry is in the log. Turns are counted from 1 here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar, TypeAlias, cast

import msgspec
from msgspec import UNSET

from brute.events.entries import Entry
from brute.events.events import (
    SETTINGS,
    ApprovalAsked,
    ApprovalGiven,
    EffectCalled,
    EffectReturned,
    ExchangeRecorded,
    Failure,
    HistoryCompacted,
    HistoryRewound,
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
    TurnStarted,
    UnknownEvent,
    ValueRecorded,
)
from brute.events.jsontypes import JSON, JSONObject
from brute.events.messages import (
    Hosted,
    Json,
    Media,
    Message,
    Native,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from brute.projections.oneline import WIDTH, brief, one_line
from brute.projections.trail import Trail

_WORDS = 120  # of a line, where numbers follow the words
_LONG = 4096  # characters of raw arguments that are not worth parsing for a line
_MOST = 40  # of anything that a line names one by one


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One entry as a line."""

    session: str
    position: int
    at: int
    """Milliseconds since 1970 (UTC)."""
    run: str | None
    lane: str
    kind: str
    """One word: system, user, request, reply, call, result, …; `unknown` for a newer event."""
    text: str
    """At most 200 characters, printable, in one line."""
    cause: int | None
    place: str | None
    """The code that asked for it, `file:line`."""


class Timeline:
    """The rows of a session."""

    __slots__ = ("_intents", "_replies", "_trail", "_turns", "rows")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        """The projection's own: read it, never change it."""
        self._trail = Trail()
        self._turns = 0
        self._replies: dict[int, Message] = {}
        self._intents: dict[int, int] = {}  # position -> at, of what is under way

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Timeline({self.rows!r})"

    # -- a session and its runs ------------------------------------------------------------

    def _session_opened(self, entry: Entry, event: SessionOpened) -> Line:
        link = event.link
        if link is None:
            return "opened", event.agent or ""
        source = link.session if link.session is not None else link.source
        where = "" if link.position is None else f"@{link.position}"
        return "opened", _joined(event.agent, f"{link.kind} of {source}{where}")

    def _session_closed(self, entry: Entry, event: SessionClosed) -> Line:
        return "closed", ""

    def _run_started(self, entry: Entry, event: RunStarted) -> Line:
        continues = f"continues {event.continues}" if event.continues is not None else None
        return "run", _joined(f"{event.agent}({_arguments(event.args or {})})", continues)

    def _run_ended(self, entry: Entry, event: RunEnded) -> Line:
        return "ended", brief(event.value) if event.error is None else _failure(event.error)

    # -- turns -----------------------------------------------------------------------------

    def _turn_started(self, entry: Entry, event: TurnStarted) -> Line:
        self._trail.turn_started(entry.position, event)
        self._turns += 1
        changes = (_setting(name, getattr(event, name)) for name in SETTINGS)
        return "turn", _joined(str(self._turns), *changes)

    def _request_sent(self, entry: Entry, event: RequestSent) -> Line:
        self._intents[entry.position] = entry.at
        settings = self._trail.now
        model = settings.model.id if settings.model is not None else None
        messages = _count(event.items, "msg")
        return "request", _joined(
            model or event.transport, messages, _count(len(settings.tools or ()), "tool")
        )

    def _request_retried(self, entry: Entry, event: RequestRetried) -> Line:
        return "retry", _joined(event.why, _failure(event.error))

    def _request_failed(self, entry: Entry, event: RequestFailed) -> Line:
        return "failed", _joined(_failure(event.error), self._seconds(entry))

    def _reply_received(self, entry: Entry, event: ReplyReceived) -> Line:
        finish = None if event.finish in {"stop", "tool_calls"} else event.finish
        text = self._reply(entry, event.message, event.usage, finish)
        return ("summary" if event.kind == "summary" else "reply"), text

    def _reply_interrupted(self, entry: Entry, event: ReplyInterrupted) -> Line:
        why = event.reason or _failure(event.error)
        return "cut", self._reply(entry, event.message, event.usage, why)

    def _reply(
        self, entry: Entry, message: Message | None, usage: Usage | None, why: str | None
    ) -> str:
        words, calls = "", 0
        if message is not None:
            self._replies[entry.position] = message
            words, calls = _words(message), len(message.tool_calls)
        tokens = f"{usage.output:,} tok" if usage is not None else None
        return _joined(
            one_line(words, _WORDS),
            _count(calls, "call"),
            one_line(why or "", _WORDS),
            tokens,
            self._seconds(entry),
        )

    # -- prompts and history ---------------------------------------------------------------

    def _prompt_appended(self, entry: Entry, event: PromptAppended) -> Line:
        message = event.message
        if message.role == "assistant":
            self._replies[entry.position] = message
        words = one_line(_words(message), _WORDS if event.author != "person" else WIDTH)
        return message.role, _joined(
            words,
            _count(len(message.tool_calls), "call"),
            _author(event.author),
            _lifetime(event.lifetime),
        )

    def _prompt_edited(self, entry: Entry, event: PromptEdited) -> Line:
        where = "" if event.anchor is None else f" @{event.anchor}"
        words = one_line(_words(event.message), _WORDS)
        return "edit", _joined(
            f"{event.op}{where}: {words}", _author(event.author), _lifetime(event.lifetime)
        )

    def _history_rewound(self, entry: Entry, event: HistoryRewound) -> Line:
        self._trail.rewound(entry.position, event)
        return "rewind", f"to @{event.to}"

    def _history_compacted(self, entry: Entry, event: HistoryCompacted) -> Line:
        return "compact", f"@{event.start} to @{event.end} gave way to @{event.summary}"

    # -- tools, effects, values ------------------------------------------------------------

    def _tool_called(self, entry: Entry, event: ToolCalled) -> Line:
        self._intents[entry.position] = entry.at
        reply = self._replies.get(event.reply)
        parts = reply.parts if reply is not None else ()
        call = parts[event.part] if 0 <= event.part < len(parts) else None
        what = _call(call) if isinstance(call, ToolCall) else f"@{event.reply} part {event.part}"
        return "call", _joined(what, f"in {event.child}" if event.child is not None else None)

    def _tool_returned(self, entry: Entry, event: ToolReturned) -> Line:
        content = _said(event.content)
        if not content and event.message is not None:
            content = _words(event.message)
        outcome = None if event.outcome == "ok" else event.outcome
        return "result", _joined(outcome, one_line(content, _WORDS), self._seconds(entry))

    def _effect_called(self, entry: Entry, event: EffectCalled) -> Line:
        self._intents[entry.position] = entry.at
        return "effect", f"{event.name}({_arguments(event.args)})"

    def _effect_returned(self, entry: Entry, event: EffectReturned) -> Line:
        if event.error is not None:
            said = _failure(event.error)
        else:
            said = brief(event.value) if event.outcome == "ok" else event.outcome
        return "returned", _joined(one_line(said or "", _WORDS), self._seconds(entry))

    def _approval_asked(self, entry: Entry, event: ApprovalAsked) -> Line:
        return "asks", event.about

    def _approval_given(self, entry: Entry, event: ApprovalGiven) -> Line:
        return "granted" if event.granted else "denied", event.why or ""

    def _value_recorded(self, entry: Entry, event: ValueRecorded) -> Line:
        value: JSON = event.value
        return "value", f"{event.name} = {value if isinstance(value, str) else brief(value)}"

    # -- observed --------------------------------------------------------------------------

    def _exchange_recorded(self, entry: Entry, event: ExchangeRecorded) -> Line:
        return "http", brief(event.request)

    def _note_added(self, entry: Entry, event: NoteAdded) -> Line:
        return "note", _joined(event.text, None if event.data is None else brief(event.data))

    def _stream_chunked(self, entry: Entry, event: StreamChunked) -> Line:
        return "stream", _count(len(event.frames), "frame") or ""

    def _unknown(self, entry: Entry, event: UnknownEvent) -> Line:
        return "unknown", f"{event.tag} {event.raw[:WIDTH].decode(errors='replace')}"

    def _seconds(self, entry: Entry) -> str | None:
        """How long an outcome took, by the clocks of the writers."""
        start = self._intents.pop(entry.cause, None) if entry.cause is not None else None
        if start is None:
            return None
        milliseconds = max(0, entry.at - start)
        return f"{milliseconds} ms" if milliseconds < 100 else f"{milliseconds / 1000:.1f} s"

    lines: ClassVar[dict[type[object], LineOf]] = {
        SessionOpened: _session_opened,
        SessionClosed: _session_closed,
        RunStarted: _run_started,
        RunEnded: _run_ended,
        TurnStarted: _turn_started,
        RequestSent: _request_sent,
        ReplyReceived: _reply_received,
        ReplyInterrupted: _reply_interrupted,
        RequestFailed: _request_failed,
        RequestRetried: _request_retried,
        PromptAppended: _prompt_appended,
        PromptEdited: _prompt_edited,
        HistoryRewound: _history_rewound,
        HistoryCompacted: _history_compacted,
        ToolCalled: _tool_called,
        ToolReturned: _tool_returned,
        EffectCalled: _effect_called,
        EffectReturned: _effect_returned,
        ApprovalAsked: _approval_asked,
        ApprovalGiven: _approval_given,
        ValueRecorded: _value_recorded,
        ExchangeRecorded: _exchange_recorded,
        NoteAdded: _note_added,
        StreamChunked: _stream_chunked,
        UnknownEvent: _unknown,
    }
    """The line of each event."""


Line: TypeAlias = tuple[str, str]
LineOf: TypeAlias = Callable[[Timeline, Entry, Any], Line]


def initial() -> Timeline:
    """Nothing has happened."""
    return Timeline()


def apply(state: Timeline, entry: Entry) -> Timeline:
    """The timeline after one more entry, rewound or not; `state` is changed and returned."""
    record = entry.record
    kind, text = state.lines[type(record.event)](state, entry, record.event)
    state.rows.append(
        Row(
            session=entry.session,
            position=entry.position,
            at=record.at,
            run=record.run,
            lane=record.lane,
            kind=kind,
            text=one_line(text),
            cause=record.cause,
            place=record.place,
        )
    )
    return state


# -- words -----------------------------------------------------------------------------------------


def _joined(*pieces: str | None) -> str:
    return " · ".join(piece for piece in pieces if piece)


def _count(number: int, word: str) -> str | None:
    return f"{number:,} {word}{'' if number == 1 else 's'}" if number else None


def _author(author: str) -> str | None:
    return None if author == "person" else f"by {author}"


def _lifetime(lifetime: str) -> str | None:
    return None if lifetime == "session" else f"this {lifetime}"


def _failure(error: Failure | None) -> str:
    if error is None:
        return ""
    status = "" if error.status is None else f"{error.status} "
    return f"{status}{error.kind}: {error.message}" if error.message else f"{status}{error.kind}"


def _setting(name: str, value: object) -> str | None:
    if value is UNSET:
        return None
    if value is None:
        return f"no {name}"
    return _SETTINGS.get(name, lambda value: f"{name} {value}")(value)


def _arguments(value: JSON) -> str:
    """Arguments as code would pass them; a lone one without its name."""
    if not isinstance(value, dict):
        return "" if value is None else brief(value)
    arguments = cast(JSONObject, value)
    given: object = arguments.get("args")
    named: object = arguments.get("kwargs")
    if len(arguments) == 2 and isinstance(given, list) and isinstance(named, dict):
        some = map(brief, cast("Iterable[JSON]", given))
        return ", ".join([*islice(some, _MOST), *_named(cast(JSONObject, named))])
    if len(arguments) == 1:
        return brief(next(iter(arguments.values())))
    return ", ".join(_named(arguments))


def _named(arguments: JSONObject) -> list[str]:
    return [f"{name}={brief(value)}" for name, value in islice(arguments.items(), _MOST)]


def _call(call: ToolCall) -> str:
    if len(call.raw) > _LONG or call.kind == "custom" or call.malformed is not None:
        return f"{call.name}({call.raw[:WIDTH]})"
    return f"{call.name}({_arguments(call.arguments)})"


_SETTINGS: dict[str, Callable[[Any], str]] = {
    "model": lambda model: str(model.id),
    "tools": lambda tools: "tools " + ", ".join(tool.name for tool in tools[:_MOST]),
    "system": lambda text: f"system {brief(text[:_MOST])}",
    "format": lambda schema: f"format {brief(schema, 1)}",
    "parameters": lambda parameters: ", ".join(_named(parameters)),
}


def _words(message: Message) -> str:
    """The words of a message; what else it holds is named in brackets, its calls are not."""
    return _said(message.parts)


def _said(parts: Iterable[object]) -> str:
    words: list[str] = []
    room = WIDTH
    for part in parts:
        if room < 0:
            break
        said = _PARTS.get(type(part), _bracketed)(part)[: WIDTH + 1]
        if said:
            words.append(said)
            room -= len(said)
    return " ".join(words)


def _bracketed(part: object) -> str:
    return f"[{type(part).__name__.lower()}]"


_PARTS: dict[type[object], Callable[[Any], str]] = {
    Text: lambda part: str(part.text[: WIDTH + 1]),
    Refusal: lambda part: f"refused: {part.text[:WIDTH]}",
    Json: lambda part: brief(part.value),
    ToolResult: lambda part: _said(part.content),
    ToolCall: lambda _: "",
    Reasoning: lambda _: "",
    Media: lambda part: f"[{part.kind}{' ' + part.name if part.name else ''}]",
    Hosted: lambda part: f"[{part.name or part.tool}]",
    Native: lambda part: f"[{part.kind}]",
}
