"""The stream of Chat Completions: chunks to one completion.

Compatible servers disagree about nearly everything in it; what is assumed is only that the pieces
of one thing come in order. A call is keyed by its choice and index, its id and name are set once,
its arguments are joined before anybody reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from brute.events.jsontypes import JSON, JSONObject
from brute.transports.shapes import Delta
from brute.transports.stream import StreamReader, error_in
from brute.transports.wire import (
    from_base64,
    is_array,
    is_object,
    json_text,
    kind_of,
    objects,
    text_in,
    to_base64,
)

if TYPE_CHECKING:
    from brute.transports.base import MessageTransport


class ChatReader(StreamReader):
    """Reads the chunks of a completion, and the events of `chat.completions.stream()`."""

    def __init__(self, transport: type[MessageTransport]) -> None:
        super().__init__(transport)
        self._envelope: JSONObject = {}
        self._choices: dict[int, _Choice] = {}

    def take(self, event: JSONObject) -> Iterator[Delta]:
        """Take one chunk in; raises `ProviderError` for one that reports an error."""
        if "chunk" in event and is_object(event["chunk"]):  # an event of the SDK's stream helper
            event = event["chunk"]
        error = error_in(self.transport.api, event)
        if error is not None:
            raise error
        for key, value in event.items():
            if key != "choices" and value not in (None, "", 0):
                self._envelope[key] = value
        for said in objects(event.get("choices")):
            index = said.get("index")
            index = index if isinstance(index, int) else 0
            choice = self._choices.setdefault(index, _Choice(index))
            yield from choice.take(said)

    @property
    def done(self) -> bool:
        """Whether every choice has given a reason for its end, or `[DONE]` came."""
        choices = self._choices.values()
        return self.ended or (bool(choices) and all(c.finish for c in choices))

    def body(self) -> JSONObject:
        """The completion that the chunks add up to."""
        choices = [self._choices[index].body() for index in sorted(self._choices)]
        return {**self._envelope, "object": "chat.completion", "choices": choices}


SAYS = frozenset({"refusal", "audio", "function_call"})
"""What a message may say instead of content and calls."""


class _Choice:
    def __init__(self, index: int) -> None:
        self.index = index
        self.finish: str | None = None
        self.rest: JSONObject = {}
        self.message: JSONObject = {"role": "assistant"}
        self.calls: list[_Call] = []
        self.details: dict[object, JSONObject] = {}

    def take(self, said: JSONObject) -> Iterator[Delta]:
        self.finish = said.get("finish_reason") or self.finish
        for key, value in said.items():
            if key not in {"index", "delta", "finish_reason"} and value is not None:
                self.rest[key] = value
        delta = said.get("delta")
        if not is_object(delta):
            return
        yield from self._printed(delta)
        for key, value in delta.items():
            if key == "tool_calls":
                for piece in objects(value):
                    yield self._take_call(piece)
            elif key == "reasoning_details":
                for piece in objects(value):
                    self._take_detail(piece)
            else:
                self._take_member(key, value)

    @staticmethod
    def _printed(delta: JSONObject) -> Iterator[Delta]:
        """What of a delta is worth printing, once even where a gateway says it twice."""
        for key in ("reasoning_content", "reasoning"):
            said = delta.get(key)
            if isinstance(said, str) and said:
                yield Delta(reasoning=said)
                break
        content, refusal = delta.get("content"), delta.get("refusal")
        if is_array(content):
            for block in objects(cast(JSON, content)):
                text = block.get("text")
                if isinstance(text, str) and text:
                    yield Delta(text=text)
        for said in (content, refusal):
            if isinstance(said, str) and said:
                yield Delta(text=said)

    # -- members ---------------------------------------------------------------------------------

    def _take_member(self, key: str, value: JSON) -> None:
        held = self.message.get(key)
        if key == "role":
            self.message["role"] = value or "assistant"
        elif value is None:
            self.message.setdefault(key, None)
        elif held is None:
            self.message[key] = value
        elif key == "audio" and is_object(value):
            self.message[key] = _joined_audio(held, value)
        elif is_array(held) or is_array(value):
            self.message[key] = _joined_blocks(_as_blocks(held), _as_blocks(value))
        elif isinstance(held, str) and isinstance(value, str):
            self.message[key] = held + value
        elif is_object(held) and is_object(value):
            self.message[key] = _joined_object(held, value)
        else:
            self.message[key] = value

    def _take_detail(self, piece: JSONObject) -> None:
        key: object = (str(piece.get("index")), kind_of(piece))
        held = self.details.get(key)
        if held is not None and piece.get("id") and held.get("id") not in (None, piece["id"]):
            key = (key, str(piece["id"]))
            held = self.details.get(key)
        if held is None:
            self.details[key] = dict(piece)
            return
        for name, value in piece.items():
            if name in {"text", "summary", "data"} and isinstance(value, str):
                held[name] = text_in(held, name) + value
            elif value is not None:
                held[name] = value

    # -- calls -----------------------------------------------------------------------------------

    def _take_call(self, piece: JSONObject) -> Delta:
        call = self._call_of(piece)
        arguments = call.take(piece)
        place = self.calls.index(call)
        return Delta(call=place, name=call.new_name(), arguments=arguments)

    def _call_of(self, piece: JSONObject) -> _Call:
        """The call that a piece belongs to.

        A new id, or another name, under a known index opens a call; so does an id or a name
        without an index. A piece with nothing but arguments continues the last call opened; if
        several are open that is a guess, and the call is not to be run.
        """
        id, name, index = piece.get("id") or None, _name_in(piece), piece.get("index")
        if not isinstance(index, int) or index < 0:
            index = None
        same = [c for c in self.calls if index is not None and c.index == index]
        if same and not same[-1].is_other(id, name):
            return same[-1]
        known = [c for c in self.calls if id is not None and c.id == id]
        if known:
            return known[-1]
        if id is None and name is None and self.calls and not same:
            guessed = self.calls[-1]
            guessed.guessed = guessed.guessed or len(self.calls) > 1
            return guessed
        self.calls.append(_Call(index))
        return self.calls[-1]

    def body(self) -> JSONObject:
        message = dict(self.message)
        if self.calls:
            known = all(c.index is not None for c in self.calls)
            calls = sorted(self.calls, key=lambda c: c.index or 0) if known else self.calls
            message["tool_calls"] = [call.body() for call in calls]
        if self.details:
            message["reasoning_details"] = list(self.details.values())
        silent = message.get("content") is None and not message.keys() & SAYS
        if self.finish is None and not self.calls and silent:
            message["content"] = ""  # cut while it was thinking: null would be refused (rule C4)
        return {**self.rest, "index": self.index, "message": message, "finish_reason": self.finish}


class _Call:
    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id: str | None = None
        self.name: str | None = None
        self.members: JSONObject = {}
        self.inner: JSONObject = {}
        self.kind = "function"
        self.text = ""
        self.guessed = False
        self._told = False

    def is_other(self, id: str | None, name: str | None) -> bool:
        """Whether a piece under this call's index is the start of another call."""
        if id is not None and self.id is not None:
            return id != self.id
        return id is None and name is not None and self.name is not None and name != self.name

    def take(self, piece: JSONObject) -> str:
        self.id = self.id or piece.get("id") or None
        arguments = ""
        for key, value in piece.items():
            if key in {"function", "custom"} and is_object(value):
                arguments += self._take_inner(key, value)
            elif key not in {"index", "id"} and value:
                self.members[key] = value
        return arguments

    def _take_inner(self, kind: str, said: JSONObject) -> str:
        text = ""
        for key, value in said.items():
            if key in {"arguments", "input"}:
                text = (
                    value if isinstance(value, str) else "" if value is None else json_text(value)
                )
            elif key == "name":
                self.name = self.name or value or None
            elif value is not None:
                self.inner[key] = value
        if kind == "custom" and (said.get("name") or text):
            self.kind = "custom"
        self.text += text
        return text

    def new_name(self) -> str:
        """The name, once."""
        if self._told or self.name is None:
            return ""
        self._told = True
        return self.name

    def body(self) -> JSONObject:
        word = "input" if self.kind == "custom" else "arguments"
        inner = {"name": self.name or "", word: self.text, **self.inner}
        out: JSONObject = {"id": self.id} if self.id is not None else {}
        out |= {"type": self.kind, **self.members, self.kind: inner}
        if self.guessed:
            out["guessed"] = True
        return out


