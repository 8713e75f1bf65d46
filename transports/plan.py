"""Planning: a list of messages as a target takes it.

Merge first, repair second, and what comes out is valid. One pass over canonical messages, driven
by the target's table (`Rules`). Most messages go through untouched; only what the target would
refuse is built anew (`brute.transports.repair`), with a line in the report.

The state between messages is small: the calls still open, and what waits until they are answered.
It only moves forward, so that what an answered assistant message became never changes again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from brute.events.messages import AnyPart, Hosted, Message, Origin, Text, ToolCall, ToolResult
from brute.transports.ids import Calls
from brute.transports.normal import unsaid
from brute.transports.repair import Repair, trimmed
from brute.transports.rules import Aim, Rules
from brute.transports.shapes import Loss
from brute.transports.words import BEGINNING, CONTINUE, MIDWAY, no_result, text_of_result

OPENERS = frozenset({"{", "[", "<", "```", "```json"})
"""An assistant message that is only this was put there to be continued, and says nothing."""


class Plan(Struct):
    """A list as the target takes it."""

    messages: list[Message]
    system: list[Message]
    """System text that stands apart at the target."""
    losses: list[Loss]
    hinted: bool
    """Whether any part bears a hint of the API, such as a cache mark."""


def plan(messages: Sequence[Message], aim: Aim, *, deep: bool = False) -> Plan:
    """The messages as `aim` takes them; `deep` also reports what only writing would change."""
    planner = _Planner(messages, aim, deep)
    planner.run()
    repair = planner.repair
    if deep:
        if aim.rules.objects is not None:
            repair.report_arguments()
        repair.losses += unsaid(planner.out, aim.rules)
    return Plan(planner.out, planner.system, repair.losses, repair.clean.hinted)


class _Planner:
    def __init__(self, messages: Sequence[Message], aim: Aim, deep: bool) -> None:
        self.messages, self.rules, self.aim, self.deep = messages, aim.rules, aim, deep
        self.repair = Repair(messages, aim, deep=deep)
        self.out: list[Message] = []
        self.system: list[Message] = []
        self.open: Calls = []
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
        by_role = {
            "tool": self.tool,
            "assistant": self.assistant,
            "user": self.user,
            "system": self.system_text,
            "developer": self.system_text,
        }
        repair, api, out = self.repair, self.rules.api, self.out
        is_plain = repair.clean.is_plain
        known = self.aim.model or self.aim.provider or self.aim.platform
        for index, message in merged(self.messages, self.rules):
            role, parts, extras = message.role, message.parts, message.extras
            if role == "tool" and self.open and extras is None and len(parts) == 1:
                # At a glance: the text of the next open call, which is half of all messages.
                result = parts[0]
                call, wire_id = self.open[0]
                if (
                    type(result) is ToolResult
                    and self.answers is None
                    and result.call_id == wire_id == call.id
                    and result.outcome == "ok"
                    and result.extras is None
                    and is_plain(result.content)
                    and message.name is None
                    and (message.origin is None or result.name is None)
                ):
                    out.append(message)
                    del self.open[0]
                    if not self.open and self.behind:
                        self.settle()
                    continue
            repair.at = index
            origin = message.origin
            own = origin is not None and origin.api == api
            if own and known and not self.issued(origin):
                message, own = replace(message, origin=None), False  # noqa: PLW2901
            by_role[role](message, own)
        self.settle()
        self.place_midway()
        self.end()

    def issued(self, origin: Origin | None) -> bool:
        return origin is not None and self.rules.issued(origin, self.aim)

    # -- assistant messages ----------------------------------------------------------------------

    def assistant(self, message: Message, own: bool) -> None:
        between = self.held or self.behind or self.midway or self.answers is not None
        going_on = (
            bool(self.open and self.out)
            and not between
            and goes_on(self.out[-1], message, self.rules)
        )
        if not going_on and (self.open or self.held or self.behind):
            self.settle()
        before = self.open if going_on else []
        standing = self.repair.as_it_stands(message, own)
        if standing is not None:
            self.say_as_assistant(standing[0], before + standing[1], own)
            return
        made, calls, results = self.repair.assistant(message, own)
        if made is not None:
            self.say_as_assistant(made, before + calls, own)
        for result in results:
            self.result(result, message, own)

    def say_as_assistant(self, message: Message, calls: Calls, own: bool) -> None:
        if self.midway:
            self.place_midway()
        if not self.out and self.rules.user_first and not own:
            self.repair.report("added", "A2", "a user message before the first assistant message")
            self.out.append(Message.user(BEGINNING))
        self.out.append(message)
        self.open = calls

    # -- results ---------------------------------------------------------------------------------

    def tool(self, message: Message, own: bool) -> None:
        """A tool message; nearly always it holds the result of the next open call."""
        parts = message.parts
        if len(parts) == 1 and self.open and self.answers is None:
            result = parts[0]
            call, wire_id = self.open[0]
            if (
                type(result) is ToolResult
                and result.call_id == wire_id == call.id
                and self.repair.clean.result(message, result, own)
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
            self.repair.report("moved", "roles", "what is no result is said by the user")
            self.user(replace(message, role="user", parts=tuple(others), extras=None), False)

    def result(self, result: ToolResult, message: Message, own: bool) -> None:
        index = self.match(result)
        if index is None:
            self.repair.report("moved", "U4", "a result without an open call is said by the user")
            parts = text_of_result(result)
            self.user(Message(role="user", parts=parts, origin=message.origin), own)
            return
        made, media = self.repair.result(message, result, self.open[index], own)
        self.behind += media
        if self.answers is None and (index == 0 or own):
            self.out.append(made)
            del self.open[index]
        else:
            answers = self.gather()
            if index > len(answers):
                self.repair.report("moved", "U4", "a result, to where its call stands")
            answers[index] = made
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
        for index, opened in enumerate(self.open):
            answer = answers.get(index)
            if answer is None:
                call = opened[0]
                self.repair.report("added", "U4", f"a result for the open call of {call.name!r}")
                blank = Message(role="tool")
                answer, _ = self.repair.result(blank, no_result(call), opened, False)
            self.out.append(answer)
        if self.behind:
            self.out.append(Message(role="user", parts=tuple(self.behind)))
        self.out += self.held
        self.open, self.answers, self.behind, self.held = [], None, [], []

    # -- users and system text -------------------------------------------------------------------

    def user(self, message: Message, own: bool) -> None:
        if not self.repair.clean.user(message, own):
            others = tuple(part for part in message.parts if type(part) is not ToolResult)
            for part in message.parts:
                if type(part) is ToolResult:
                    self.result(part, message, own)
            if not others and message.parts:
                return
            message = self.repair.user(replace(message, parts=others), own)
        if own and self.open and self.is_before_its_results():
            self.out.append(message)
        else:
            self.append(message)

    def is_before_its_results(self) -> bool:
        """Whether the API took this word in one turn with the results, and in front of them.

        That is how it was sent and accepted, so that is how it is sent again.
        """
        if self.rules.joins is None:
            return False
        waiting = [call.id for call, _ in self.open]
        before = self.messages[self.repair.at]
        for message in self.messages[self.repair.at + 1 :]:
            if message.origin != before.origin or message.role not in {"tool", "user"}:
                break
            for part in message.parts:
                if type(part) is ToolResult and part.call_id in waiting:
                    waiting.remove(part.call_id)
        return not waiting

    def append(self, message: Message) -> None:
        """Say a message now, or when the open calls are answered."""
        if self.open:
            self.repair.report("moved", "U4", "what was said before a result, to behind it")
            self.gather()
            self.held.append(message)
        else:
            self.out.append(message)

    def system_text(self, message: Message, own: bool) -> None:
        made = self.repair.system(message, own)
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
            if self.deep:
                self.repair.report("moved", "system", "system text, to its own place")
        elif self.rules.midway(self.aim.model):
            self.midway.append(made)
        else:
            self.repair.report("changed", "A6", "system text in mid-conversation is the user's")
            text = MIDWAY.format(text=made.content)
            self.append(Message(role="user", parts=(Text(text=text),)))

    def place_midway(self) -> None:
        """System text stands behind a user message and before an assistant message, once."""
        if not self.midway:
            return
        if not self.out or self.out[-1].role not in {"user", "tool"}:
            self.repair.report("added", "A7", "a user message that system text can stand behind")
            self.out.append(Message.user(CONTINUE if self.out else BEGINNING))
        parts = tuple(part for message in self.midway for part in message.parts)
        self.out.append(Message(role="system", parts=parts))
        self.midway = []

    # -- the end ---------------------------------------------------------------------------------

    def end(self) -> None:
        if not self.out:
            if self.messages:
                self.repair.report("added", "A1", "a user message, as a request needs one")
                self.out.append(Message.user(BEGINNING))
            return
        last = self.out[-1]
        if last.role == "assistant":
            own = last.origin is not None and last.origin.api == self.rules.api
            self.end_with(last, own)

    def end_with(self, last: Message, own: bool) -> None:
        """A conversation that ends with an assistant message, which is to be continued."""
        if self.rules.prefill(self.aim.model):
            if not self.rules.blank and not own:
                self.out[-1] = trimmed(last)
                if self.out[-1] is not last:
                    self.repair.report("changed", "A5b", "white space at the end of a prefill")
            return
        if own and last.parts and type(last.parts[-1]) is Hosted:
            return  # a paused turn is sent back as it is
        if not own and last.content.strip() in OPENERS:
            self.repair.report("omitted", "A5", "the beginning of a reply: this model takes none")
            self.out.pop()
        if not self.out or self.out[-1].role == "assistant":
            self.repair.report("added", "A5", "a user message at the end: this model needs one")
            self.out.append(Message.user(CONTINUE))


def merged(messages: Sequence[Message], rules: Rules) -> Iterable[tuple[int, Message]]:
    """The messages with their indexes; parallel calls that were split over several, joined again.

    Only neighbours that both call, from one origin: what some libraries make of one reply.
    """
    if ("assistant", "assistant") not in pairwise([message.role for message in messages]):
        return enumerate(messages)
    return _merged(messages, rules)


def _merged(messages: Sequence[Message], rules: Rules) -> Iterator[tuple[int, Message]]:
    held: Message | None = None
    start = 0
    for index, message in enumerate(messages):
        if held is not None:
            if is_split(held, message) and not goes_on(held, message, rules):
                held = replace(held, parts=held.parts + message.parts, extras=None)
                continue
            yield start, held
        held, start = message, index
    if held is not None:
        yield start, held


def is_split(one: Message, other: Message) -> bool:
    """Whether two neighbours look like one reply: both call, and nothing stands between.

    Of a reply that we received the model is known, and it is whole.
    """
    return (
        one.role == other.role == "assistant"
        and one.origin == other.origin
        and (one.origin is None or one.origin.model is None)
        and any(type(part) is ToolCall for part in one.parts)
        and any(type(part) is ToolCall for part in other.parts)
    )


def call_ids(message: Message) -> set[str | None]:
    """The ids of the calls of a message."""
    return {part.id for part in message.parts if type(part) is ToolCall}


def goes_on(one: Message, other: Message, rules: Rules) -> bool:
    """Whether two halves of one reply may stay apart, as this API took them and reads them as one.

    Text in the second half would stand behind a call.
    """
    own = other.origin is not None and other.origin.api == rules.api
    if own and call_ids(one) & call_ids(other):
        return False
    spoken = rules.calls_last and any(type(part) is Text for part in other.parts)
    return own and rules.joins is not None and not spoken and is_split(one, other)
