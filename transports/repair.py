"""Mending one message for a target: everything the plan does that is not about order.

The `is_clean` questions are asked of every message and are cheap; the rest runs only for a
message that the target would refuse as it stands. What `own` means everywhere: the message was
issued through the target's API, so that only hard rules touch it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeVar, cast

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
    Part,
    Reasoning,
    Refusal,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from brute.transports.rules import Aim
from brute.transports.shapes import Loss
from brute.transports.wire import (
    is_sound,
    is_text,
    json_text,
    mend_arguments,
    mend_json,
    mend_struct,
    mend_text,
)

NO_RESULT = "[No result was recorded for this call: it was interrupted.]"
OUTCOMES = {
    "error": "[The tool failed and said nothing.]",
    "denied": "[The call was not allowed.]",
    "interrupted": NO_RESULT,
    "unknown": "[The outcome of this call is not known: it may have run, or not.]",
}
LATE_RESULT = "[A result of the tool {name}, apart from its call]"
MOVED_MEDIA = "[From the result of the tool {name}]"
SEE_BELOW = "[Attached below]"
EMPTY = "[An empty message]"

Calls: TypeAlias = list[tuple[ToolCall, str | None]]
P = TypeVar("P", bound=Part | Message)


class Repair:
    """Mends messages for one request and keeps the report."""

    def __init__(self, messages: Sequence[Message], aim: Aim, *, deep: bool) -> None:
        self.messages, self.aim, self.rules = messages, aim, aim.rules
        self.passes_over = frozenset() if deep else aim.rules.passes_over
        self.api = aim.rules.api
        self.at = 0
        """Index of the message in hand."""
        self.losses: list[Loss] = []
        self.hinted = False
        self.ids: set[str] = set()
        """Ids of calls on the wire so far, where they must be unique."""
        self.made: set[str] = set()
        """Ids that were made here: another id that happens to be the same is renamed too."""
        self.hosted: set[str] = set()
        """Ids of the provider's own calls so far."""
        self._good_names: set[str] = set()
        self._said: set[str] = set()
        self._said_up_to = 0
        self._unique = self.rules.ids_unique == "request"
        self._blank = self.rules.blank

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
        for self.at, message in enumerate(self.messages):
            for index, part in enumerate(message.parts):
                if type(part) is ToolCall and not part.cut and part.malformed is not None:
                    self.report("changed", "A15", part.malformed, index)

    # -- what is asked of every message ----------------------------------------------------------

    def as_it_stands(self, message: Message, own: bool) -> tuple[Message, Calls] | None:
        """A message that goes out as it stands, but for reasoning that stays behind; its calls.

        None if it must be looked at.
        """
        rules = self.rules
        if message.name is not None or message.extras is not None:
            if not self.is_clean_message(message, own):
                return None
        calls: Calls = []
        behind: list[Reasoning] = []
        passed = 0
        for part in message.parts:
            if part.extras is not None and not self.takes_extras(part, own):
                return None
            if type(part) is Text:
                text = part.text
                if not text.isascii() and not is_text(text):
                    return None
                if not own:
                    if not text or part.citations or (not rules.blank and text.isspace()):
                        return None
                elif part.citations and not is_sound(part.citations):
                    return None
                if calls and rules.calls_last:
                    return None
            elif type(part) is ToolCall:
                if not self.is_clean_call(part, own):
                    return None
                calls.append((part, part.id))
            elif type(part) in self.passes_over and part.extras is None:
                passed += 1
            elif type(part) is Reasoning:
                made = rules.reasoning(message, part, self.aim)
                if made is None:
                    behind.append(part)
                elif made is not part or not is_sound_reasoning(part):
                    return None
            else:
                return None
        if len(behind) + passed == len(message.parts) or (calls and not self.are_new(calls, own)):
            return None
        return (self._without(message, behind) if behind else message), calls

    def _without(self, message: Message, behind: list[Reasoning]) -> Message:
        for part in behind:
            self.report("omitted", *left_out(part), message.parts.index(part))
        kept = tuple([part for part in message.parts if part not in behind])
        extras = without_raw(message.extras, self.api)
        return replace(message, parts=kept, extras=extras)

    def is_clean_call(self, call: ToolCall, own: bool) -> bool:
        """Whether a call goes out as it stands (its id being unique apart)."""
        raw = call.raw
        if call.cut or not (raw.isascii() or is_text(raw)):
            return False
        if "\\u" in raw and call.kind != "custom" and mend_arguments(raw) != raw:
            return False
        if own:
            return self.rules.ids.fits(call.id) and is_text(call.name)
        return (
            self.rules.own_ids.fits(call.id)
            and call.id not in self.made
            and (call.name in self._good_names or self.is_good_name(call.name))
        )

    def is_good_name(self, name: str) -> bool:
        """Whether the name of a tool goes out as it stands."""
        if self.rules.names is not None and not self.rules.names.fits(name):
            return False
        self._good_names.add(name)
        return True

    def are_new(self, calls: Calls, own: bool) -> bool:
        """Whether the ids of a message's calls are new where they must be; they are then known."""
        ids = {wire_id or "" for _, wire_id in calls}
        if len(ids) < len(calls):
            return False
        if self._unique:
            if not own and not self.ids.isdisjoint(ids):
                return False
            self.ids |= ids
        return True

    def is_plain_text(self, content: tuple[ResultPart, ...]) -> bool:
        """Whether this is one text that goes out as it stands, whoever says it."""
        if len(content) != 1:
            return False
        part = content[0]
        if type(part) is not Text or part.extras is not None or part.citations:
            return False
        text = part.text
        if not text.isascii() and not is_text(text):
            return False
        return self._blank or not (not text or text.isspace())

    def is_clean_result(self, message: Message, result: ToolResult, own: bool) -> bool:
        """Whether a tool message with this one result goes out as it stands."""
        rules = self.rules
        if message.name is not None or message.extras is not None or result.extras is not None:
            if not self.is_clean_message(message, own) or not self.takes_extras(result, own):
                return False
        if own and result.name is not None and not is_text(result.name):
            return False
        if result.outcome != "ok" and not own:
            if not rules.flags_errors or result.outcome == "unknown" or not result.content:
                return False
        for part in result.content:
            if part.extras is not None and not self.takes_extras(part, own):
                return False
            if type(part) is Text:
                text = part.text
                if not text.isascii() and not is_text(text):
                    return False
                if not own:
                    if part.citations or (not rules.blank and (not text or text.isspace())):
                        return False
            elif type(part) is Native:
                if part.api != self.api or not is_sound(part.block):
                    return False
            elif type(part) is not Json and not (own and type(part) is Media):
                return False
            elif not is_sound_part(part):
                return False
        return True

    def is_clean_user(self, message: Message, own: bool) -> bool:
        """Whether a user message goes out as it stands."""
        rules = self.rules
        parts = message.parts
        if not parts or message.name is not None or message.extras is not None:
            if not self.is_clean_message(message, own):
                return False
        for part in parts:
            if part.extras is not None and not self.takes_extras(part, own):
                return False
            if type(part) is Text:
                text = part.text
                if not text.isascii() and not is_text(text):
                    return False
                if not own:
                    if part.citations or (not rules.blank and (not text or text.isspace())):
                        return False
            elif not self._is_clean_user_part(part, own):
                return False
        return True

    def _is_clean_user_part(self, part: AnyPart, own: bool) -> bool:
        if type(part) is Media:
            return (own or self.rules.media(part) is part) and is_sound_media(part)
        if type(part) is Native:
            return part.api == self.api and is_sound(part.block)
        return self.rules.speaks is None and type(part) is not ToolResult

    def is_clean_message(self, message: Message, own: bool) -> bool:
        """Whether name, extras and the fact that there are parts are as the target takes them."""
        if not message.parts or not self.takes_extras(message, own):
            return False
        return self.takes_name(message, own)

    def takes_name(self, message: Message, own: bool) -> bool:
        """Whether the name of a message goes out as it stands."""
        name = message.name
        if name is None or (own and is_text(name)):
            return True
        names = self.rules.names
        return self.rules.names_messages and (names is None or names.fits(name))

    def takes_extras(self, part: AnyPart | Message, own: bool) -> bool:
        """Whether what only this API says about a part goes out as it stands."""
        said = part.extra(self.api)
        if not said:
            return True
        self.hinted = True
        if own or self.rules.hints is None:
            return is_sound(said)
        allowed = self.rules.hints.get(type(part))
        return allowed is not None and said.keys() <= allowed and is_sound(said)

    # -- what every part has ---------------------------------------------------------------------

    def with_extras(self, part: P, own: bool) -> P:
        """The part with nothing of this API's own that the target would refuse."""
        if part.extras is None or self.takes_extras(cast(AnyPart, part), own):
            return part
        said: JSONObject = mend_json(part.extra(self.api))
        if not own:
            allowed = (self.rules.hints or {}).get(type(part), frozenset())
            said = {k: v for k, v in said.items() if k in allowed}
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
            self.report("changed", "media", f"{describe(part)} as {made.media_type}", index)
        return made

    def sound(self, message: Message) -> Message:
        """The message such that every strict reader takes its texts and numbers."""
        parts = [part if is_sound_part(part) else mended(part) for part in message.parts]
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
            rule, what = left_out(part)
            self.report("omitted", rule, what, index)
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
        if self.takes_name(message, own):
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
        parts: list[AnyPart] = []
        for index, part in enumerate(message.parts):
            made = self._user_part(index, part, own)
            if made is not None:
                parts.append(made)
        if not parts:
            if self.rules.blank and message.parts:
                parts.append(Text(text=""))
            else:
                self.report("added", "A3", "a word in place of an empty message")
                parts.append(Text(text=EMPTY))
        return self.changed(message, parts, own)

    def _user_part(self, index: int, part: AnyPart, own: bool) -> AnyPart | None:
        if type(part) is Text:
            if self.rules.blank and not part.text:
                return part if part.extras is None else self.with_extras(part, own)
            return self.text(index, part, own)
        if self.rules.speaks is None:
            return part
        if type(part) is Media:
            return self.media(index, part, own)
        if type(part) is Native and part.api == self.api:
            return part
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
                made = part
            else:
                made = self.as_text(index, part)
            if made is not None:
                parts.append(made)
        return self.changed(message, parts, own) if parts or own else None

    # -- an assistant message --------------------------------------------------------------------

    def assistant(
        self, message: Message, own: bool
    ) -> tuple[Message | None, Calls, list[ToolResult]]:
        """An assistant message as the target takes it, its calls, and results found inside it."""
        given = message.parts
        message = self.sound(message)
        parts: list[AnyPart] = []
        calls: Calls = []
        results: list[ToolResult] = []
        mine: set[str] = set()
        for index, part in enumerate(message.parts):
            if type(part) is ToolResult:
                results.append(part)
            elif type(part) is ToolCall:
                call = self._call(index, part, own, mine)
                if call is not None:
                    parts.append(call)
                    calls.append((cast(ToolCall, given[index]), call.id))
            else:
                made = self._assistant_part(index, part, message, own)
                if made is not None:
                    parts.append(made)
        if self.rules.calls_last:
            parts = self._calls_last(parts)
        if self._unique:
            self.ids |= mine
        if not parts and not (own and not message.parts and self.rules.blank):
            self.report("omitted", "A3", "an assistant message that says nothing")
            return None, [], results
        return self.changed(message, parts, own), calls, results

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
        elif type(part) in speaks and (own or type(part) is not Media):
            made = part
        return self.as_text(index, part) if made is None else self.with_extras(made, own)

    def _calls_last(self, parts: list[AnyPart]) -> list[AnyPart]:
        """Text goes before the first call: behind one it is taken for the missing result."""
        first = next((i for i, p in enumerate(parts) if type(p) is ToolCall), len(parts))
        late = [p for p in parts[first:] if type(p) is Text]
        if not late:
            return parts
        self.report("moved", "A9", "a text behind a call, to before it")
        return [*parts[:first], *late, *(p for p in parts[first:] if type(p) is not Text)]

    def _is_paired(self, message: Message, part: Hosted) -> bool:
        """Whether the other half of a provider's own call is there, or may still come.

        A paused turn ends in a call; a call that client calls depend on gets its result in a later
        message.
        """
        hosted_id = part.id or ""
        if part.output is not UNSET:
            return part.input is UNSET and hosted_id in self.hosted
        if part.input is UNSET or not hosted_id:
            return False
        self.hosted.add(hosted_id)
        if hosted_id in _outputs(message) or any(type(p) is ToolCall for p in message.parts):
            return True
        for later in self.messages[self.at + 1 :]:
            if later.role != "assistant":
                return False
            if hosted_id in _outputs(later):
                return True
        return True

    # -- a call ----------------------------------------------------------------------------------

    def _call(self, index: int, call: ToolCall, own: bool, mine: set[str]) -> ToolCall | None:
        """A call as the target takes it; None for one that was cut and never answered."""
        if call.cut and not self._is_answered(call):
            self.report("omitted", "U7", f"the unfinished call of {call.name!r}", index)
            return None
        made = self.with_extras(call, own)
        wire_id = self._wire_id(call, own, mine)
        if wire_id != call.id:
            self.report("renamed", "ids", f"the id {call.id!r} as {wire_id!r}", index)
            made = replace(made, id=wire_id)
        if not own and not self.is_good_name(call.name):
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

    def _wire_id(self, call: ToolCall, own: bool, mine: set[str]) -> str | None:
        if own and not call.id and not self._unique:
            return call.id  # a gateway that gives no ids
        fits = self.rules.ids.fits(call.id) if own else self.rules.own_ids.fits(call.id)
        word = call.id or ""
        if fits and word not in mine and (own or (word not in self.ids and word not in self.made)):
            mine.add(word)
            return word
        occurrence = 1 if fits else 0
        said = self._said_so_far()
        while True:
            made = self.rules.own_ids.rename(word, occurrence)
            if not any(made in taken for taken in (mine, self.ids, self.made, said)):
                break
            occurrence += 1
        mine.add(made)
        self.made.add(made)
        return made

    def _said_so_far(self) -> set[str]:
        """The ids of all calls up to here, as they stand in the messages."""
        for message in self.messages[self._said_up_to : self.at + 1]:
            self._said.update(p.id for p in message.parts if type(p) is ToolCall and p.id)
        self._said_up_to = self.at + 1
        return self._said

    def _is_answered(self, call: ToolCall) -> bool:
        for later in self.messages[self.at + 1 :]:
            if later.role == "assistant":
                return False
            if any(type(p) is ToolResult and p.call_id == call.id for p in later.parts):
                return True
        return False

    # -- a result --------------------------------------------------------------------------------

    def result(
        self,
        message: Message,
        result: ToolResult,
        call: ToolCall,
        wire_id: str | None,
        own: bool,
    ) -> tuple[Message, list[AnyPart]]:
        """The tool message for one result as the target takes it, and media to go behind it."""
        content: list[ResultPart] = []
        media: list[AnyPart] = []
        given = result
        if self.is_plain_text(result.content):
            content += result.content
        else:
            result = result if is_sound_part(result) else mend_struct(result)
            for index, part in enumerate(result.content):
                made = self._result_part(index, part, own, media)
                if made is not None:
                    content.append(made)
        if media:
            self.report("moved", "C10", "media of a result, to behind the results")
            media.insert(0, Text(text=MOVED_MEDIA.format(name=call.name)))
        outcome = result.outcome
        if not own:
            content, outcome = self._with_outcome(content, outcome)
        new = self.with_extras(result, own)
        if len(content) != len(result.content) or not all(map(_is, content, result.content)):
            new = replace(new, content=tuple(content))
        if new.call_id != wire_id or new.outcome != outcome:
            new = replace(new, call_id=wire_id, outcome=outcome)
        if len(message.parts) != 1 or message.role != "tool":
            message = replace(message, role="tool", extras=None, name=None)
        if new is given and message.parts == (given,):
            return self.changed(message, message.parts, own), media
        return self.changed(message, (new,), own), media

    def _result_part(
        self, index: int, part: AnyPart, own: bool, media: list[AnyPart]
    ) -> ResultPart | None:
        if type(part) is Text:
            if self.rules.blank and not part.text:
                return self.with_extras(part, own)
            return self.text(index, part, own)
        results = self.rules.results
        if type(part) is Json or results is None:
            return cast(ResultPart, part if own else self.with_extras(part, own))
        if type(part) is Media:
            made = self.media(index, part, own)
            if own or type(made) is Text or Media in results:
                return made
            media.append(made)
            return Text(text=SEE_BELOW)
        if type(part) is Native and part.api == self.api:
            return part
        return self.as_text(index, part)

    def _with_outcome(
        self, content: list[ResultPart], outcome: str
    ) -> tuple[list[ResultPart], Literal["ok", "error", "denied", "interrupted", "unknown"]]:
        """The content of a result with what its outcome says, and the outcome that is left to say.

        An outcome that is not known is always said, for the model may want to look.
        """
        note = OUTCOMES.get(outcome)
        if note is None:
            return content, "ok"
        said = bool(content) and type(content[0]) is Text and note in content[0].text
        if not said and (outcome == "unknown" or not any(map(_says_something, content))):
            content = [Text(text=note), *content]
        if self.rules.flags_errors:
            return content, cast(Literal["error"], outcome)
        return _prefixed(content), "ok"


