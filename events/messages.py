"""What is said: messages and their parts.

A `Message` is a role and ordered, typed parts, with no id, time or order of its own; those belong
to the envelope that the log adds. Parts are the smallest vocabulary that loses nothing of what
providers say; what only one API says rides along in `extras`, keyed by that API.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import msgspec
from msgspec import UNSET, Struct

from brute.events.errors import WrongType
from brute.events.jsontext import dumps, parse_arguments
from brute.events.jsontypes import Extras, JSONObject

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
Outcome: TypeAlias = Literal["ok", "error", "denied", "interrupted", "unknown"]
Finish: TypeAlias = Literal[
    "stop",
    "tool_calls",
    "length",
    "content_filter",
    "refusal",
    "pause",
    "interrupted",
    "error",
    "other",
]

if TYPE_CHECKING:
    Rest: TypeAlias = dict[str, msgspec.Raw] | None
else:  # The strict decode takes no slot that is filled: that is how the codec finds them, for free.
    Rest = None


class Value(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
):
    """The base of everything stored: immutable, compared by structure.

    `gc=False`: JSON data has no cycles, and a session of 100,000 events holds half a million of
    these, which the collector would walk again and again.
    """

    rest: Rest = msgspec.field(default=None, name="~")
    """Fields that a newer version wrote and this one does not know, as they were."""


class Part(Value, tag_field="type", frozen=True, kw_only=True):
    """One piece of a message."""

    extras: Extras | None = None
    """What one API said beyond the fields here, keyed by API; it goes back to that API only."""

    def extra(self, api: str) -> JSONObject:
        """What `api` said about this part beyond its fields; `{}` if nothing."""
        return self.extras.get(api, {}) if self.extras else {}


class Citation(Value, frozen=True, kw_only=True):
    """Where a text was taken from."""

    kind: str
    url: str | None = None
    title: str | None = None
    quote: str | None = None
    start: int | None = None
    """First character of the cited span in the text, where the API says it."""
    end: int | None = None
    extras: Extras | None = None


class Text(Part, tag="text", frozen=True, kw_only=True):
    """Words. Several text blocks stay several."""

    text: str
    citations: tuple[Citation, ...] = ()


class Reasoning(Part, tag="reasoning", frozen=True, kw_only=True):
    """The model's thinking. Kept in place relative to calls; never merged, never split."""

    text: str = ""
    kind: Literal["thinking", "summary", "encrypted"] = "thinking"
    signature: str | None = None
    """The issuer's proof over this block; valid only byte for byte, and only at the issuer."""
    data: str | None = None
    """Encrypted reasoning, readable by the issuer alone."""
    id: str | None = None


class ToolCall(Part, tag="call", frozen=True, kw_only=True):
    """The model asks for a tool to be run by us.

    `raw` is the argument text as it was received, byte for byte (for APIs whose arguments are
    objects: its compact encoding). `arguments` is always a dict.
    """

    id: str | None = None
    """The provider's id; may repeat or be absent. A call's identity is (position, part index)."""
    name: str
    raw: str = ""
    kind: str = "function"
    """function, custom (`raw` is free text), computer, shell, …"""
    namespace: str | None = None
    cut: bool = False
    """The reply ended before this call was known to be whole (a cut stream, a length stop): it is
    never run, and never sent back as a call that was made."""

    @classmethod
    def of(
        cls, name: str, arguments: JSONObject | None = None, *, id: str | None = None
    ) -> ToolCall:
        """Build a call from an arguments dict.

        Raises `EncodingError` if the arguments hold something JSON has no word for.
        """
        return cls(id=id, name=name, raw=dumps(arguments or {}))

    @property
    def arguments(self) -> JSONObject:
        """The arguments as a dict: `{}` when `raw` is not one JSON object (see `malformed`)."""
        return self._parsed()[0]

    @property
    def malformed(self) -> str | None:
        """Why the call cannot be run, or None. Empty text and `null` are the empty object."""
        return self._parsed()[1]

    def _parsed(self) -> tuple[JSONObject, str | None]:
        if self.cut:
            return {}, "the reply ended before this call was whole"
        if self.kind == "custom":
            return {"input": self.raw}, None
        return parse_arguments(self.raw)


class Json(Part, tag="json", frozen=True, kw_only=True):
    """A JSON value: structured tool output, without a detour through text."""

    value: Any


class Media(Part, tag="media", frozen=True, kw_only=True):
    """An image, audio, video or document, by exactly one of `data`, `url`, `file_id`.

    In the store large `data` stands once, by content hash (`blob`); reading puts it back, so that
    code sees `data` only.
    """

    kind: Literal["image", "audio", "video", "document"]
    media_type: str | None = None
    """IANA media type, e.g. `image/png`."""
    name: str | None = None
    detail: str | None = None
    data: bytes | None = None
    url: str | None = None
    file_id: str | None = None
    blob: str | None = None


class Refusal(Part, tag="refusal", frozen=True, kw_only=True):
    """The model declines, in words."""

    text: str


class Native(Part, tag="native", frozen=True, kw_only=True):
    """A block that only one API knows, verbatim; it goes back to that API and to no other."""

    api: str
    kind: str
    """The block's own type word."""
    block: Any


class Hosted(Part, tag="hosted", frozen=True, kw_only=True):
    """A tool that the *provider* ran (web search, code execution, MCP).

    One item at OpenAI, a pair of halves sharing `id` at Anthropic and Google; a half has only
    `input` or only `output`. Never a `ToolCall`: a loop that answers every call must not see one.
    """

    id: str | None = None
    tool: str
    name: str | None = None
    input: Any = UNSET
    output: Any = UNSET
    error: bool = False


