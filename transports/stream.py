"""Reading streams: chunks in, however they are cut; deltas and one reply out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from brute.events.jsontypes import JSON, JSONObject
from brute.transports.shapes import Delta, ProviderError, Received, Reply, UnreadableReply
from brute.transports.sse import Frame, Frames
from brute.transports.wire import is_array, is_object, plain, read_json

if TYPE_CHECKING:
    from brute.transports.base import MessageTransport


class StreamReader:
    """Reads one streamed reply; holds no socket and no clock.

    `feed` takes an SDK's event, a dict, a recorded `{event, data}` frame, or bytes cut anywhere.
    A transport says what one event means (`take`) and what whole response the events add up to
    (`body`); from there a stream goes the way of any other reply.
    """

    def __init__(self, transport: type[MessageTransport]) -> None:
        self.transport = transport
        self._frames: Frames | None = None
        self._json: bytearray | None = None
        self._whole: JSONObject | None = None
        self.taken = 0
        """How many events came."""
        self.ended = False
        """Whether a sign of the end came that stands outside the events (`[DONE]`, a snapshot)."""

    # -- what a transport says -------------------------------------------------------------------

    def take(self, event: JSONObject) -> Iterable[Delta]:
        """Take one event in; the deltas it brings."""
        raise NotImplementedError

    def body(self) -> JSONObject:
        """The response that the events so far add up to, as if it had not been streamed."""
        raise NotImplementedError

    @property
    def done(self) -> bool:
        """Whether the provider has said that the reply is whole."""
        return self.ended

    # -- the surface -----------------------------------------------------------------------------

    def feed(self, chunk: object) -> list[Delta]:
        """Take in what arrived; the deltas it completes.

        Raises `ProviderError` when the stream says that it broke; `cut` then gives what had come.
        """
        return [delta for event in self._events(plain(chunk)) for delta in self._take(event)]

    def finish(self) -> Reply:
        """The reply, after the last chunk; an interrupted one if the stream never said its end.

        Raises `ProviderError` if what was fed was an error, `UnreadableReply` if it was no reply.
        """
        self._drain()
        return self._reply(complete=self.done)

    def cut(self, error: BaseException | None = None) -> Reply:
        """What had come of a reply whose stream broke; its calls are never run."""
        return self._reply(complete=False)

    def whole(self) -> tuple[JSONObject, bool]:
        """The response that came, and whether it is whole."""
        self._drain()
        return self._said(), self.done

    def received(self) -> Iterator[Received]:
        """The messages of the reply, after the last chunk."""
        body, complete = self.whole()
        if not self.taken:
            return
        for piece in self.transport.pieces(body):
            if not complete:
                piece.finish = "interrupted"
            yield piece

    # -- how -------------------------------------------------------------------------------------

    def _said(self) -> JSONObject:
        return self._whole if self._whole is not None else self.body()

    def _reply(self, complete: bool) -> Reply:
        return self.transport.read(self._said(), complete=complete)

    def _take(self, event: JSONObject) -> Iterable[Delta]:
        self.taken += 1
        if self.transport.is_body(event):  # a snapshot: it stands for all that came
            self._whole, self.ended = event, True
            return ()
        return self.take(event)

    def _events(self, chunk: JSON) -> Iterator[JSONObject]:
        if isinstance(chunk, str):
            chunk = chunk.encode("utf-8", "surrogatepass")
        if isinstance(chunk, (bytes, bytearray)):
            yield from self._from_bytes(bytes(chunk))
        elif is_array(chunk):
            for item in chunk:
                yield from self._events(plain(item))
        elif is_object(chunk):
            yield from self._from_object(chunk)
        elif chunk is not None:
            raise UnreadableReply(self.transport.api, f"an event of type {type(chunk).__name__}")

    def _from_object(self, chunk: JSONObject) -> Iterator[JSONObject]:
        # A recorded frame. What its data says counts, not its name: AWS names every frame `chunk`.
        aws = chunk.get("chunk")
        if is_object(aws) and "bytes" in aws:  # an event of boto3
            yield from self._from_data(aws["bytes"])
            return
        if "data" in chunk and "type" not in chunk and "choices" not in chunk:
            yield from self._from_data(chunk["data"])
        else:
            yield chunk

    def _from_data(self, data: JSON) -> Iterator[JSONObject]:
        if isinstance(data, (bytes, bytearray)):
            data = data.decode("utf-8", "replace")
        if isinstance(data, str):
            if data.strip() == "[DONE]":
                self.ended = True
                return
            data = read_json(data)
        if is_object(data):
            yield data

    def _from_bytes(self, data: bytes) -> Iterator[JSONObject]:
        if self._json is None and self._frames is None:
            if not data.strip():
                return
            if data.lstrip()[:1] in (b"{", b"["):  # a body that is not streamed after all
                self._json = bytearray()
            else:
                self._frames = Frames()
        if self._json is not None:
            self._json += data
        elif self._frames is not None:
            yield from self._from_frames(self._frames.feed(data))

    def _from_frames(self, frames: Iterable[Frame]) -> Iterator[JSONObject]:
        for frame in frames:
            yield from self._from_data(frame.data)

    def _drain(self) -> None:
        """What stood unfinished when the bytes ended."""
        if self._frames is not None:
            for event in self._from_frames(self._frames.close()):
                for _ in self._take(event):
                    pass
        if self._json is not None:
            text, self._json = bytes(self._json), None
            for value in _json_values(text):
                for event in self._events(value):
                    for _ in self._take(event):
                        pass


def _json_values(text: bytes) -> list[JSON]:
    """The JSON values in a text: one, or one a line."""
    whole = read_json(text)
    if whole is not None:
        return [whole]
    return [value for line in text.splitlines() if (value := read_json(line)) is not None]


def error_in(api: str, body: JSONObject) -> ProviderError | None:
    """The error that a body or an event reports, or None.

    `{"error": {"type", "message", "code"}}` at OpenAI and its like, `{"type": "error", "error":
    {…}}` at Anthropic; gateways also say `{"error": "text"}`.
    """
    error: Any = body.get("error")
    if not error:
        return None
    if not is_object(error):
        return ProviderError(api, "error", str(error), _status(body.get("status")), body)
    code = error.get("code")
    kind = error.get("type") or error.get("status") or code or "error"
    status = _status(error.get("status_code")) or _status(code) or _status(body.get("status"))
    return ProviderError(api, str(kind), str(error.get("message") or error), status, body)


def _status(value: object) -> int | None:
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    return value if isinstance(value, int) and 100 <= value < 600 else None