def is_sound_part(part: object) -> bool:
    """Whether every strict reader takes the texts and numbers of a part."""
    if type(part) is Media:
        return is_sound_media(part)
    if type(part) is ToolResult:
        return is_sound((part.call_id, part.name, part.extras)) and all(
            map(is_sound_part, part.content)
        )
    return not isinstance(part, Part) or is_sound(part)  # a part of a newer version says nothing


def is_sound_media(part: Media) -> bool:
    """Whether the texts about media are such as every strict reader takes (bytes are)."""
    texts = (part.media_type, part.name, part.detail, part.url, part.file_id)
    return all(t is None or is_text(t) for t in texts) and (
        part.extras is None or is_sound(part.extras)
    )


def is_sound_reasoning(part: Reasoning) -> bool:
    """Whether every strict reader takes the texts of reasoning."""
    texts = (part.text, part.signature, part.data, part.id)
    return all(t is None or t.isascii() or is_text(t) for t in texts)


def mended(part: AnyPart) -> AnyPart:
    """The part with nothing in it that a strict reader refuses."""
    return mend_struct(part)


def _says_something(part: ResultPart) -> bool:
    return type(part) is not Text or bool(part.text.strip())


def _prefixed(content: list[ResultPart]) -> list[ResultPart]:
    """The content of a result that failed, for a target that has no flag for it."""
    first = content[0] if content else None
    if type(first) is not Text:
        return [Text(text="Error:"), *content]
    if first.text.lstrip("[ ").lower().startswith("error"):
        return content
    return [replace(first, text=f"Error: {first.text}"), *content[1:]]