class Verbatim:
    """What a newer version wrote: its JSON, byte for byte. It is written back as it came.

    U+001A in its texts is followed by the four hex digits of a UTF-16 code unit, see
    `brute.events.codec`.
    """

    __slots__ = ("raw",)
    raw: bytes

    def __init__(self, raw: bytes) -> None:
        object.__setattr__(self, "raw", raw)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"immutable type: {type(self).__name__!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"immutable type: {type(self).__name__!r}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__reduce__() == self.__reduce__()

    def __hash__(self) -> int:
        return hash(self.__reduce__())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.__reduce__()[1]))})"

    def __reduce__(self) -> tuple[type[Verbatim], tuple[object, ...]]:
        return type(self), (self.raw,)


class Foreign(Verbatim):
    """A part that a newer version wrote."""

    __slots__ = ()
    extras: None = None

    def extra(self, api: str) -> JSONObject:
        """Nothing is known about a foreign part."""
        return {}


ResultPart: TypeAlias = Text | Json | Media | Native


class ToolResult(Part, tag="result", frozen=True, kw_only=True):
    """What a tool gave back."""

    call_id: str | None = None
    """The `id` of the call it answers; absent at some gateways (the order pairs them then)."""
    name: str | None = None
    kind: str = "function"
    """The call's kind."""
    content: tuple[ResultPart, ...] = ()
    outcome: Outcome = "ok"

    @property
    def text(self) -> str:
        """The text of the result, its parts joined (JSON parts as JSON)."""
        return "".join(
            p.text if isinstance(p, Text) else dumps(p.value)
            for p in self.content
            if isinstance(p, (Text, Json))
        )


AnyPart: TypeAlias = (
    Text | Reasoning | ToolCall | ToolResult | Json | Media | Refusal | Hosted | Native
)
"""Any part this version knows. A stored message may hold `Foreign` ones besides."""

PARTS: tuple[type[Part], ...] = (
    Text,
    Reasoning,
    ToolCall,
    ToolResult,
    Json,
    Media,
    Refusal,
    Hosted,
    Native,
)


class Origin(Value, frozen=True, kw_only=True):
    """Who issued a message. It says what may be touched and where private things may go back."""

    provider: str | None = None
    platform: str | None = None
    """The key family: Azure and OpenAI do not accept each other's encrypted reasoning."""
    api: str
    model: str | None = None


class Usage(Value, frozen=True, kw_only=True):
    """Tokens of one reply. `input` includes the cached ones, `output` the reasoning ones."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0
    extras: Extras | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )


class Message(Value, frozen=True, kw_only=True):
    """What is said: a role and ordered parts."""

    role: Role
    parts: tuple[AnyPart, ...] = ()
    name: str | None = None
    extras: Extras | None = None
    origin: Origin | None = None

    # -- builders ------------------------------------------------------------------------------

    @classmethod
    def system(cls, *parts: str | AnyPart, name: str | None = None) -> Message:
        """A system message of the given texts and parts."""
        return cls(role="system", parts=as_parts(parts), name=name)

    @classmethod
    def developer(cls, *parts: str | AnyPart, name: str | None = None) -> Message:
        """A developer message of the given texts and parts."""
        return cls(role="developer", parts=as_parts(parts), name=name)

    @classmethod
    def user(cls, *parts: str | AnyPart, name: str | None = None) -> Message:
        """A user message of the given texts and parts."""
        return cls(role="user", parts=as_parts(parts), name=name)

    @classmethod
    def assistant(cls, *parts: str | AnyPart, name: str | None = None) -> Message:
        """An assistant message of the given texts and parts."""
        return cls(role="assistant", parts=as_parts(parts), name=name)

    @classmethod
    def tool(
        cls,
        call: ToolCall | str | None,
        *content: str | ResultPart,
        name: str | None = None,
        outcome: Outcome = "ok",
    ) -> Message:
        """The message that answers `call` (a call, or its id) with the given content."""
        call_id = call.id if isinstance(call, ToolCall) else call
        tool_name = name or (call.name if isinstance(call, ToolCall) else None)
        kind = call.kind if isinstance(call, ToolCall) else "function"
        body = tuple(Text(text=c) if isinstance(c, str) else c for c in content)
        result = ToolResult(
            call_id=call_id, name=tool_name, kind=kind, content=body, outcome=outcome
        )
        return cls(role="tool", parts=(result,))

    # -- convenience ---------------------------------------------------------------------------

    @property
    def content(self) -> str:
        """The text of the message, its text parts joined (a tool message: of its result)."""
        return "".join(p.text for p in self.parts if isinstance(p, (Text, ToolResult)))

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls of the message, in order."""
        return [p for p in self.parts if isinstance(p, ToolCall)]

    @property
    def tool_call_id(self) -> str | None:
        """The id of the call that a tool message answers."""
        return next((p.call_id for p in self.parts if isinstance(p, ToolResult)), None)

    @property
    def reasoning(self) -> str:
        """The readable reasoning of the message, joined."""
        return "".join(p.text for p in self.parts if isinstance(p, Reasoning))

    def extra(self, api: str) -> JSONObject:
        """What `api` said about this message beyond its fields; `{}` if nothing."""
        return self.extras.get(api, {}) if self.extras else {}


def as_parts(parts: Iterable[str | AnyPart]) -> tuple[AnyPart, ...]:
    """Texts become `Text` parts, parts stay.

    Raises `WrongType` for anything else, naming its place.
    """
    out: list[AnyPart] = []
    for index, part in enumerate(parts):
        if isinstance(part, str):
            out.append(Text(text=part))
        elif isinstance(part, (Part, Foreign)):  # pyright: ignore[reportUnnecessaryIsInstance]
            out.append(part)
        else:
            raise WrongType(f"part {index}", part, "a str or a part such as brute.Text")
    return tuple(out)
