"""Which result answers which call, where nothing but the messages says so.

Results that the log pairs by position (`tool.called`, `tool.returned`) need none of this. Tool
messages that were appended as prompts, imported or adopted have the provider's id alone; it may
repeat and may be absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from brute.events.messages import Message, Role, ToolCall, ToolResult

K = TypeVar("K")

HEAD: tuple[Role, ...] = ("system", "developer")
"""The roles that a message list may begin with before anybody speaks."""


def oldest_match(calls: Iterable[tuple[K, ToolCall]], result: ToolResult) -> K | None:
    """The first of the unanswered `calls` that `result` can answer, or None.

    By id; without one by the tool's name; without either the first call of all.
    """
    for key, call in calls:
        if result.call_id:
            if call.id == result.call_id:
                return key
        elif result.name is None or result.name == call.name:
            return key
    return None


def results_of(message: Message) -> Iterator[ToolResult]:
    """The results that a message holds, in order."""
    return (part for part in message.parts if type(part) is ToolResult)


def calls_of(message: Message) -> dict[int, ToolCall]:
    """The calls that a message holds, by part index."""
    calls: dict[int, ToolCall] = {}
    for index, part in enumerate(message.parts):
        if type(part) is ToolCall:
            calls[index] = part  # noqa: PERF403 - a comprehension is one more frame: 250 for 140 ns
    return calls


def pairs(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Index of the calling message and of the answering one, for every result with a call.

    A result belongs to the newest message before it that has its id in an unanswered call; when
    all are answered, to the last that had it (a second result is tied to the call of the first).
    A result without an id belongs to the newest message before it that calls at all.
    """
    asked: dict[str, list[int]] = {}  # id -> calling messages, newest last; the first one stays
    newest = -1
    for index, message in enumerate(messages):
        for part in message.parts:
            if type(part) is ToolCall:
                newest = index
                if part.id:
                    asked.setdefault(part.id, []).append(index)
            elif type(part) is ToolResult:
                caller = _caller(asked, part.call_id) if part.call_id else newest
                if 0 <= caller < index:
                    yield caller, index


def _caller(asked: dict[str, list[int]], call_id: str) -> int:
    callers = asked.get(call_id)
    if not callers:
        return -1
    return callers.pop() if len(callers) > 1 else callers[0]
