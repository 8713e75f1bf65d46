"""The canonical message list: what is said, as of now.

The order is one that nobody's speed can change:

- a prompt stands where it was appended;
- a reply stands right behind the prompt it was asked with (`upto` of its request), before what
  was appended while it was on its way;
- a result stands right behind the reply that called, in call order, whoever finished first.

So every message has a key, and the list is sorted by it:

    ()                    prepended to everything
    (position,)           a prompt, or a result that was adopted from elsewhere
    (upto, request, -1)   inserted before a reply
    (upto, request, 0)    the reply
    (upto, request, 1+i)  the result of the call in part i of the reply
    (upto, request, inf)  inserted after a reply and its results

Nearly always the new key is the greatest, and the message is appended.

What passes (lifetime `turn` or `task`) is kept aside, and laid over the list when it is read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import ChainMap
from collections.abc import Callable, Container, MutableMapping
from math import inf
from typing import Any, ClassVar, NamedTuple, TypeAlias

from msgspec.structs import replace

from brute.events.entries import Entry, Record
from brute.events.events import (
    HistoryCompacted,
    Lifetime,
    PromptAppended,
    PromptEdited,
    ReplyInterrupted,
    ReplyReceived,
    RequestFailed,
    RequestSent,
    ToolCalled,
    ToolReturned,
    TurnStarted,
)
from brute.events.messages import Message, Role, ToolCall, ToolResult
from brute.projections.lanes import within
from brute.projections.pairing import HEAD, calls_of, oldest_match, results_of

Key: TypeAlias = tuple[float, ...]


class _Said:
    """Messages in order, the position of the entry behind each, and the key that places each."""

    __slots__ = ("homes", "keys", "messages", "positions")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.positions: list[int] = []
        self.keys: list[Key] = []
        self.homes: MutableMapping[int, Key] = {}
        """The key of a position, where it is not `(position,)`."""

    def copy(self) -> _Said:
        new = _Said()
        new.messages = self.messages.copy()
        new.positions = self.positions.copy()
        new.keys = self.keys.copy()
        new.homes = ChainMap({}, self.homes)  # only what the copy adds is its own
        return new

    def put(self, key: Key, position: int, message: Message) -> None:
        """Place a message by its key."""
        keys = self.keys
        if not keys or keys[-1] <= key:
            keys.append(key)
            self.messages.append(message)
            self.positions.append(position)
            if len(key) != 1 or key[0] != position:
                self.homes[position] = key
        else:
            self.insert(bisect_right(keys, key), key, position, message)

    def insert(self, index: int, key: Key, position: int, message: Message) -> None:
        self.keys.insert(index, key)
        self.messages.insert(index, message)
        self.positions.insert(index, position)
        if key != (position,):
            self.homes[position] = key

    def find(self, position: int) -> int:
        """The index of the message behind `position`, or -1."""
        key = self.homes.get(position, (position,))
        index = bisect_left(self.keys, key)
        while index < len(self.keys) and self.keys[index] == key:
            if self.positions[index] == position:
                return index
            index += 1
        return -1


# -- edits ---------------------------------------------------------------------------------------


def _prepend(said: _Said, _: int, position: int, message: Message) -> None:
    index = 0
    if message.role not in HEAD:  # a system text goes to the very front, all else behind those
        while index < len(said.messages) and said.messages[index].role in HEAD:
            index += 1
    said.insert(index, said.keys[index - 1] if index else (), position, message)


def _append_to(said: _Said, index: int, position: int, message: Message) -> None:
    target = said.messages[index]
    if target.role == message.role:
        said.messages[index] = replace(target, parts=target.parts + message.parts)
    else:  # nobody's words are put into another's mouth
        _insert_after(said, index, position, message)


def _insert_before(said: _Said, index: int, position: int, message: Message) -> None:
    first = index
    while first > 0 and said.messages[first].role == "tool":
        first -= 1
    if said.messages[first].role == "assistant":  # never between a call and its result
        index = first
    key = said.keys[index]
    said.insert(index, (*key[:2], -1) if len(key) == 3 and key[2] == 0 else key, position, message)


def _insert_after(said: _Said, index: int, position: int, message: Message) -> None:
    after = index + 1
    if said.messages[index].role in ("assistant", "tool"):  # never between a call and its result
        while after < len(said.messages) and said.messages[after].role == "tool":
            after += 1
    key = said.keys[after - 1]
    said.insert(after, (*key[:2], inf) if len(key) == 3 and key[2] >= 0 else key, position, message)


_EDITS: dict[str, Callable[[_Said, int, int, Message], None]] = {
    "prepend": _prepend,
    "append_to": _append_to,
    "insert_before": _insert_before,
    "insert_after": _insert_after,
}


class _Change(NamedTuple):
    """A change of the prompt other than an append for good."""

    op: str
    anchor: int | None
    message: Message
    position: int
    lane: str
    in_turn: bool
    """Whether a turn was open in the lane."""


class _Block:
    """An assistant message with calls: where it stands, and which calls have no result yet."""

    __slots__ = ("calls", "position", "request", "upto")

    def __init__(self, upto: int, request: int, position: int, calls: dict[int, ToolCall]) -> None:
        self.upto, self.request, self.position = upto, request, position
        self.calls = calls


# -- the state -----------------------------------------------------------------------------------


class MessageList:
    """The messages of a session as of now, and the entry behind each."""

    __slots__ = (
        "_adopted",
        "_blocks",
        "_gone",
        "_in_turn",
        "_intents",
        "_last",
        "_requests",
        "_said",
        "_task",
        "_turn",
        "_view",
    )

    def __init__(self) -> None:
        self._said = _Said()
        self._view: _Said | None = None
        self._turn: list[_Change] = []
        self._task: list[_Change] = []
        self._in_turn: set[str] = set()  # lanes with an open turn
        self._requests: dict[int, tuple[int, str]] = {}  # no outcome yet: upto, lane
        self._intents: dict[int, tuple[int, int]] = {}  # no outcome yet: reply, part
        self._blocks: dict[int, _Block] = {}  # by the position of the reply
        self._last: _Block | None = None  # of the newest assistant message, if it calls
        self._adopted: dict[int, Key] = {}  # adopted result -> upto, request of its reply
        self._gone: dict[int, int] = {}  # compacted position -> position of the summary

    # -- reading ---------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """What is said as of now. The list is the projection's own: read it, never change it."""
        return self._shown().messages

    @property
    def positions(self) -> list[int]:
        """The position of the entry behind each message."""
        return self._shown().positions

    @property
    def base(self) -> list[Message]:
        """What is said for good: `messages` without what a turn or a task takes away again."""
        return self._said.messages

    @property
    def changed_for_turn(self) -> bool:
        """Whether something that lasts for one turn only is among the messages now."""
        return bool(self._turn)

    def last(self, role: Role) -> int | None:
        """The position behind the newest message of `role`: the anchor that "last-user" means."""
        shown = self._shown()
        for index in range(len(shown.messages) - 1, -1, -1):
            if shown.messages[index].role == role:
                return shown.positions[index]
        return None

    def __len__(self) -> int:
        return len(self._shown().messages)

    def __repr__(self) -> str:
        return f"MessageList({self.messages!r})"

    def _shown(self) -> _Said:
        if not self._turn and not self._task:
            return self._said
        if self._view is None:
            self._view = self._said.copy()
            for change in sorted([*self._turn, *self._task], key=lambda c: c.position):
                self._edit(self._view, change)
        return self._view

    # -- prompts ---------------------------------------------------------------------------

    def _prompt_appended(self, position: int, record: Record, event: PromptAppended) -> None:
        message = event.message
        if event.lifetime != "session":
            in_turn = record.lane in self._in_turn
            change = _Change("append", None, message, position, record.lane, in_turn)
            self._change(change, event.lifetime)
            return
        self._say((position,), position, message)
        if message.role == "tool":
            self._adopt(position, message)
        elif message.role == "assistant":
            self._ask(position, position, position, message)

    def _prompt_edited(self, position: int, record: Record, event: PromptEdited) -> None:
        in_turn = record.lane in self._in_turn
        anchor = event.anchor
        if anchor is not None and anchor >= position:  # nobody can have meant what was to come
            anchor = None
        change = _Change(event.op, anchor, event.message, position, record.lane, in_turn)
        self._change(change, event.lifetime)

    def _change(self, change: _Change, lifetime: Lifetime) -> None:
        self._view = None
        if lifetime == "session":
            self._edit(self._said, change)
        else:
            (self._turn if lifetime == "turn" else self._task).append(change)

    def _edit(self, said: _Said, change: _Change) -> None:
        edit = _EDITS.get(change.op)
        index = 0 if change.op == "prepend" else self._find(said, change.anchor)
        if edit is None or index < 0:  # nothing to stand beside: it stands where it was said
            said.put((change.position,), change.position, change.message)
        else:
            edit(said, index, change.position, change.message)

    def _find(self, said: _Said, anchor: int | None) -> int:
        """The index of the message behind `anchor`, or of the summary that it gave way to."""
        while anchor is not None:
            index = said.find(anchor)
            if index >= 0:
                return index
            anchor = self._gone.get(anchor)
        return -1

    def _say(self, key: Key, position: int, message: Message) -> None:
        self._view = None
        self._said.put(key, position, message)

    # -- turns -----------------------------------------------------------------------------

    def _turn_started(self, position: int, record: Record, event: TurnStarted) -> None:
        if self._turn:  # of a turn that never got its outcome
            self._view = None
            self._turn = [p for p in self._turn if not (p.in_turn and p.lane == record.lane)]
        self._in_turn.add(record.lane)

    def _request_sent(self, position: int, record: Record, event: RequestSent) -> None:
        self._requests[position] = (min(event.upto, position - 1), record.lane)

    def _request_failed(self, position: int, record: Record, event: RequestFailed) -> None:
        asked = self._asked(position, record)
        if asked is not None:
            self._end_of_turn(asked[1], asked[2])

    def _reply_received(self, position: int, record: Record, event: ReplyReceived) -> None:
        asked = self._asked(position, record)
        if asked is None:
            return
        upto, request, lane = asked
        self._say((upto, request, 0), position, event.message)
        self._end_of_turn(request, lane)
        if event.kind == "summary":  # it answers the compactor; the conversation is where it was
            return
        self._ask(upto, request, position, event.message)
        if self._last is None or (event.finish == "length" and len(self._last.calls) == 1):
            self._end_of_task(request, lane)

    def _reply_interrupted(self, position: int, record: Record, event: ReplyInterrupted) -> None:
        asked = self._asked(position, record)
        if asked is None:
            return
        upto, request, lane = asked
        self._end_of_turn(request, lane)
        if event.message is not None:
            self._say((upto, request, 0), position, event.message)
            self._ask(upto, request, position, event.message)

    def _asked(self, position: int, record: Record) -> tuple[int, int, str] | None:
        """`upto`, request and lane of what an outcome answers.

        None for a second outcome, and for one whose request is not said any more: a reply that
        was on its way when the session was rewound.
        """
        cause = record.cause
        if cause is None:  # added by hand
            return position, position, record.lane
        asked = self._requests.pop(cause, None)
        return None if asked is None else (asked[0], cause, asked[1])

    def _end_of_turn(self, request: int, lane: str) -> None:
        self._in_turn.discard(lane)
        if self._turn:
            self._view = None
            self._turn = [p for p in self._turn if _outlives(p, request, lane)]

    def _end_of_task(self, request: int, lane: str) -> None:
        if self._task:
            self._view = None
            self._task = [p for p in self._task if _outlives(p, request, lane)]

    # -- calls -----------------------------------------------------------------------------

    def _ask(self, upto: int, request: int, position: int, message: Message) -> None:
        """Note the calls of an assistant message."""
        calls = calls_of(message)
        self._last = _Block(upto, request, position, calls) if calls else None
        if self._last is not None:
            self._blocks[position] = self._last

    def _adopt(self, position: int, message: Message) -> None:
        """Pair the results of a tool message with the newest calls, by their ids alone."""
        block = self._last
        if block is not None:
            for result in results_of(message):
                part = oldest_match(block.calls.items(), result)
                if part is not None:
                    del block.calls[part]
                    self._adopted[position] = (block.upto, block.request)

    def _tool_called(self, position: int, record: Record, event: ToolCalled) -> None:
        self._intents[position] = (event.reply, event.part)

    def _tool_returned(self, position: int, record: Record, event: ToolReturned) -> None:
        cause, message = record.cause, event.message
        if cause is None:
            if message is not None:
                self._say((position,), position, message)
                self._adopt(position, message)
            return
        reply, part = self._intents.pop(cause, (None, 0))
        block = self._blocks.get(reply) if reply is not None else None
        call = block.calls.pop(part, None) if block is not None else None
        if reply is None or block is None or call is None:  # a second outcome, or of no call said
            return
        if not block.calls:
            del self._blocks[reply]
        if message is not None:
            self._say((position,), position, message)
            self._adopted[position] = (block.upto, block.request)
        else:
            key = (block.upto, block.request, 1 + part)
            self._say(key, position, _result(call, event))

    # -- compaction ------------------------------------------------------------------------

    def _history_compacted(self, position: int, record: Record, event: HistoryCompacted) -> None:
        said = self._said
        summary = said.find(event.summary)
        if summary < 0:
            return
        doomed = {i for i, p in enumerate(said.positions) if event.start <= p <= event.end}
        doomed -= {summary, *self._torn(doomed)}
        if not doomed:
            return
        self._view = None
        self._said = new = _Said()
        first = min(doomed)
        for index, key in enumerate(said.keys):
            if index == first:
                new.put(key, event.summary, said.messages[summary])
            if index in doomed:
                self._gone[said.positions[index]] = event.summary
                self._blocks.pop(said.positions[index], None)
            elif index != summary:
                new.put(key, said.positions[index], said.messages[index])

    def _torn(self, doomed: Container[int]) -> set[int]:
        """The messages that stay so that calls keep their results and results their calls.

        A reply and its results go together or stay together; the newest assistant message stays
        while one of its calls has no result.
        """
        said = self._said
        exchanges: dict[Key, list[int]] = {}
        for index, (key, position) in enumerate(zip(said.keys, said.positions, strict=True)):
            exchange = self._adopted.get(position) or _exchange(key, position)
            exchanges.setdefault(exchange, []).append(index)
        stay: set[int] = set()
        if self._last is not None and self._last.calls:
            stay.update(exchanges.get((self._last.upto, self._last.request), ()))
        for members in exchanges.values():
            if any(index in stay or index not in doomed for index in members):
                stay.update(members)
        return stay

    steps: ClassVar[dict[type[object], Step]] = {
        PromptAppended: _prompt_appended,
        PromptEdited: _prompt_edited,
        TurnStarted: _turn_started,
        RequestSent: _request_sent,
        RequestFailed: _request_failed,
        ReplyReceived: _reply_received,
        ReplyInterrupted: _reply_interrupted,
        ToolCalled: _tool_called,
        ToolReturned: _tool_returned,
        HistoryCompacted: _history_compacted,
    }
    """What each event does; every other event does nothing."""


def _exchange(key: Key, position: int) -> Key:
    """What a reply and its results have in common, and nothing else has."""
    if len(key) == 3 and 0 <= key[2] < inf:
        return key[:2]
    return (position, position)  # alone, or an assistant message that was appended as a prompt


def _outlives(change: _Change, request: int, lane: str) -> bool:
    """Whether a change was said after `request`, or in a lane that is not below `lane`."""
    return change.position >= request or not within(change.lane, lane)


def _result(call: ToolCall, event: ToolReturned) -> Message:
    result = ToolResult(
        call_id=call.id,
        name=call.name,
        kind=call.kind,
        content=event.content,
        outcome=event.outcome,
    )
    return Message(role="tool", parts=(result,))


Step: TypeAlias = Callable[[MessageList, int, Record, Any], None]

_STEPS = MessageList.steps


def initial() -> MessageList:
    """Nothing has been said."""
    return MessageList()


def apply(state: MessageList, entry: Entry) -> MessageList:
    """The list after one more entry of the lineage; `state` is changed and returned."""
    record = entry.record
    step = _STEPS.get(type(record.event))
    if step is not None:
        step(state, entry.position, record, record.event)
    return state
