"""Mending one message for a target: everything the plan does that is not about order.

The `is_clean` questions are asked of every message and are cheap; the rest runs only for a
message that the target would refuse as it stands. What `own` means everywhere: the message was
issued through the target's API, so that only hard rules touch it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from msgspec import UNSET
from msgspec.structs import replace

from brute.events.messages import (
    AnyPart,
    Hosted,
    Json,
    Media,
    Message,
    Native,
    Reasoning,
    Refusal,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from brute.transports.rules import Aim
from brute.transports.shapes import Loss
from brute.transports.wire import is_text, json_text, mend_arguments, mend_text

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

Calls = list[tuple[ToolCall, str | None]]


class Repair:
    """Mends messages for one request and keeps the report."""

    def __init__(self, messages: Sequence[Message], aim: Aim) -> None:
        self.messages, self.aim, self.rules = messages, aim, aim.rules
        self.api = aim.rules.api
        self.losses: list[Loss] = []
        self.ids: set[str] = set()
        """Ids of calls on the wire so far."""
        self.good_names: set[str] = set()
        self.hosted: set[str] = set()
        """Ids of the provider's own calls so far."""
        self._user = self.rules.speaks.get("user")
        self._takes = self.rules.own_ids.takes
        self._fits = self.rules.ids.fits
        self._unique = self.rules.ids_unique == "request"

    def report(self, at: int, kind: Any, rule: str, what: str, *, part: int | None = None) -> None:
        """Add a line to the report."""
        self.losses.append(Loss(kind=kind, rule=rule, message=at, part=part, what=what))

    def report_arguments(self) -> None:
        """Report arguments that are no object, which are wrapped while they are written."""
        for at, message in enumerate(self.messages):
            for index, part in enumerate(message.parts):
                if type(part) is ToolCall and not part.cut and part.malformed is not None:
                    self.report(at, "changed", "A15", part.malformed, part=index)

    # -- what is asked of every message ----------------------------------------------------------

    def is_clean(self, call: ToolCall, own: bool) -> bool:
        """Whether a call goes out as it stands (its id being unique apart)."""
        raw = call.raw
        if call.cut or not (raw.isascii() or is_text(raw)):
            return False
        if "\\u" in raw and mend_arguments(raw) != raw:
            return False
        if own:
            return bool(call.id) and self._fits(call.id)
        return self._takes(call.id) and (call.name in self.good_names or self.is_good(call.name))

    def is_good(self, name: str) -> bool:
        """Whether the name of a tool goes out as it stands."""
        if self.rules.names is not None and not self.rules.names.takes(name):
            return False
        self.good_names.add(name)
        return True

    def unique(self, calls: Calls, own: bool) -> bool:
        """Whether the ids of a message's calls are new where they must be; they are then known."""
        if not calls:
            return True
        ids = [id for _, id in calls]
        if len(ids) > 1 and len(set(ids)) < len(ids):
            return False
        if self._unique:
            if not own and not self.ids.isdisjoint(cast("list[str]", ids)):
                return False
            self.ids.update(cast("list[str]", ids))
        return True

    def is_clean_result(self, result: ToolResult, own: bool) -> bool:
        """Whether a result goes out as it stands."""
        if own:
            return all(type(c) is not Text or is_text(c.text) for c in result.content)
        if result.outcome != "ok" and (
            not self.rules.flags_errors or result.outcome == "unknown" or not result.content
        ):
            return False
        for part in result.content:
            if type(part) is Text:
                said = part.text
                if part.citations or (not self.rules.blank and (not said or said.isspace())):
                    return False
                if not (said.isascii() or is_text(said)):
                    return False
            elif type(part) is not Json:
                return False
        return True

    def is_clean_user(self, message: Message, own: bool) -> bool:
        """Whether a user message goes out as it stands."""
        parts = message.parts
        if not parts or (message.name is not None and not self.takes_name(message, own)):
            return False
        for part in parts:
            if type(part) is Text:
                said = part.text
                if not own and not self.rules.blank and (not said or said.isspace()):
                    return False
                if part.citations and not own:
                    return False
                if not (said.isascii() or is_text(said)):
                    return False
            elif not self.is_clean_user_part(part, own):
                return False
        return True

    def is_clean_user_part(self, part: AnyPart, own: bool) -> bool:
        """Whether a part that is no text goes out in a user message as it stands."""
        if type(part) is Media:
            return own or self.rules.media(part, self.aim) is part
        if type(part) is Native:
            return part.api == self.api
        return self._user is None and type(part) is not ToolResult

    def takes_name(self, message: Message, own: bool) -> bool:
        """Whether the name of a message goes out."""
        name = message.name
        if name is None or own:
            return True
        return self.rules.names_messages and (
            self.rules.names is None or self.rules.names.takes(name)
        )

    # -- a part ----------------------------------------------------------------------------------

    def text(self, at: int, index: int, part: Text, own: bool) -> Text | None:
        """A text as the target takes it; None if it would be refused for being blank."""
        said = part.text
        if not own and not said.strip() and (not self.rules.blank or not said):
            if said:
                self.report(at, "omitted", "blank-text", "a blank text", part=index)
            return None
        if not is_text(said):
            self.report(at, "changed", "U1", "a lone surrogate became U+FFFD", part=index)
            part = replace(part, text=mend_text(said))
        if part.citations and not own:
            self.report(at, "omitted", "U6", f"{len(part.citations)} citations", part=index)
            part = replace(part, citations=())
        return part

    def media(self, at: int, index: int, part: Media, own: bool) -> AnyPart:
        """Media as the target takes it, or a text that says what was there."""
        made = part if own else self.rules.media(part, self.aim)
        if made is None:
            self.report(at, "omitted", "media", f"{describe(part)}", part=index)
            return Text(text=f"[{describe(part)}, which cannot be shown here]")
        if made is not part:
            self.report(
                at, "changed", "media", f"{describe(part)} as {made.media_type}", part=index
            )
        return made

    def omit(self, at: int, index: int, part: object) -> None:
        """Report that a part stays behind."""
        rule, what = _left_out(part)
        self.report(at, "omitted", rule, what, part=index)

    # -- a user message, system text -------------------------------------------------------------

    def user(self, at: int, message: Message, own: bool) -> Message:
        """A user message as the target takes it; one that says nothing says so."""
        parts: list[AnyPart] = []
        for index, part in enumerate(message.parts):
            parts += self._user_part(at, index, part, own)
        if not parts:
            if self.rules.blank and message.parts and all(_is_empty(p) for p in message.parts):
                parts = [Text(text="")]
            else:
                self.report(at, "added", "not-empty", "a word in place of an empty message")
                parts = [Text(text=EMPTY)]
        return self._changed(at, message, parts, own)

    def _user_part(self, at: int, index: int, part: AnyPart, own: bool) -> Iterator[AnyPart]:
        kind = type(part)
        if kind is Text:
            said = cast(Text, part)
            if self.rules.blank and not said.text:
                yield said
            elif (text := self.text(at, index, said, own)) is not None:
                yield text
        elif kind is Media:
            yield self.media(at, index, cast(Media, part), own)
        elif (kind is Native and cast(Native, part).api == self.api) or self._user is None:
            yield part
        elif (said := said_by(part)) is not None:
            self.report(at, "changed", "roles", f"{_word(part)} as a text", part=index)
            made = self.text(at, index, said, own)
            if made is not None:
                yield made
        else:
            self.omit(at, index, part)

    def system(self, at: int, message: Message, own: bool) -> Message | None:
        """System text as the target takes it; None if it says nothing."""
        allowed = self.rules.speaks.get("system")
        if allowed is None:
            return message
        parts: list[AnyPart] = []
        for index, part in enumerate(message.parts):
            if type(part) is Text:
                made = self.text(at, index, part, own)
            elif type(part) is Native and part.api == self.api:
                made = part
            else:
                said = said_by(part)
                self.omit(at, index, part) if said is None else self.report(
                    at, "changed", "roles", f"{_word(part)} as a text", part=index
                )
                made = said and self.text(at, index, said, own)
            if made is not None:
                parts.append(made)
        if not parts and not own:
            return None
        return self._changed(at, message, parts, own)

    def _changed(self, at: int, message: Message, parts: Sequence[AnyPart], own: bool) -> Message:
        name = message.name
        if name is not None and not self.takes_name(message, own):
            if self.rules.names_messages and self.rules.names is not None:
                name = self.rules.names.rename(name)
                self.report(at, "changed", "C8", f"the name {message.name!r} as {name!r}")
            else:
                self.report(at, "omitted", "U6", f"the name {name!r} of the message")
                name = None
        if len(parts) == len(message.parts) and all(map(_is, parts, message.parts)):
            return message if name == message.name else replace(message, name=name)
        return replace(
            message, parts=tuple(parts), name=name, extras=_without_raw(message, self.api)
        )

    # -- an assistant message --------------------------------------------------------------------

    def assistant(
        self, at: int, message: Message, own: bool
    ) -> tuple[Message | None, Calls, list[ToolResult]]:
        """An assistant message as the target takes it, its calls, and results found inside it."""
        parts: list[AnyPart] = []
        calls: Calls = []
        results: list[ToolResult] = []
        mine: set[str] = set()
        for index, part in enumerate(message.parts):
            if type(part) is ToolResult:
                results.append(part)
            elif type(part) is ToolCall:
                made = self.call(at, index, part, own, mine)
                if made is not None:
                    parts.append(made)
                    calls.append((part, made.id))
            else:
                parts += self._assistant_part(at, index, part, message, own)
        if self.rules.calls_last:
            parts = self._calls_last(at, parts)
        if self._unique:
            self.ids.update(mine)
        if not parts and not (own and message.parts == () and self._stays(message)):
            self.report(at, "omitted", "not-empty", "an assistant message that says nothing")
            return None, [], results
        return self._changed(at, message, parts, own), calls, results

    def _stays(self, message: Message) -> bool:
        """Whether an empty message of the API stays: where empty text is taken."""
        return self.rules.blank

    def _assistant_part(
        self, at: int, index: int, part: AnyPart, message: Message, own: bool
    ) -> Iterator[AnyPart]:
        speaks = self.rules.speaks.get("assistant")
        kind = type(part)
        if kind is Text:
            made = self.text(at, index, cast(Text, part), own)
            if made is not None:
                yield made
        elif speaks is None:
            yield part
        elif kind is Reasoning and Reasoning in speaks:
            made = self.rules.reasoning(message, cast(Reasoning, part), self.aim)
            if made is None:
                self.omit(at, index, part)
            else:
                yield made
        elif kind is Native and cast(Native, part).api == self.api:
            yield part
        elif kind is Hosted and self.rules.hosted and own:
            if self._is_paired(at, message, cast(Hosted, part)):
                yield part
            else:
                self.report(at, "omitted", "A19", "half of a provider's own call", part=index)
        elif kind in speaks and (kind is not Media or own):
            yield part
        elif (said := said_by(part)) is not None:
            self.report(at, "changed", "roles", f"{_word(part)} as a text", part=index)
            made = self.text(at, index, said, False)
            if made is not None:
                yield made
        else:
            self.omit(at, index, part)

    def _calls_last(self, at: int, parts: list[AnyPart]) -> list[AnyPart]:
        first = next((i for i, p in enumerate(parts) if type(p) is ToolCall), len(parts))
        late = [p for p in parts[first:] if type(p) in {Text, Refusal, Media}]
        if not late:
            return parts
        self.report(at, "moved", "A25", "a text behind a call, to before it")
        rest = [p for p in parts[first:] if type(p) not in {Text, Refusal, Media}]
        return [*parts[:first], *late, *rest]

    def _is_paired(self, at: int, message: Message, part: Hosted) -> bool:
        """Whether the other half of a provider's own call is there, or may still come.

        A paused turn ends in a call; a call that client calls depend on gets its result in a later
        message.
        """
        id = part.id or ""
        if part.output is not UNSET:
            return part.input is not UNSET or id in self.hosted or id in _uses(message)
        self.hosted.add(id)
        if id in _outputs(message) or any(type(p) is ToolCall for p in message.parts):
            return True
        for later in self.messages[at + 1 :]:
            if later.role != "assistant":
                return False
            if id in _outputs(later):
                return True
        return True

    # -- a call ----------------------------------------------------------------------------------

    def call(
        self, at: int, index: int, call: ToolCall, own: bool, mine: set[str]
    ) -> ToolCall | None:
        """A call as the target takes it; None for one that was cut and never answered."""
        if call.cut and not self._is_answered(at, call):
            self.report(at, "omitted", "U7", f"the unfinished call of {call.name!r}", part=index)
            return None
        made = call
        id = self._wire_id(call, own, mine)
        if id != call.id:
            self.report(at, "renamed", "ids", f"the id {call.id!r} as {id!r}", part=index)
            made = replace(made, id=id)
        if not own and not (call.name in self.good_names or self.is_good(call.name)):
            name = cast(Any, self.rules.names).rename(call.name)
            self.losses.append(
                Loss(
                    kind="renamed",
                    rule="names",
                    message=at,
                    part=index,
                    what=call.name,
                    became=name,
                )
            )
            made = replace(made, name=name)
        raw = mend_text(call.raw) if call.kind == "custom" else mend_arguments(call.raw)
        if raw != call.raw:
            self.report(at, "changed", "U1", "a lone surrogate became U+FFFD", part=index)
            made = replace(made, raw=raw)
        return replace(made, cut=False) if made.cut else made

    def _wire_id(self, call: ToolCall, own: bool, mine: set[str]) -> str | None:
        id = call.id
        taken = mine if own else mine | self.ids
        pattern = self.rules.ids if own else self.rules.own_ids
        fits = pattern.fits(id) if own else pattern.takes(id)
        if own and not id and not self._unique:
            return id  # a gateway that gives no ids
        if fits and id not in taken:
            mine.add(cast(str, id))
            return id
        occurrence = 0 if not fits else 1
        while (made := self.rules.own_ids.rename(id, occurrence)) in mine | self.ids:
            occurrence += 1
        mine.add(made)
        self.ids.add(made)
        return made

    def _is_answered(self, at: int, call: ToolCall) -> bool:
        for later in self.messages[at + 1 :]:
            if later.role == "assistant":
                return False
            if any(type(p) is ToolResult and p.call_id == call.id for p in later.parts):
                return True
        return False

    # -- a result --------------------------------------------------------------------------------

    def result(
        self,
        at: int,
        message: Message,
        result: ToolResult,
        call: ToolCall,
        id: str | None,
        own: bool,
    ) -> tuple[Message, list[AnyPart]]:
        """The tool message for one result as the target takes it, and media to go behind it."""
        content: list[ResultPart] = []
        media: list[AnyPart] = []
        for index, part in enumerate(result.content):
            content += self._result_part(at, index, part, own, media)
        made = self._with_outcome(result, content) if not own else result
        if own and not all(map(_is, content, result.content)):
            made = replace(result, content=tuple(content))
        if media:
            self.report(at, "moved", "C10", "media of a result, behind the results")
            media.insert(0, Text(text=MOVED_MEDIA.format(name=call.name)))
        if made.call_id != id:
            made = replace(made, call_id=id)
        if made is result and message.parts == (result,):
            return message, media
        extras = message.extras if len(message.parts) == 1 else None
        return replace(message, parts=(made,), extras=extras), media

    def _result_part(
        self, at: int, index: int, part: AnyPart, own: bool, media: list[AnyPart]
    ) -> Iterator[ResultPart]:
        kind = type(part)
        if kind is Text:
            text = self.text(at, index, cast(Text, part), own)
            if text is not None:
                yield text
        elif kind is Json:
            yield cast(Json, part)
        elif kind is Media and not own:
            made = self.media(at, index, cast(Media, part), own)
            if type(made) is Media and Media not in self.rules.results:
                media.append(made)
                yield Text(text=SEE_BELOW)
            else:
                yield cast(ResultPart, made)
        elif kind is Media or (kind is Native and cast(Native, part).api == self.api):
            yield cast(ResultPart, part)
        elif (said := said_by(part)) is not None:
            yield said
        else:
            self.omit(at, index, part)

    def _with_outcome(self, result: ToolResult, content: list[ResultPart]) -> ToolResult:
        outcome = result.outcome
        note = OUTCOMES.get(outcome)
        if note is not None and (not content or outcome == "unknown"):
            if not (content and type(content[0]) is Text and note in content[0].text):
                content = [Text(text=note), *content]
        if note is not None and not self.rules.flags_errors:
            outcome = "ok"
            content = _prefixed(content)
        if outcome == result.outcome and len(content) == len(result.content):
            if all(map(_is, content, result.content)):
                return result
        return replace(result, content=tuple(content), outcome=outcome, extras=result.extras)