def no_result(call: ToolCall) -> ToolResult:
    """The result of a call that has none."""
    return ToolResult(call_id=call.id, name=call.name, kind=call.kind, outcome="interrupted")


def text_of_result(result: ToolResult) -> tuple[AnyPart, ...]:
    """A result without its call, as what a user says."""
    return (Text(text=LATE_RESULT.format(name=result.name or "?")), *result.content)


def trimmed(message: Message) -> Message:
    """The message without white space at the end of its last text."""
    last = message.parts[-1]
    if type(last) is not Text or last.text == last.text.rstrip():
        return message
    return replace(message, parts=(*message.parts[:-1], replace(last, text=last.text.rstrip())))


def said_by(part: object) -> Text | None:
    """What a part says, as a text for a place that takes only text; None if it may not be said."""
    if isinstance(part, Text):
        return part
    if isinstance(part, Refusal):
        return Text(text=part.text)
    if isinstance(part, Json):
        return Text(text=json_text(part.value))
    if isinstance(part, Media):
        return Text(text=transcript(part) or f"[{describe(part)}, which cannot be shown here]")
    if isinstance(part, ToolCall):
        return Text(text=f"[A call of the tool {part.name}: {part.raw}]")
    return None


def transcript(part: Media) -> str | None:
    """The words of an audio that some API wrote down."""
    for said in (part.extras or {}).values():
        for holder in (said, said.get("audio")):
            if isinstance(holder, dict):
                words = cast(JSONObject, holder).get("transcript")
                if isinstance(words, str) and words:
                    return words
    return None


