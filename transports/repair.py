"""Mending one message for a target: everything the plan does that is not about order.

It runs only for a message that the target would refuse as it stands (`clean`). What `own` means
everywhere: the message was issued through the target's API, so that only hard rules touch it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar, cast

from msgspec import UNSET
from msgspec.structs import replace

from brute.events.jsontypes import Extras, JSONObject
from brute.events.messages import (
    AnyPart,
    Hosted,
    Json,
    Media,
    Message,
    Native,
    Outcome,
    Part,
    Reasoning,
    Refusal,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from brute.transports.clean import Clean, is_sound_part, is_sound_reasoning
from brute.transports.ids import Calls, Ids
from brute.transports.rules import Aim
from brute.transports.shapes import Loss
from brute.transports.wire import is_text, mend_arguments, mend_json, mend_struct, mend_text
from brute.transports.words import (
    EMPTY,
    MOVED_MEDIA,
    SEE_BELOW,
    as_error,
    describe,
    left_out,
    said_by,
    with_note,
)

P = TypeVar("P", bound=Part | Message)


class Repair:
    """Mends messages for one request and keeps the report."""

    def __init__(self, messages: Sequence[Message], aim: Aim, *, deep: bool) -> None:
        self.messages, self.aim, self.rules = messages, aim, aim.rules
        self.api = aim.rules.api
        self.clean = Clean(aim)
        self.ids = Ids(messages, aim.rules, self.clean.made)
        nothing: frozenset[type[Part]] = frozenset()
        self.passes_over = nothing if deep else aim.rules.passes_over
        self.at = 0
        """Index of the message in hand."""
        self.losses: list[Loss] = []
        self.hosted: set[str] = set()
        """Ids of the provider's own calls so far."""

    def report(
        self,
        kind: Literal["added", "changed", "renamed", "moved", "omitted"],
        rule: str,
        what: str,
        part: int | None = None,
    ) -> None:
        """Add a line to the report."""
        self.losses.append(Loss(kind=kind, rule=rule, message=self.at, part=part, what=what))

    def report_arguments(self) -> None:
        """Report arguments that are no object, which are wrapped while they are written."""
        for index, message in enumerate(self.messages):
            self.at = index
            for place, part in enumerate(message.parts):
                if type(part) is ToolCall and not part.cut and part.malformed is not None:
                    self.report("changed", "A15", part.malformed, place)

    # -- what every part has ---------------------------------------------------------------------

    def with_extras(self, part: P, own: bool) -> P:
        """The part with nothing of this API's own that the target would refuse."""
        if part.extras is None or self.clean.extras(cast(AnyPart, part), own):
            return part
        said: JSONObject = mend_json(part.extra(self.api))
        if not own:
            allowed = (self.rules.hints or {}).get(type(part), frozenset())
            said = {key: value for key, value in said.items() if key in allowed}
        return replace(part, extras={**part.extras, self.api: said})

    def text(self, index: int, part: Text, own: bool) -> Text | None:
        """A text as the target takes it; None if it would be refused for being blank."""
        said = part.text
        if not own and (not said or (not self.rules.blank and said.isspace())):
            if said:
                self.report("omitted", "A4", "a blank text", index)
            return None
        if part.citations and not own:
            self.report("omitted", "U6", f"{len(part.citations)} citations", index)
            part = replace(part, citations=())
        return self.with_extras(part, own)

    def media(self, index: int, part: Media, own: bool) -> Media | Text:
        """Media as the target takes it, or a text that says what was there."""
        part = self.with_extras(part, own)
        made = part if own else self.rules.media(part)
        if made is None:
            self.report("omitted", "media", describe(part), index)
            return cast(Text, said_by(part))
        if made is not part:
            self.report("changed", "media", f"{describe(part)} as {describe(made)}", index)
        return made

    def sound(self, message: Message) -> Message:
        """The message such that every strict reader takes its texts and numbers."""
        parts = [part if is_sound_part(part) else mend_struct(part) for part in message.parts]
        if not all(map(_is, parts, message.parts)):
            self.report("changed", "U1", "a lone surrogate became U+FFFD, or NaN null")
            extras = without_raw(message.extras, self.api)
            message = replace(message, parts=tuple(parts), extras=extras)
        if message.name is not None and not is_text(message.name):
            message = replace(message, name=mend_text(message.name))
        return message

    def as_text(self, index: int, part: AnyPart) -> Text | None:
        """What a part says where it may not stand; None if it may not be said here."""
        said = said_by(part)
        if said is None:
            self.report("omitted", *left_out(part), index)
            return None
        self.report("changed", "roles", f"{type(part).__name__} said as a text", index)
        return self.text(index, said, False)

    def changed(self, message: Message, parts: Sequence[AnyPart], own: bool) -> Message:
        """The message with other parts, and with a name and extras that the target takes."""
        same = len(parts) == len(message.parts) and all(map(_is, parts, message.parts))
        if not same:
            extras = without_raw(message.extras, self.api)
            message = replace(message, parts=tuple(parts), extras=extras)
        message = self.with_extras(message, own)
        if message.name is None or self.clean.speaker(message.name, own):
            return message
        if self.rules.names_messages and self.rules.names is not None:
            name = self.rules.names.rename(message.name)
            self.report("changed", "C8", f"the name {message.name!r} as {name!r}")
            return replace(message, name=name)
        self.report("omitted", "U6", f"the name {message.name!r}")
        return replace(message, name=None)

    # -- a user message, system text -------------------------------------------------------------

    def user(self, message: Message, own: bool) -> Message:
        """A user message as the target takes it; one that says nothing says so."""
        message = self.sound(message)
        made = (self._user_part(index, part, own) for index, part in enumerate(message.parts))
        parts = [part for part in made if part is not None]
        if not parts:
            silent = self.rules.blank and bool(message.parts)
            if not silent:
                self.report("added", "A3", "a word in place of an empty message")
            parts.append(Text(text="" if silent else EMPTY))
        return self.changed(message, parts, own)

    def _user_part(self, index: int, part: AnyPart, own: bool) -> AnyPart | None:
        if type(part) is Text:
            if self.rules.blank and not part.text:
                return self.with_extras(part, own)
            return self.text(index, part, own)
        if self.rules.speaks is None:
            return part
        if type(part) is Media:
            return self.media(index, part, own)
        if type(part) is Native and part.api == self.api:
            return self.with_extras(part, own)
        return self.as_text(index, part)

    def system(self, message: Message, own: bool) -> Message | None:
        """System text as the target takes it; None if it says nothing."""
        message = self.sound(message)
        if self.rules.speaks is None:
            return message
        parts: list[AnyPart] = []
        for index, part in enumerate(message.parts):
            made: AnyPart | None
            if type(part) is Text:
                made = self.text(index, part, own)
            elif type(part) is Native and part.api == self.api:
                made = self.with_extras(part, own)
            else:
                made = self.as_text(index, part)
            if made is not None:
                parts.append(made)
        stays = parts or (own and self.rules.blank)
        return self.changed(message, parts, own) if stays else None

    # -- an assistant message --------------------------------------------------------------------

    def as_it_stands(self, message: Message, own: bool) -> tuple[Message, Calls] | None:
        """A message that goes out as it stands, but for reasoning that stays behind; its calls.

        None if it must be looked at.
        """
        calls: Calls = []
        behind: list[AnyPart] = []
        passed = 0
        questions, calls_last = self.clean.of_assistant, self.rules.calls_last
        for part in message.parts:
            kind = type(part)
            question = questions.get(kind)
            if question is not None:
                if not question(part, own):
                    return None
                if type(part) is ToolCall:
                    calls.append((part, part.id))
                elif (calls and calls_last) or (type(part) is Text and not own and not part.text):
                    return None
            elif kind in self.passes_over and part.extras is None:
                passed += 1
            elif type(part) is not Reasoning or not self._stays(message, part, behind):
                return None
        if passed + len(behind) == len(message.parts):
            return None
        bare = message.extras is None and message.name is None
        if not bare and not self.clean.around(message, own):
            return None
        if calls and not self.ids.are_new(calls, own):
            return None
        return (self._without(message, behind) if behind else message), calls

    def _stays(self, message: Message, part: Reasoning, behind: list[AnyPart]) -> bool:
        """Whether reasoning needs no mending: it goes out as it is, or stays behind."""
        made = self.rules.reasoning(message, part, self.aim)
        if made is None:
            behind.append(part)
            return True
        return made is part and is_sound_reasoning(part) and part.extras is None

    def _without(self, message: Message, behind: list[AnyPart]) -> Message:
        for part in behind:
            self.report("omitted", *left_out(part), message.parts.index(part))
        kept = tuple([part for part in message.parts if part not in behind])
        return replace(message, parts=kept, extras=without_raw(message.extras, self.api))

    def assistant(
        self, message: Message, own: bool
    ) -> tuple[Message | None, Calls, list[ToolResult]]:
        """An assistant message as the target takes it, its calls, and results found inside it."""
        given = message.parts
        message = self.sound(message)
        parts: list[AnyPart] = []
        calls: Calls = []
        mine: set[str] = set()
        for index, part in enumerate(message.parts):
            made: AnyPart | None = None
            if type(part) is ToolCall:
                made = self._call(index, part, own, mine)
                if made is not None:
                    calls.append((cast(ToolCall, given[index]), made.id))
            elif type(part) is not ToolResult:
                made = self._assistant_part(index, part, message, own)
            if made is not None:
                parts.append(made)
        self.ids.know(mine)
        results = [part for part in message.parts if type(part) is ToolResult]
        if not parts and not (own and self._says_otherwise(message)):
            self.report("omitted", "A3", "an assistant message that says nothing")
            return None, [], results
        if self.rules.calls_last:
            parts = self._calls_last(parts)
        return self.changed(message, parts, own), calls, results

    def _says_otherwise(self, message: Message) -> bool:
        """Whether an empty message of the API says something in members of its own."""
        said = message.extra(self.api) if self.rules.blank else {}
        return any(v for k, v in said.items() if k != "form") or said.get("form") == "list"

    def _assistant_part(
        self, index: int, part: AnyPart, message: Message, own: bool
    ) -> AnyPart | None:
        if type(part) is Text:
            return self.text(index, part, own)
        if self.rules.speaks is None:
            return part
        speaks = self.rules.speaks["assistant"]
        made: AnyPart | None = None
        if type(part) is Reasoning and Reasoning in speaks:
            made = self.rules.reasoning(message, part, self.aim)
        elif type(part) is Native and part.api == self.api:
            made = part
        elif type(part) is Hosted:
            if own and self.rules.hosted and not self._is_paired(message, part):
                self.report("omitted", "A19", "half of a provider's own call", index)
                return None
            made = part if own and self.rules.hosted else None
        elif type(part) is Refusal and not part.text:
            return None
        elif type(part) is Media:
            made = part if own and Media in speaks and self.rules.lasts(part, self.aim) else None
        elif type(part) in speaks:
            made = part
        return self.as_text(index, part) if made is None else self.with_extras(made, own)

    def _calls_last(self, parts: list[AnyPart]) -> list[AnyPart]:
        """Text goes before the first call: behind one it is taken for the missing result."""
        first = next((i for i, p in enumerate(parts) if type(p) is ToolCall), len(parts))
        late = [p for p in parts[first:] if type(p) is Text]
        if not late:
            return parts
        self.report("moved", "A25", "a text behind a call, to before it")
        return [*parts[:first], *late, *(p for p in parts[first:] if type(p) is not Text)]

    def _is_paired(self, message: Message, part: Hosted) -> bool:
        """Whether the other half of a provider's own call is there, or may still come.

        A paused turn ends in a call; a call that client calls depend on gets its result in a later
        message.
        """
        word = part.id or ""
        if part.output is not UNSET:
            return part.input is UNSET and word in self.hosted
        if part.input is UNSET or not word:
            return False
        self.hosted.add(word)
        if word in _outputs(message) or any(type(p) is ToolCall for p in message.parts):
            return True
        for later in self.messages[self.at + 1 :]:
            if later.role != "assistant":
                return False
            if word in _outputs(later):
                return True
        return True

    # -- a call ----------------------------------------------------------------------------------

    def _call(self, index: int, call: ToolCall, own: bool, mine: set[str]) -> ToolCall | None:
        """A call as the target takes it; None for one that was cut and never answered."""
        if call.cut and not self._is_answered(call):
            self.report("omitted", "U7", f"the unfinished call of {call.name!r}", index)
            return None
        made = self.with_extras(call, own)
        wire_id = self.ids.wire_id(call, own, mine, self.at)
        if wire_id != call.id:
            self.report("renamed", "ids", f"the id {call.id!r} as {wire_id!r}", index)
            made = replace(made, id=wire_id)
        if not own and not self.clean.name(call.name):
            made = replace(made, name=self.rename(call.name, index))
        raw = call.raw if call.kind == "custom" else mend_arguments(call.raw)
        if raw != call.raw:
            self.report("changed", "U1", "a lone surrogate became U+FFFD", index)
            made = replace(made, raw=raw)
        return replace(made, cut=False) if made.cut else made

    def rename(self, name: str, index: int | None) -> str:
        """A tool's name that the target takes, reported."""
        assert self.rules.names is not None
        made = self.rules.names.rename(name)
        at = None if index is None else self.at
        self.losses.append(
            Loss(kind="renamed", rule="names", message=at, part=index, what=name, became=made)
        )
        return made

    def _is_answered(self, call: ToolCall) -> bool:
        for later in self.messages[self.at + 1 :]:
            if later.role == "assistant":
                return False
            if any(type(p) is ToolResult and p.call_id == call.id for p in later.parts):
                return True
        return False

    # -- a result --------------------------------------------------------------------------------

    def result(
        self, message: Message, result: ToolResult, to: tuple[ToolCall, str | None], own: bool
    ) -> tuple[Message, list[AnyPart]]:
        """The tool message for one result as the target takes it, and media to go behind it."""
        call, wire_id = to
        media: list[AnyPart] = []
        new = result if is_sound_part(result) else mend_struct(result)
        made = (self._result_part(i, part, own, media) for i, part in enumerate(new.content))
        content = [part for part in made if part is not None]
        outcome: Outcome = new.outcome
        if media:
            self.report("moved", "C10", "media of a result, to behind the results")
            media.insert(0, Text(text=MOVED_MEDIA.format(name=mend_text(call.name))))
        if not own:
            content = with_note(content, outcome)
            if outcome != "ok" and not self.rules.flags_errors:
                content, outcome = as_error(content), "ok"
        new = self.with_extras(new, own)
        if len(content) != len(new.content) or not all(map(_is, content, new.content)):
            new = replace(new, content=tuple(content))
        if new.call_id != wire_id or new.outcome != outcome:
            new = replace(new, call_id=wire_id, outcome=outcome)
        if len(message.parts) != 1 or message.role != "tool":
            message = replace(message, role="tool", extras=None, name=None)
        return self.changed(message, (new,), own), media

    def _result_part(
        self, index: int, part: AnyPart, own: bool, media: list[AnyPart]
    ) -> ResultPart | None:
        if type(part) is Text:
            if self.rules.blank and not part.text:
                return self.with_extras(part, own)
            return self.text(index, part, own)
        if type(part) is Json or self.rules.results is None:
            return self.with_extras(cast(ResultPart, part), own)
        if type(part) is Media:
            made = self.media(index, part, own)
            if own or type(made) is Text or self.clean.holds_media:
                return made
            media.append(made)
            return Text(text=SEE_BELOW)
        if type(part) is Native and part.api == self.api:
            return self.with_extras(part, own)
        return self.as_text(index, part)


def trimmed(message: Message) -> Message:
    """The message without white space at the end of its last text."""
    last = message.parts[-1]
    if type(last) is not Text or last.text == last.text.rstrip():
        return message
    return replace(message, parts=(*message.parts[:-1], replace(last, text=last.text.rstrip())))


def without_raw(extras: Extras | None, api: str) -> Extras | None:
    """Extras without the wire's own form of a message, which no longer is what it was."""
    said = extras.get(api, {}) if extras else {}
    if extras is None or "$raw" not in said:
        return extras
    return {**extras, api: {key: value for key, value in said.items() if key != "$raw"}}


def _is(one: object, other: object) -> bool:
    return one is other


def _outputs(message: Message) -> set[str]:
    return {p.id or "" for p in message.parts if type(p) is Hosted and p.output is not UNSET}