def _name_in(piece: JSONObject) -> str | None:
    for key in ("function", "custom"):
        said = piece.get(key)
        if is_object(said) and said.get("name"):
            return str(said["name"])
    return None


# -- joining -------------------------------------------------------------------------------------


def _joined_audio(held: JSON, value: JSONObject) -> JSONObject:
    """Audio in pieces: each is base64 by itself, so the bytes are joined and not the texts."""
    out = _joined_object(held, {k: v for k, v in value.items() if k != "data"})
    if "data" in value:
        pieces = [from_base64(held.get("data") or ""), from_base64(value["data"] or "")]
        if None in pieces:
            out["data"] = (held.get("data") or "") + (value["data"] or "")
        else:
            out["data"] = to_base64(b"".join(cast("list[bytes]", pieces)))
    return out


def _joined_object(held: JSONObject, value: JSONObject) -> JSONObject:
    out = dict(held)
    for key, piece in value.items():
        if key in {"arguments", "transcript"} and isinstance(piece, str):
            out[key] = (out.get(key) or "") + piece
        elif piece is not None and (piece != "" or key not in out):
            out[key] = piece
    return out


def _as_blocks(value: JSON) -> list[Any]:
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    return list(value) if is_array(value) else [value]


def _joined_blocks(held: list[Any], new: list[Any]) -> list[Any]:
    """Two lists of blocks; a text or a thought that goes on is one block."""
    out = list(held)
    for block in new:
        last = out[-1] if out else None
        if is_object(last) and is_object(block) and _goes_on(last, block):
            out[-1] = {**last, **block, **_joint(last, block)}
        else:
            out.append(block)
    return out


def _goes_on(last: JSONObject, block: JSONObject) -> bool:
    if last.get("type") != block.get("type") or last.get("closed") or last.get("signature"):
        return False
    key = block.get("type")
    return key in {"text", "thinking"} and type(last.get(key)) is type(block.get(key))


def _joint(last: JSONObject, block: JSONObject) -> JSONObject:
    key = str(block["type"])
    if isinstance(block[key], str):
        return {key: last[key] + block[key]}
    if is_array(block[key]):
        return {key: _joined_blocks(last[key], block[key])}
    return {}
