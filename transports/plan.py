"""Planning: a list of messages as a target takes it.

Merge first, repair second, and what comes out is valid. One pass over canonical messages, driven
by the target's table (`Rules`). Most messages go through untouched; only what the target would
refuse is built anew (`brute.transports.repair`), with a line in the report.

The state between messages is small: the calls still open, and what waits until they are answered.
It only moves forward, so that what an answered assistant message became never changes again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from brute.events.messages import (
    AnyPart,
    Hosted,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from brute.transports.repair import Repair, no_result, text_of_result, trimmed
from brute.transports.rules import Aim
from brute.transports.shapes import Loss
from brute.transports.wire import is_text

BEGINNING = "[The conversation begins here.]"
CONTINUE = "Continue."
MIDWAY = "<system>\n{text}\n</system>"
OPENERS = frozenset({"{", "[", "<", "```", "```json"})
"""An assistant message that is only this was put there to be continued, and says nothing."""


class Plan(Struct):
    """A list as the target takes it."""

    messages: list[Message]
    system: list[Message]
    """System text that stands apart at the target."""
    losses: list[Loss]


def plan(messages: Sequence[Message], aim: Aim, *, deep: bool = False) -> Plan:
    """The messages as `aim` takes them; `deep` also reports what only writing would change."""
    planner = _Planner(messages, aim)
    planner.run()
    if deep and aim.rules.objects:
        planner.repair.report_arguments()
    return Plan(planner.out, planner.system, planner.repair.losses)


class _Planner:
    def __init__(self, messages: Sequence[Message], aim: Aim) -> None:
        rules = aim.rules
        self.messages, self.rules, self.aim = messages, rules, aim
        self.repair = Repair(messages, aim)
        self.at = 0
        self.out: list[Message] = []
        self.system: list[Message] = []
        self.open: list[tuple[ToolCall, str | None]] = []
        """Calls without a result yet, in order, with their ids on the wire."""
        self.answers: dict[int, Message] | None = None
        """Results by the index of their call, once they may not go straight out."""
        self.held: list[Message] = []
        """What came between a call and its last result; it goes behind the results."""
        self.behind: list[AnyPart] = []
        """Media out of results, which go behind the last of them."""
        self.midway: list[Message] = []
        """System text on its way to the next place where it may stand."""

    def run(self) -> None:
        api = self.rules.api
        by_role = {
            "tool": self.tool,
            "assistant": self.assistant,
            "user": self.user,
            "system": self.system_text,
            "developer": self.system_text,
        }
        for self.at, message in merged(self.messages):
            origin = message.origin
            by_role[message.role](message, origin is not None and origin.api == api)
        self.settle()
        self.place_midway()
        self.end()

    def report(self, *about: str, part: int | None = None) -> None:
        self.repair.report(self.at, *about, part=part)

    # -- assistant messages ----------------------------------------------------------------------

    def assistant(self, message: Message, own: bool) -> None:
        if self.open or self.held or self.behind:
            self.settle()
        if self.midway:
            self.place_midway()
        calls = self.clean_calls(message, own)
        if calls is None:
            made, self.open, results = self.repair.assistant(self.at, message, own)
            if made is not None:
                self.first_is_user(own)
                self.out.append(made)
            for result in results:
                self.result(result, message, own)
            return
        if not self.out:
            self.first_is_user(own)
        self.out.append(message)
        self.open = calls

    def clean_calls(self, message: Message, own: bool) -> list[tuple[ToolCall, str | None]] | None:
        """The calls of a message that goes out as it stands; None if it must be looked at."""
        rules, repair = self.rules, self.repair
        calls: list[tuple[ToolCall, str | None]] = []
        for part in message.parts:
            kind = type(part)
            if kind is Text:
                text = cast(Text, part)
                said = text.text
                if not own and (not said or text.citations or (not rules.blank and said.isspace())):
                    return None
                if (calls and rules.calls_last) or not (said.isascii() or is_text(said)):
                    return None
            elif kind is ToolCall:
                call = cast(ToolCall, part)
                if not repair.is_clean(call, own):
                    return None
                calls.append((call, call.id))
            elif (
                kind is not Reasoning
                or rules.reasoning(message, cast(Reasoning, part), self.aim) is not part
            ):
                return None
        if not message.parts or (message.name is not None and not repair.takes_name(message, own)):
            return None
        return calls if repair.unique(calls, own) else None

    def first_is_user(self, own: bool) -> None:
        if self.rules.user_first and not self.out and not own:
            self.report("added", "user-first", "a user message before the first assistant message")
            self.out.append(Message.user(BEGINNING))

    # -- results ---------------------------------------------------------------------------------

    def tool(self, message: Message, own: bool) -> None:
        """A tool message. Nearly always: the result of the next open call, as the target takes it."""
        parts = message.parts
        if len(parts) == 1 and self.open and self.answers is None:
            result = parts[0]
            call, id = self.open[0]
            if (
                type(result) is ToolResult
                and result.call_id == id
                and call.id == id
                and self.repair.is_clean_result(result, own)
            ):
                self.out.append(message)
                del self.open[0]
                if not self.open and self.behind:
                    self.settle()
                return
        others: list[AnyPart] = []
        for part in parts:
            if type(part) is ToolResult:
                self.result(part, message, own)
            else:
                others.append(part)
        if others or not parts:
            self.report("moved", "roles", "what is no result in a tool message is a user's")
            self.user(replace(message, role="user", parts=tuple(others)), own)

    def result(self, result: ToolResult, message: Message, own: bool) -> None:
        index = self.match(result)
        if index is None:
            self.report("moved", "U4", "a result whose call is not open here is a user's text")
            self.user(replace(message, role="user", parts=text_of_result(result), extras=None), own)
            return
        call, id = self.open[index]
        made, media = self.repair.result(self.at, message, result, call, id, own)
        self.behind += media
        if self.answers is None and (index == 0 or own):
            self.out.append(made)
            del self.open[index]
        else:
            self.gather()[index] = made
        if len(self.open) == len(self.answers or ()):
            self.settle()

    def match(self, result: ToolResult) -> int | None:
        """The first open call that the result answers: by id, without one by name or by order."""
        answered = self.answers or {}
        for index, (call, _) in enumerate(self.open):
            if index in answered:
                continue
            if result.call_id:
                if call.id == result.call_id:
                    return index
            elif result.name is None or result.name == call.name:
                return index
        return None

    def gather(self) -> dict[int, Message]:
        if self.answers is None:
            self.answers = {}
        return self.answers

    def settle(self) -> None:
        """Close the open calls: results in call order, then what had to wait for them."""
        answers = self.answers or {}
        for index, (call, id) in enumerate(self.open):
            answer = answers.get(index)
            if answer is None:
                self.report("added", "U4", f"a result for the unanswered call of {call.name!r}")
                answer, _ = self.repair.result(
                    self.at, Message(role="tool"), no_result(call), call, id, False
                )
            self.out.append(answer)
        if self.behind:
            self.out.append(Message(role="user", parts=tuple(self.behind)))
        self.out += self.held
        self.open, self.answers, self.behind, self.held = [], None, [], []

    # -- users and system text -------------------------------------------------------------------

    def user(self, message: Message, own: bool) -> None:
        if not self.repair.is_clean_user(message, own):
            parts: list[AnyPart] = []
            for part in message.parts:
                if type(part) is ToolResult:
                    self.result(part, message, own)
                else:
                    parts.append(part)
            if not parts and message.parts:
                return
            message = self.repair.user(self.at, replace(message, parts=tuple(parts)), own)
        self.append(message)

    def append(self, message: Message) -> None:
        """Say a message now, or when the open calls are answered."""
        if self.open:
            self.gather()
            self.held.append(message)
        else:
            self.out.append(message)

    def system_text(self, message: Message, own: bool) -> None:
        made = self.repair.system(self.at, message, own)
        if made is None:
            return
        if self.rules.system == "inline":
            self.append(made)
            return
        place = made.extra(self.rules.api).get("place") if own else None
        if place == "inline":
            self.append(made)
        elif place == "top" or not (self.out or self.open or self.midway):
            self.system.append(made)
        elif self.rules.midway(self.aim.model):
            self.midway.append(made)
        else:
            self.report("changed", "A6", "system text in mid-conversation is said by the user")
            text = MIDWAY.format(text=made.content)
            self.append(Message(role="user", parts=(Text(text=text),)))

    def place_midway(self) -> None:
        """System text stands behind a user message and before an assistant message, once."""
        if not self.midway:
            return
        if not self.out or self.out[-1].role not in {"user", "tool"}:
            self.report("added", "A7", "a user message that system text can stand behind")
            self.out.append(Message.user(CONTINUE if self.out else BEGINNING))
        parts = tuple(part for message in self.midway for part in message.parts)
        self.out.append(Message(role="system", parts=parts))
        self.midway = []

    # -- the end ---------------------------------------------------------------------------------

    def end(self) -> None:
        if not self.out:
            if self.messages:
                self.report("added", "not-empty", "a user message, as a request needs one")
                self.out.append(Message.user(BEGINNING))
            return
        last = self.out[-1]
        if last.role != "assistant":
            return
        own = last.origin is not None and last.origin.api == self.rules.api
        if self.rules.prefill(self.aim.model):
            if self.rules.user_first and not own:
                self.out[-1] = trimmed(last)
            return
        if own and last.parts and type(last.parts[-1]) is Hosted:
            return  # a paused turn is sent back as it is
        if not own and last.content.strip() in OPENERS:
            self.report("omitted", "A5", "the beginning of a reply, which this model refuses")
            self.out.pop()
        if not self.out or self.out[-1].role == "assistant":
            self.report("added", "A5", "a user message at the end: this model wants to be asked")
            self.out.append(Message.user(CONTINUE))


def merged(messages: Sequence[Message]) -> Iterable[tuple[int, Message]]:
    """The messages with their indexes; parallel calls that were split over several, joined again.

    Only neighbours that both call, from one origin: what some libraries make of one reply.
    """
    roles = [message.role for message in messages]
    if ("assistant", "assistant") not in zip(roles, roles[1:], strict=False):
        return enumerate(messages)
    return _merged(messages)


def _merged(messages: Sequence[Message]) -> Iterator[tuple[int, Message]]:
    held: Message | None = None
    start = 0
    for index, message in enumerate(messages):
        if held is not None:
            if _is_split(held, message):
                held = replace(held, parts=held.parts + message.parts, extras=None)
                continue
            yield start, held
        held, start = message, index
    if held is not None:
        yield start, held


def _is_split(one: Message, other: Message) -> bool:
    return (
        one.role == other.role == "assistant"
        and one.origin == other.origin
        and any(type(part) is ToolCall for part in one.parts)
        and any(type(part) is ToolCall for part in other.parts)
    )