def _prefixed(content: list[ResultPart]) -> list[ResultPart]:
    """The content of a result that failed, for a target that has no flag for it."""
    first = content[0] if content else None
    if type(first) is Text:
        if first.text.lstrip("[ ").lower().startswith("error"):
            return content
        return [replace(first, text=f"Error: {first.text}"), *content[1:]]
    return [Text(text="Error:"), *content]


def no_result(call: ToolCall) -> ToolResult:
    """The result of a call that has none."""
    return ToolResult(call_id=call.id, name=call.name, kind=call.kind, outcome="interrupted")


def text_of_result(result: ToolResult) -> tuple[AnyPart, ...]:
    """A result without its call, as what a user says."""
    label = Text(text=LATE_RESULT.format(name=result.name or "?"))
    return (label, *result.content)


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
        transcript = next(
            (t for x in (part.extras or {}).values() if isinstance(t := x.get("transcript"), str)),
            None,
        )
        return Text(text=transcript or f"[{describe(part)}, which cannot be shown here]")
    if isinstance(part, ToolCall):
        return Text(text=f"[A call of the tool {part.name}: {part.raw}]")
    return None


def describe(part: Media) -> str:
    """Words for media that cannot be sent."""
    about = part.media_type or ""
    if part.name:
        about += f" {part.name!r}"
    if part.url and not part.url.startswith("data:"):
        about += f" {part.url}"
    return f"{part.kind.capitalize()} {about.strip()}".strip()


def _left_out(part: object) -> tuple[str, str]:
    if isinstance(part, Reasoning):
        return "U9", "reasoning that belongs to another issuer"
    if isinstance(part, Hosted):
        return "U8", f"a provider's own call of {part.tool!r}"
    if isinstance(part, Native):
        return "U6", f"a block {part.kind!r} of {part.api}"
    return "U6", f"{_word(part)} that this target has no word for"


def _word(part: object) -> str:
    return f"a {type(part).__name__}"


def _is(one: object, other: object) -> bool:
    return one is other


def _is_empty(part: AnyPart) -> bool:
    return type(part) is Text and not part.text


def _outputs(message: Message) -> set[str]:
    return {p.id or "" for p in message.parts if type(p) is Hosted and p.output is not UNSET}


def _uses(message: Message) -> set[str]:
    return {p.id or "" for p in message.parts if type(p) is Hosted and p.input is not UNSET}


def _without_raw(message: Message, api: str) -> Any:
    extras = message.extras
    if extras and "$raw" in extras.get(api, {}):
        own = {k: v for k, v in extras[api].items() if k != "$raw"}
        return {**extras, api: own}
    return extras