def describe(part: Media) -> str:
    """Words for media that cannot be sent."""
    about = [part.kind.capitalize()]
    if part.media_type:
        about.append(part.media_type)
    if part.name:
        about.append(repr(part.name))
    if part.url and not part.url.startswith("data:"):
        about.append(part.url)
    return " ".join(about)


def left_out(part: object) -> tuple[str, str]:
    """The rule and the words for a part that stays behind."""
    if isinstance(part, Reasoning):
        return "U9", "reasoning of another issuer"
    if isinstance(part, Hosted):
        return "U8", f"a provider's own call of {part.tool!r}"
    if isinstance(part, Native):
        return "U6", f"a block {part.kind!r} of {part.api}"
    return "U6", f"a part of a newer version ({type(part).__name__})"


def without_raw(extras: Extras | None, api: str) -> Extras | None:
    """Extras without the wire's own form of a message, which no longer is what it was."""
    said = extras.get(api, {}) if extras else {}
    if extras is None or "$raw" not in said:
        return extras
    return {**extras, api: {k: v for k, v in said.items() if k != "$raw"}}


def _is(one: object, other: object) -> bool:
    return one is other


def _outputs(message: Message) -> set[str]:
    return {p.id or "" for p in message.parts if type(p) is Hosted and p.output is not UNSET}
