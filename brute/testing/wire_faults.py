"""What goes wrong between a provider and its client: errors, cuts, hang-ups, drips, odd bodies.

Each stands in a script where a reply may. Those that spoil a reply are wrapped around it, and may
be wrapped around one another: `Drip(CutStream(Reply("…"), after_events=3), sizes=1)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from brute.testing.wire_http import Wire
from brute.testing.wire_script import JSON, Answer, Exchange, Failure, compact


@dataclass(frozen=True, slots=True)
class HttpError(Answer):
    """An error reply: 429 with `retry_after`, 400, 500, Anthropic's 529.

    Both SDKs try again after 408, 409, 429 and 5xx, twice by default and after a pause of their
    own; each try takes the next answer of the script. Give the client `max_retries=0` to see the
    error.
    """

    status: int
    message: str | None = None
    """Default: a sentence that names the status."""
    type: str | None = None
    """Default: the provider's word for errors of this status."""
    code: str | None = None
    """OpenAI's `error.code`."""
    retry_after: float | None = None
    """Seconds; sent as `retry-after` and as `retry-after-ms`, which the SDKs look at first."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: JSON = None
    """Instead of the provider's error shape: bytes or text as they stand, other values as JSON."""

    def wire(self, exchange: Exchange) -> Wire:
        """The error in the provider's shape, or `body`."""
        headers = tuple(self.headers.items()) + self._retry_headers()
        if self.body is not None:
            kind = "text/plain" if isinstance(self.body, str | bytes) else "application/json"
            return exchange.wire(self.status, (_bytes(self.body),), kind, headers=headers)
        message = self.message or f"The script answers this request with an error {self.status}."
        return exchange.failure(
            Failure(self.status, message, type=self.type, code=self.code, headers=headers)
        )

    def _retry_headers(self) -> tuple[tuple[str, str], ...]:
        if self.retry_after is None:
            return ()
        return (
            ("retry-after", f"{self.retry_after:g}"),
            ("retry-after-ms", f"{self.retry_after * 1000:g}"),
        )


@dataclass(frozen=True, slots=True)
class Hangup(Answer):
    """The connection closes before a byte of a reply was sent."""

    def wire(self, exchange: Exchange) -> Wire:
        """No bytes at all."""
        return Wire(0, (), ending="hangup")


@dataclass(frozen=True, slots=True)
class CutStream(Answer):
    """A reply that ends too early, after so many bytes of its body or so many of its events."""

    reply: Answer
    after_bytes: int | None = None
    after_events: int | None = None
    """Server-sent events. A plain body has none: it is cut in its middle instead."""
    clean: bool = False
    """False: the connection breaks, which the SDK reports. True: a proxy ends the body properly,
    and only the missing stop record tells that the reply is not whole."""

    def __post_init__(self) -> None:
        if (self.after_bytes is None) == (self.after_events is None):
            raise ValueError("CutStream needs either after_bytes or after_events, and not both")

    def wire(self, exchange: Exchange) -> Wire:
        """The reply's first frames.

        Raises:
            ValueError: The reply is shorter than that, so nothing would be cut.
        """
        whole = self.reply.wire(exchange)
        frames = self._first(whole)
        if self.clean:
            return replace(whole, frames=frames)
        missing = len(whole.body) - sum(map(len, frames))
        return replace(whole, frames=frames, ending="cut", missing=missing)

    def _first(self, whole: Wire) -> tuple[bytes, ...]:
        size, count = len(whole.body), len(whole.frames)
        if (self.after_bytes or 0) > size or (whole.streamed and (self.after_events or 0) > count):
            raise ValueError(f"{self} cuts nothing: the reply has {size} bytes in {count} event(s)")
        if self.after_events is not None and whole.streamed:
            return whole.frames[: self.after_events]
        return (whole.body[: size // 2 if self.after_bytes is None else self.after_bytes],)


@dataclass(frozen=True, slots=True)
class StreamError(Answer):
    """The provider reports an error in the middle of a stream whose status was 200.

    A plain request gets the same error as an ordinary error reply.
    """

    reply: Answer
    after_events: int
    """How many events of the reply come first."""
    status: int = 529
    """Which error it is; a stream says it by the word for this status alone."""
    message: str = "Overloaded"

    def wire(self, exchange: Exchange) -> Wire:
        """The reply's first events and then the error."""
        failure = Failure(self.status, self.message)
        whole = self.reply.wire(exchange)
        if not whole.streamed:
            return exchange.failure(failure)
        error = exchange.protocol.error_frame(failure, exchange.request_id)
        return replace(whole, frames=(*whole.frames[: self.after_events], error))


@dataclass(frozen=True, slots=True)
class Drip(Answer):
    """A reply whose body arrives in pieces of the given sizes, also inside a character.

    A client sees the pieces of a stream exactly as cut here.
    """

    reply: Answer
    sizes: int | Sequence[int] = 1
    """In bytes; a sequence is used over and over."""
    gap: float = 0.0
    """Seconds between two pieces; none by default, so that tests do not sleep."""

    def __post_init__(self) -> None:
        sizes = (self.sizes,) if isinstance(self.sizes, int) else tuple(self.sizes)
        if not sizes or min(sizes) < 1:
            raise ValueError(f"Drip: {self.sizes!r} are no sizes of pieces; each is 1 byte or more")
        object.__setattr__(self, "sizes", sizes)

    def wire(self, exchange: Exchange) -> Wire:
        """The same bytes in other pieces."""
        sizes = (self.sizes,) if isinstance(self.sizes, int) else tuple(self.sizes)
        return replace(self.reply.wire(exchange), sizes=sizes, gap=self.gap)


@dataclass(frozen=True, slots=True)
class RawBody(Answer):
    """A body that is sent as it stands: a recorded reply, or one no provider should send."""

    body: JSON
    """Bytes or text as they stand; any other value as JSON."""
    content_type: str = "application/json"
    """`text/event-stream` sends it in chunks, one for each event."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def wire(self, exchange: Exchange) -> Wire:
        """The body."""
        body, streamed = _bytes(self.body), self.content_type.startswith("text/event-stream")
        frames = tuple(re.split(rb"(?<=\n\n)", body)) if streamed else (body,)
        return exchange.wire(
            self.status,
            tuple(filter(None, frames)),
            self.content_type,
            streamed=streamed,
            headers=tuple(self.headers.items()),
        )


def _bytes(body: JSON) -> bytes:
    if isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else compact(body)).encode("utf-8", "surrogatepass")
