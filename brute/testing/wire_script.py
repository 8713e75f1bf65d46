"""What a script is made of: replies that name no provider, and the requests they answer.

A `Reply` says what the model says; a `WireProtocol` knows how one provider's API writes it down.
The faults of `wire_faults` stand wherever a reply may: both are an `Answer`, which is anything that
can turn an `Exchange` into the bytes of one HTTP reply.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeGuard

from brute.testing.wire_http import Headers, Wire

JSON: TypeAlias = Any
"""A JSON value."""

JSONObject: TypeAlias = dict[str, Any]
"""A JSON object."""

CREATED = 1_790_000_000
"""The time every reply bears, in seconds since 1970: replies are the same in every run."""

SIGNATURE_PREFIX = "scripted-sig-"
"""How every signature of a thinking block that this server issued begins."""


def is_object(value: JSON) -> TypeGuard[JSONObject]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: JSON) -> TypeGuard[list[JSON]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)


def compact(value: JSON) -> str:
    """JSON text without blanks, as providers send it; a lone surrogate is sent as its escape.

    Raises:
        ValueError: The value holds NaN or an infinity, which JSON does not have.
        TypeError: The value is not JSON.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def thinking_signature(thinking: str) -> str:
    """The signature this server gives to a thinking block: a function of its text alone.

    So a text that was altered no longer fits its signature, and a signature from another run of
    the same script is still good.
    """
    digest = hashlib.sha256(thinking.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{SIGNATURE_PREFIX}{digest[:32]}"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the model makes."""

    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict[str, object])
    """An object; or a text, sent as it stands, for arguments that are not good JSON."""
    id: str | None = None
    """Default: the next id in the provider's spelling, `call_000001` or `toolu_000001`."""

    def __post_init__(self) -> None:
        _ = self.text  # arguments that are not JSON are refused where the script is written

    @property
    def text(self) -> str:
        """The arguments as JSON text."""
        return self.arguments if isinstance(self.arguments, str) else compact(dict(self.arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What the provider says a reply cost, in tokens.

    Each provider counts in its own way; here every number is a whole and its parts, and the
    protocols subtract what their provider leaves out.
    """

    input: int
    """Read, those from and to the prompt cache included."""
    output: int
    """Written, those of the reasoning included."""
    reasoning: int = 0
    """Of the output, those that were reasoning."""
    cache_read: int = 0
    """Of the input, those the cache had."""
    cache_write: int = 0
    """Of the input, those put into the cache."""

    def __post_init__(self) -> None:
        if self.cache_read + self.cache_write > self.input or self.reasoning > self.output:
            raise ValueError(
                f"{self}: input includes cache_read and cache_write, and output includes reasoning"
            )


class Answer(ABC):
    """A reply or a fault: whatever can become the bytes of one HTTP reply."""

    __slots__ = ()

    @abstractmethod
    def wire(self, exchange: Exchange) -> Wire:
        """The bytes, their pieces and how they end."""


@dataclass(frozen=True, slots=True)
class Reply(Answer):
    """What the model says, in no provider's words.

    The order is the providers' own: thinking, text, calls. A reply without any of them is legal,
    and some providers do send one.
    """

    text: str | None = None
    """None: no text; `""`: an empty text, which Anthropic gives a block of its own."""
    calls: Sequence[Call] = ()
    thinking: str | None = None
    """Sent as a signed block by Anthropic; by Chat Completions only under `reasoning_field`."""
    finish: str | None = None
    """`stop`, `tool_calls`, `length`, `content_filter`, `refusal`, `pause`, each in the provider's
    word; any other word is sent as it stands. Default: what the rest of the reply implies."""
    usage: Tokens | None = None
    """Default: a token for four characters that were read or written."""
    refusal: str | None = None
    """Why the model will not answer."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "calls", tuple(self.calls))

    def wire(self, exchange: Exchange) -> Wire:
        """The HTTP reply, as one JSON body or as server-sent events, whichever was asked for."""
        protocol = exchange.protocol
        if protocol.streams(exchange.request):
            frames = tuple(protocol.frames(self, exchange))
            return exchange.wire(200, frames, "text/event-stream; charset=utf-8", streamed=True)
        body = compact(protocol.body(self, exchange)).encode()
        return exchange.wire(200, (body,), "application/json")

    def tokens(self, request: Request) -> Tokens:
        """`usage`, or an estimate that is the same in every run."""
        if self.usage is not None:
            return self.usage
        read = compact([request.body.get(key) for key in ("system", "messages", "tools")])
        said = len(self.text or self.refusal or "") + sum(len(call.text) for call in self.calls)
        thought = len(self.thinking or "") // 4
        return Tokens(input=len(read) // 4, output=thought + said // 4 + 1, reasoning=thought)

    def finish_word(self) -> str:
        """`finish`, or what the rest of the reply implies."""
        implied = "tool_calls" if self.calls else "refusal" if self.refusal is not None else "stop"
        return self.finish or implied


@dataclass(frozen=True, slots=True)
class Request:
    """One request the server received."""

    number: int
    """1, 2, … in the order of arrival."""
    method: str
    path: str
    """Without the query, in which some APIs carry a key."""
    api: str | None
    """`openai.chat`, `anthropic.messages`; None when no API of the server has this path."""
    headers: Mapping[str, str] = field(repr=False)
    """By lower-case name; a value that may be a secret is `<redacted>`."""
    body: JSONObject
    """The JSON body; `{}` when it was not a JSON object."""
    raw: bytes = field(repr=False)
    """The body, byte for byte."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that the provider would not have taken, and did not get to the script."""

    rule: str
    """The rule's name, as `A9` or `C2`; docs/reference/scripted-server.md has the list."""
    message: str
    """In the provider's words, where they are known."""
    param: str | None = None
    """The place in the body, as OpenAI says it."""
    request: int = 0
    """The number of the request."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error reply before it takes a provider's shape."""

    status: int
    message: str
    type: str | None = None
    """Default: what the provider calls errors of this status."""
    param: str | None = None
    code: str | None = None
    headers: Headers = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a server plays its part; `ScriptedServer` says what each means."""

    delta_chars: int = 16
    reasoning_field: str | None = None
    foreign_thinking: bool = False


@dataclass(frozen=True, slots=True)
class WireProtocol:
    """One provider API, as far as the server has to speak it. A further API is a further one."""

    api: str
    sdk: str
    """The vendor SDK whose client speaks it."""
    base: str
    """What that client's `base_url` has after the host."""
    path: str
    """A regular expression for the whole path of a request."""
    request_id_header: str
    marker: str | None
    """A header that only this SDK sends: an unknown path is refused in the right shape by it."""
    streams: Callable[[Request], bool]
    body: Callable[[Reply, Exchange], JSONObject]
    frames: Callable[[Reply, Exchange], Iterator[bytes]]
    error: Callable[[Failure, str], JSONObject]
    """From the failure and the request id to the body."""
    error_frame: Callable[[Failure, str], bytes]
    """The same inside a stream that has begun."""
    refusal: Callable[[JSONObject, bytes, Settings], Refused | None]
    """From the body and its bytes to the first rule it breaks."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What an answer may need to know to become bytes."""

    request: Request
    protocol: WireProtocol
    settings: Settings
    counter: Iterator[int]

    @property
    def request_id(self) -> str:
        """The provider's id of this request."""
        return f"req_{self.request.number:06d}"

    @property
    def model(self) -> str:
        """The model that was asked, which answers."""
        return str(self.request.body.get("model", "scripted-model"))

    def call_id(self, call: Call, prefix: str) -> str:
        """The call's id: its own, or the next one that the request's history does not hold.

        A session goes on with a second server, whose count begins anew; a real provider never
        gives an id twice.
        """
        if call.id is not None:
            return call.id
        ids = (f"{prefix}{number:06d}" for number in self.counter)
        return next(one for one in ids if one.encode() not in self.request.raw)

    def deltas(self, text: str) -> Iterator[str]:
        """A text in the pieces it is streamed in."""
        size = self.settings.delta_chars
        for start in range(0, len(text), size):
            yield text[start : start + size]

    def wire(
        self,
        status: int,
        frames: tuple[bytes, ...],
        content_type: str,
        *,
        streamed: bool = False,
        headers: Headers = (),
    ) -> Wire:
        """An HTTP reply with the headers that every reply of the provider has."""
        common = (
            ("content-type", content_type),
            (self.protocol.request_id_header, self.request_id),
        )
        return Wire(status, (*common, *headers), frames, streamed)

    def failure(self, failure: Failure) -> Wire:
        """An HTTP error reply in the provider's shape."""
        body = compact(self.protocol.error(failure, self.request_id)).encode()
        return self.wire(failure.status, (body,), "application/json", headers=failure.headers)
