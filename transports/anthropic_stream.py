"""The stream of Anthropic Messages: events to one message. Blocks are keyed by their index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from brute.events.jsontypes import JSON, JSONObject
from brute.transports.shapes import Delta
from brute.transports.stream import StreamReader, error_in
from brute.transports.wire import is_object, kind_of, objects, read_json, text_in

if TYPE_CHECKING:
    from brute.transports.base import MessageTransport

CALLS = frozenset({"tool_use"})


class MessagesReader(StreamReader):
    """Reads the events of a message; those that only an SDK's stream helper makes are passed by."""

    def __init__(self, transport: type[MessageTransport]) -> None:
        super().__init__(transport)
        self._message: JSONObject = {"type": "message", "role": "assistant"}
        self._blocks: dict[int, JSONObject] = {}
        self._inputs: dict[int, str] = {}
        self._usage: JSONObject = {}
        self._stopped = False
        self._events_by_type: dict[str, Callable[[JSONObject], Iterator[Delta]]] = {
            "message_start": self._start,
            "content_block_start": self._start_block,
            "content_block_delta": self._delta,
            "message_delta": self._end,
            "message_stop": self._stop,
        }

    def take(self, event: JSONObject) -> Iterator[Delta]:
        """Take one event in; raises `ProviderError` for one that reports an error."""
        kind = event.get("type")
        if kind == "error" or "error" in event:
            error = error_in(self.transport.api, event)
            if error is not None:
                raise error
        taken = self._events_by_type.get(str(kind))
        return taken(event) if taken is not None else iter(())

    @property
    def done(self) -> bool:
        """Whether the message gave a reason for its end, or was stopped."""
        return self.ended or self._stopped or bool(self._message.get("stop_reason"))

    def body(self) -> JSONObject:
        """The message that the events add up to."""
        content = [self._block(index) for index in sorted(self._blocks)]
        out = {**self._message, "content": content}
        return {**out, "usage": self._usage} if self._usage else out

    # -- events ----------------------------------------------------------------------------------

    def _start(self, event: JSONObject) -> Iterator[Delta]:
        message = event.get("message")
        if is_object(message):
            self._message.update((k, v) for k, v in message.items() if k != "content")
            self._count(message.get("usage"))
            for index, block in enumerate(objects(message.get("content"))):
                self._blocks[index] = dict(block)
        return iter(())

    def _start_block(self, event: JSONObject) -> Iterator[Delta]:
        index, block = event.get("index"), event.get("content_block")
        if isinstance(index, int) and is_object(block):
            self._blocks[index] = dict(block)
            if kind_of(block) in CALLS:
                yield Delta(call=self._place(index), name=str(block.get("name") or ""))
            elif isinstance(text := block.get("text"), str) and text:
                yield Delta(text=text)

    def _delta(self, event: JSONObject) -> Iterator[Delta]:
        index, delta = event.get("index"), event.get("delta")
        if not isinstance(index, int) or not is_object(delta):
            return
        block = self._blocks.setdefault(index, {"type": OPENS.get(str(delta.get("type")))})
        taken = DELTAS.get(str(delta.get("type")))
        if taken is not None:
            yield from taken(block, delta)
        elif delta.get("type") == "input_json_delta":
            piece = text_in(delta, "partial_json")
            self._inputs[index] = self._inputs.get(index, "") + piece
            if kind_of(block) in CALLS and piece:
                yield Delta(call=self._place(index), arguments=piece)

    def _end(self, event: JSONObject) -> Iterator[Delta]:
        delta = event.get("delta")
        if is_object(delta):
            self._message.update((k, v) for k, v in delta.items() if v is not None)
        for key, value in event.items():
            if key not in {"type", "delta", "usage"} and value is not None:
                self._message[key] = value
        self._count(event.get("usage"))
        return iter(())

    def _stop(self, event: JSONObject) -> Iterator[Delta]:
        self._stopped = True
        return iter(())

    # -- how -------------------------------------------------------------------------------------

    def _count(self, usage: JSON) -> None:
        # Usage is cumulative: what comes later and is not null replaces what came before.
        if is_object(usage):
            self._usage.update((k, v) for k, v in usage.items() if v is not None)

    def _place(self, index: int) -> int:
        """Which of the calls this is."""
        earlier = (i for i, b in self._blocks.items() if i < index and kind_of(b) in CALLS)
        return sum(1 for _ in earlier)

    def _block(self, index: int) -> JSONObject:
        block, text = self._blocks[index], self._inputs.get(index)
        if not text:
            return block
        value = read_json(text)
        if value is None and text.strip() != "null":
            return {**block, "input": None, "$text": text}
        return {**block, "input": value}


# -- deltas --------------------------------------------------------------------------------------


def _text(block: JSONObject, delta: JSONObject) -> Iterator[Delta]:
    text = text_in(delta, "text")
    block["text"] = text_in(block, "text") + text
    yield Delta(text=text)


def _thinking(block: JSONObject, delta: JSONObject) -> Iterator[Delta]:
    text = text_in(delta, "thinking")
    block["thinking"] = text_in(block, "thinking") + text
    yield Delta(reasoning=text)


def _signature(block: JSONObject, delta: JSONObject) -> Iterator[Delta]:
    # Gateways send the signature in one piece, or empty first.
    block["signature"] = delta.get("signature") or block.get("signature")
    return iter(())


def _citation(block: JSONObject, delta: JSONObject) -> Iterator[Delta]:
    block["citations"] = [*objects(block.get("citations")), delta.get("citation")]
    return iter(())


def _compaction(block: JSONObject, delta: JSONObject) -> Iterator[Delta]:
    for key, value in delta.items():
        if key == "content" and isinstance(value, str):
            block[key] = text_in(block, key) + value
        elif key != "type" and value is not None:
            block[key] = value
    return iter(())


OPENS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "tool_use"}
"""What a block is that a gateway did not open."""

DELTAS: dict[str, Callable[[JSONObject, JSONObject], Iterator[Delta]]] = {
    "text_delta": _text,
    "thinking_delta": _thinking,
    "signature_delta": _signature,
    "citations_delta": _citation,
    "compaction_delta": _compaction,
}
