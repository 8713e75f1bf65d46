"""What is said in a request where something itself cannot be sent."""

from __future__ import annotations

from typing import cast

from brute.events.jsontypes import JSONObject
from brute.events.messages import (
    AnyPart,
    Hosted,
    Json,
    Media,
    Native,
    Outcome,
    Reasoning,
    Refusal,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from brute.transports.wire import json_text

BEGINNING = "[The conversation begins here.]"
CONTINUE = "Continue."
EMPTY = "[An empty message]"
MIDWAY = "<system>\n{text}\n</system>"
NO_RESULT = "[No result was recorded for this call: it was interrupted.]"
OUTCOMES: dict[Outcome, str] = {
    "error": "[The tool failed and said nothing.]",
    "denied": "[The call was not allowed.]",
    "interrupted": NO_RESULT,
    "unknown": "[The outcome of this call is not known: it may have run, or not.]",
}
LATE_RESULT = "[A result of the tool {name}, apart from its call]"
MOVED_MEDIA = "[From the result of the tool {name}]"
SEE_BELOW = "[Attached below]"


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


def no_result(call: ToolCall) -> ToolResult:
    """The result of a call that has none."""
    return ToolResult(call_id=call.id, name=call.name, kind=call.kind, outcome="interrupted")


def text_of_result(result: ToolResult) -> tuple[AnyPart, ...]:
    """A result without its call, as what a user says."""
    said = [part for part in result.content if isinstance(part, (Text, Json, Media))]
    return (Text(text=LATE_RESULT.format(name=result.name or "?")), *said)


def with_note(content: list[ResultPart], outcome: Outcome) -> list[ResultPart]:
    """The content of a result with what its outcome says, where nothing else says it.

    An outcome that is not known is always said, for the model may want to look.
    """
    note = OUTCOMES.get(outcome)
    if note is None or (outcome != "unknown" and any(map(_says_something, content))):
        return content
    first = content[0] if content else None
    if type(first) is Text and note in first.text:
        return content
    return [Text(text=note), *content]


def _says_something(part: ResultPart) -> bool:
    return type(part) is not Text or bool(part.text.strip())


def as_error(content: list[ResultPart]) -> list[ResultPart]:
    """The content of a result that failed, for a target that has no flag for it."""
    first = content[0] if content else None
    if type(first) is not Text or first.extras:
        return [Text(text="Error:"), *content]
    if first.text.lstrip("[ ").lower().startswith("error"):
        return content
    return [Text(text=f"Error: {first.text}", citations=first.citations), *content[1:]]
