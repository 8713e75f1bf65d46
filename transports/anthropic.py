"""Anthropic Messages.

A message of this API is a list of blocks. Results are blocks of a user's message here; they become
one `tool` message each, and planning puts them together again: what stands next to each other and
is a user's goes out as one message. System text has a place of its own, and on newer models also
places between the messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

from msgspec.structs import replace

from brute.events.events import Settings, ToolSpec
from brute.events.jsontypes import JSON, JSONObject
from brute.events.messages import (
    AnyPart,
    Finish,
    Hosted,
    Json,
    Media,
    Message,
    Origin,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from brute.transports.anthropic_blocks import API, dump_block, input_of, load_block
from brute.transports.anthropic_models import claude, takes_midway, takes_prefill
from brute.transports.anthropic_rules import IMAGES, RULE_BOOK, UNMARKED, marks_in
from brute.transports.anthropic_stream import MessagesReader
from brute.transports.base import MessageTransport, normal_finish, sealed
from brute.transports.models import differ, maker
from brute.transports.plan import Plan
from brute.transports.rules import NAME, SAFE_WORD, Aim, Pattern, Rules, fitting
from brute.transports.shapes import Loss, Received, UnreadableReply
from brute.transports.wire import (
    extras,
    from_data_url,
    image_type,
    is_array,
    is_object,
    is_utf8,
    kind_of,
    objects,
    plain,
    rest,
)

FINISHES: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "compaction": "pause",
    "refusal": "refusal",
}

MAX_TOKENS = 4096
"""`max_tokens` is required; this much every model may give."""
EMPTY_SCHEMA: JSONObject = {"type": "object", "properties": {}}
MAX_MARKS = 4
"""Cache marks that a request may bear."""


# -- the target ----------------------------------------------------------------------------------


def take_reasoning(message: Message, part: Reasoning, aim: Aim) -> Reasoning | None:
    """Thinking goes back to the model that signed it, byte for byte, and to no other."""
    origin = message.origin
    if origin is None or origin.api != API or part.kind == "summary":
        return None
    if (part.signature is None) if part.kind == "thinking" else (part.data is None):
        return None
    here, there = claude(aim.model), claude(origin.model)
    return None if here is not None and there is not None and here != there else part


def is_issuer(origin: Origin, aim: Aim) -> bool:
    """Whether a target is where something came from, as far as both are known.

    Where both models are known, their maker says it: the same models are sold by several.
    """
    here, there = maker(aim.model), maker(origin.model)
    if differ(here, there) or differ(aim.platform, origin.platform):
        return False
    return bool(here and there) or not differ(aim.provider, origin.provider)


def take_media(part: Media) -> Media | None:
    """Images of four types and documents; the type of an image is the one its bytes say."""
    if part.kind not in {"image", "document"}:
        return None
    if part.data is None:
        return _by_reference(part)
    if part.kind == "image":
        said = image_type(part.data, part.media_type)
        if said not in IMAGES or not part.data:
            return None
        return part if said == part.media_type else replace(part, media_type=said)
    if part.media_type == "application/pdf":
        return part if part.data else None
    if (part.media_type or "").startswith("text/") and is_utf8(part.data):
        if part.media_type == "text/plain" and part.extra(API).get("plain"):
            return part
        residual = {**part.extra(API), "plain": True}
        return replace(part, media_type="text/plain", extras={**(part.extras or {}), API: residual})
    return None


def _by_reference(part: Media) -> Media | None:
    """Media by file id or address; a data URL is data, and no address here."""
    if part.file_id:
        return part
    inline = from_data_url(part.url)
    if inline is not None:
        return take_media(replace(part, media_type=inline[0], data=inline[1], url=None))
    known = part.url is not None and part.url.startswith(("https://", "http://"))
    return part if known else None


def carried(part: Media) -> Media:
    """Media as they are loaded again: by one source, with a name only for a document."""
    name = part.name if part.kind == "document" else None
    if part.data is not None:
        return replace(part, name=name, detail=None, url=None, file_id=None)
    if part.file_id is not None:
        return replace(part, name=name, detail=None, url=None, media_type=None)
    return replace(part, name=name, detail=None, media_type=None)


def joins(before: Message, message: Message) -> bool:
    """Whether a message goes on in the wire message before it, both being a user's."""
    x, y = before.extra(API), message.extra(API)
    return x.get("form") != "text" and not (y.keys() - {"cache_control"})


_CACHE = frozenset({"cache_control"})
RULES = Rules(
    api=API,
    ids=Pattern(SAFE_WORD, None, "call"),
    own_ids=Pattern(SAFE_WORD, 64, "call"),
    ids_unique="request",
    names=NAME,
    blank=False,
    speaks={
        "system": frozenset({Text}),
        "user": frozenset({Text, Media}),
        "assistant": frozenset({Text, Reasoning, ToolCall, Hosted}),
    },
    results=frozenset({Text, Json, Media}),
    hints={
        Message: frozenset({"cache_control"}),
        Text: _CACHE,
        Media: _CACHE | {"context", "citations", "plain"},
        Json: _CACHE,
        ToolCall: _CACHE,
        ToolResult: _CACHE,
    },
    hosted=True,
    calls_last=True,
    objects=input_of,
    system="apart",
    user_first=True,
    names_messages=False,
    cites=True,
    prefill=takes_prefill,
    midway=takes_midway,
    issued=is_issuer,
    reasoning=take_reasoning,
    media=take_media,
    carries=carried,
    joins=joins,
    check=RULE_BOOK,
)


class Anthropic(MessageTransport):
    """Anthropic Messages: `client.messages.create(**Anthropic.request(turn))`."""

    api: ClassVar[str] = API
    VERSION: ClassVar[int] = 1
    rules: ClassVar[Rules] = RULES
    reader = MessagesReader
    finishes: ClassVar[Mapping[str, Finish]] = FINISHES

    # -- in --------------------------------------------------------------------------------------

    def wrap(self, message: Any) -> Message:
        """One message of a reply, a request or a transcript as a `Message`."""
        wire: JSONObject = plain(message)
        if not is_object(wire):
            raise UnreadableReply(API, f"a message of type {type(message).__name__}")
        piece = wire if isinstance(wire, Received) else next(self.pieces(wire))
        return sealed(load(piece, piece.origin, piece.marks), piece.finish)

    @classmethod
    def pieces(cls, body: JSONObject) -> Iterator[Received]:
        """The messages in a reply, a request, a transcript, or one message by itself.

        A user's message that holds results falls apart: one message a result.
        """
        if "messages" in body:
            yield from _system_pieces(body.get("system"))
            before: JSON = None
            for message in objects(body["messages"]):
                yield from _fallen_apart(message, before)
                before = message.get("role")
        elif "content" in body or "role" in body:
            if "stop_reason" in body or body.get("type") == "message":
                yield Received(body, _origin(body), _finish(body))
            else:
                yield from _fallen_apart(body, None)
        else:
            raise UnreadableReply(API, f"an object with the keys {sorted(body)[:8]}")

    @classmethod
    def is_event(cls, body: JSONObject) -> bool:
        """Whether a dict is an event of a stream."""
        return kind_of(body) in EVENTS and "role" not in body

    @classmethod
    def is_body(cls, body: JSONObject) -> bool:
        """Whether a dict is a whole message of the model."""
        return body.get("type") == "message" and isinstance(body.get("content"), list)

    @classmethod
    def read_finish(cls, body: JSONObject) -> str | None:
        """The message's word for why it ended."""
        raw = body.get("stop_reason")
        return raw if isinstance(raw, str) and raw else None

    @classmethod
    def read_usage(cls, body: JSONObject) -> Usage | None:
        """The tokens that a message reports."""
        said = body.get("usage")
        return read_usage(said) if is_object(said) else None

    # -- out -------------------------------------------------------------------------------------

    @classmethod
    def dump(cls, message: Message) -> JSONObject:
        """One message for the wire."""
        role = message.role
        x = message.extra(API)
        if x and x.get("form") == "text" and all(type(p) is Text for p in message.parts):
            content: JSON = message.content
        else:
            content = [dump_block(part) for part in message.parts]
        wire = "assistant" if role == "assistant" else "system" if role in SYSTEM else "user"
        out = {"role": x.get("role", wire), "content": content}
        if x:
            out.update((k, v) for k, v in x.items() if k not in MARKS)
            if "cache_control" in x:
                out["content"] = marked(content, x["cache_control"])
        return out

    @classmethod
    def written(cls, planned: Plan, aim: Aim) -> list[JSONObject]:
        """Planned messages for the wire: neighbours of a user are one message there."""
        out: list[JSONObject] = []
        before: Message | None = None
        dump = cls.dump
        for message in planned.messages:
            made = dump(message)
            if made["role"] != "user":
                before = None
            elif before is not None and joins(before, message):
                out[-1]["content"] += made["content"]
                before = message
                continue
            else:
                before = message
            out.append(made)
        return few_marks({"messages": out})["messages"] if planned.hinted else out

    @classmethod
    def system_text(cls, messages: Sequence[Message]) -> str | None:
        """The system text that `dump_all` leaves out, for `system=`; None if there is none."""
        system = cls.plan(messages).system
        return "\n\n".join(text for m in system if (text := m.content)) or None

    @classmethod
    def tool(cls, spec: ToolSpec) -> JSONObject:
        """One tool: of the client, or one that only this API offers."""
        x = dict((spec.extras or {}).get(API, {}))
        if spec.kind not in {"function", "custom"}:
            return {"type": spec.kind, "name": spec.name, **x}
        said = {"description": spec.description} if spec.description is not None else {}
        free = FREE_TEXT if spec.kind == "custom" else EMPTY_SCHEMA
        schema = spec.schema if spec.schema is not None else free
        return {"name": fitting(spec.name), **said, "input_schema": schema, **x}

    @classmethod
    def compose(cls, settings: Settings, planned: Plan, aim: Aim, losses: list[Loss]) -> JSONObject:
        """The arguments of `messages.create`."""
        parameters = dict(settings.parameters or {})
        last_thought_stays_behind(planned, parameters, losses)
        if lacks_thinking(planned.messages, parameters):
            del parameters["thinking"]
            losses.append(Loss(kind="omitted", rule="A23", what=NO_THINKING))
        out: JSONObject = {"model": settings.model.id} if settings.model is not None else {}
        out["max_tokens"] = parameters.pop("max_tokens", None) or MAX_TOKENS
        if "max_tokens" not in (settings.parameters or {}):
            losses.append(Loss(kind="added", rule="A1b", what=f"max_tokens of {MAX_TOKENS:,}"))
        system = _system_param(settings.system, planned.system)
        if system is not None:
            out["system"] = system
        out["messages"] = cls.written(planned, aim)
        if settings.tools:
            out["tools"] = cls.tools(settings.tools, losses)
        if settings.format is not None:
            config: JSONObject = parameters.pop("output_config", None) or {}
            said = {"type": "json_schema", "schema": settings.format}
            out["output_config"] = {**config, "format": said}
        if extra := {key: parameters.pop(key) for key in NOT_ARGUMENTS if key in parameters}:
            parameters["extra_body"] = {**extra, **(parameters.get("extra_body") or {})}
        out.update(parameters)
        if is_object(choice := out.get("tool_choice")) and choice.get("name"):
            out["tool_choice"] = {**choice, "name": fitting(choice["name"])}
        return few_marks(out)


NOT_ARGUMENTS = ("temperature", "top_p", "top_k")
"""Members of the body that the SDK's `create` has no arguments for any more (anthropic 2.14); all
its versions take them in `extra_body`."""
NO_THINKING = "thinking, as the turn whose calls are being answered does not begin with any"
FREE_TEXT: JSONObject = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
"""Arguments of a tool that takes free text; `ToolCall.arguments` of such a call look the same."""


def lacks_thinking(messages: Sequence[Message], parameters: JSONObject) -> bool:
    """Whether thinking cannot be on (A23): the last turn calls, and begins with no thought."""
    setting = parameters.get("thinking")
    if not is_object(setting) or setting.get("type") != "enabled":
        return False
    last = next((m for m in reversed(messages) if m.role == "assistant"), None)
    return last is not None and bool(last.tool_calls) and type(last.parts[0]) is not Reasoning


def last_thought_stays_behind(planned: Plan, parameters: JSONObject, losses: list[Loss]) -> None:
    """Take thinking out of an assistant message at the end while thinking is off (A24)."""
    setting = parameters.get("thinking")
    last = planned.messages[-1] if planned.messages else None
    if last is None or last.role != "assistant" or type(last.parts[-1]) is Hosted:
        return
    if is_object(setting) and setting.get("type") != "disabled":
        return
    kept = tuple(part for part in last.parts if type(part) is not Reasoning)
    if len(kept) < len(last.parts):
        losses.append(Loss(kind="omitted", rule="A24", what="thinking at the end, as it is off"))
        planned.messages[-1:] = [replace(last, parts=kept)] if kept else []


# -- cache marks ---------------------------------------------------------------------------------


def marked(content: JSON, mark: JSON) -> JSON:
    """Content with a cache mark on the last block that may bear one (A21)."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    for index in range(len(blocks) - 1, -1, -1):
        if kind_of(blocks[index]) not in UNMARKED:
            blocks[index] = {**blocks[index], "cache_control": mark}
            return blocks
    return content


def few_marks(body: JSONObject) -> JSONObject:
    """The body with at most four cache marks, the last ones (A20)."""
    marks = sum(1 for _ in marks_in(body))
    if marks <= MAX_MARKS:
        return body
    thinner = _Thinner(marks - MAX_MARKS)
    ordered: JSONObject = {
        k: thinner.thinned(body[k]) for k in ("tools", "system", "messages") if k in body
    }
    return {**body, **ordered}


class _Thinner:
    """Takes so many marks away, the first ones; what it changes is a copy."""

    def __init__(self, surplus: int) -> None:
        self.surplus = surplus

    def thinned(self, value: JSON) -> JSON:
        if self.surplus == 0 or isinstance(value, str):
            return value
        if is_array(value):
            return [self.thinned(item) for item in value]
        if not is_object(value):
            return value
        if "content" in value:
            value = {**value, "content": self.thinned(value["content"])}
        if value.get("cache_control") is not None and self.surplus:
            self.surplus -= 1
            return {k: v for k, v in value.items() if k != "cache_control"}
        return value


SYSTEM = frozenset({"system", "developer"})
MARKS = frozenset({"form", "apart", "place", "role", "cache_control"})
EVENTS = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
        "error",
        "text",
        "input_json",
        "citation",
        "thinking",
        "signature",
    }
)


# -- messages in ---------------------------------------------------------------------------------


def load(message: JSONObject, origin: Origin, marks: JSONObject) -> Message:
    """One message of the wire, or one piece of it."""
    wire = str(message.get("role") or "assistant")
    role: Role = cast(Role, wire) if wire in {"assistant", "user", "system"} else "user"
    content = message.get("content")
    residual = {
        **marks,
        **rest(message, REPLY if role == "assistant" else frozenset({"role", "content"})),
    }
    parts: tuple[AnyPart, ...]
    if isinstance(content, str):
        parts = (Text(text=content),) if content else ()
        if marks.get("place") != "top":
            residual["form"] = "text"
    else:
        blocks: list[JSON] = content if is_array(content) else [content] if content else []
        parts = tuple(map(load_block, blocks))
        if marks.get("place") == "top":
            residual["form"] = "list"
    if role == "system" and "place" not in residual:
        residual["place"] = "inline"
    if role == "user" and len(parts) == 1 and type(parts[0]) is ToolResult:
        role = "tool"
    return Message(role=role, parts=parts, extras=extras(API, residual), origin=origin)


REPLY = frozenset(
    {
        "role",
        "content",
        "id",
        "type",
        "model",
        "stop_reason",
        "stop_sequence",
        "stop_details",
        "usage",
        "container",
        "context_management",
    }
)
"""Members of a reply that no message of a request has."""


def _system_pieces(system: JSON) -> Iterator[Received]:
    if system is not None:
        wire = {"role": "system", "content": system}
        yield Received(wire, Origin(api=API), marks={"place": "top"})


def _fallen_apart(message: JSONObject, before: JSON) -> Iterator[Received]:
    """The pieces of a message of a request; each knows whether a new message starts with it."""
    role, content = message.get("role"), message.get("content")
    marks: JSONObject = {"apart": True} if role == "user" == before else {}
    origin = Origin(api=API)
    blocks = content if is_array(content) else []
    results = [is_object(b) and b.get("type") == "tool_result" for b in blocks]
    if role != "user" or not any(results):
        yield Received(message, origin, marks=marks)
        return
    run: list[JSON] = []
    others = {k: v for k, v in message.items() if k not in {"role", "content"}}
    for block, is_result in zip([*blocks, None], [*results, True], strict=True):
        if is_result and run:
            yield Received({"role": "user", "content": run, **others}, origin, marks=marks)
            run, marks, others = [], {}, {}
        if is_result and block is not None:
            yield Received({"role": "user", "content": [block], **others}, origin, marks=marks)
            marks, others = {}, {}
        elif not is_result:
            run.append(block)


def _origin(body: JSONObject) -> Origin:
    model, id = body.get("model"), str(body.get("id") or "")
    model = model if isinstance(model, str) and model else None
    platform = next((p for mark, p in PLATFORMS.items() if id.startswith(mark)), None)
    provider = "anthropic" if claude(model) is not None else None
    return Origin(api=API, provider=provider, platform=platform, model=model)


PLATFORMS = {"msg_bdrk_": "bedrock", "msg_vrtx_": "vertex"}


def _finish(body: JSONObject) -> Finish:
    raw = body.get("stop_reason")
    word = FINISHES.get(str(raw), "other") if raw else "stop"
    called = any(b.get("type") == "tool_use" for b in objects(body.get("content")))
    return normal_finish(word, called)


def read_usage(said: JSONObject) -> Usage:
    """Tokens; at this API input excludes what was read from or written to the cache."""

    def count(key: str, at: JSON = said) -> int:
        value = at.get(key) if is_object(at) else None
        return int(value) if isinstance(value, (int, float)) else 0

    read, write = count("cache_read_input_tokens"), count("cache_creation_input_tokens")
    details = said.get("output_tokens_details")
    return Usage(
        input=count("input_tokens") + read + write,
        output=count("output_tokens"),
        reasoning=count("thinking_tokens", details),
        cache_read=read,
        cache_write=write,
        extras=extras(API, {k: v for k, v in rest(said, _USAGE).items() if v}),
    )


_USAGE = frozenset(
    {
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens_details",
    }
)


# -- requests ------------------------------------------------------------------------------------


def _system_param(first: str | None, messages: Sequence[Message]) -> JSON:
    """The `system` argument: a text where one text is all there is, else blocks."""
    parts = [part for message in messages for part in message.parts]
    if first:
        parts.insert(0, Text(text=first))
    if not parts:
        return None
    form = messages[0].extra(API).get("form") if messages else None
    only = parts[0]
    if len(parts) == 1 and type(only) is Text and form != "list" and not only.extra(API):
        return only.text
    return [dump_block(part) for part in parts]
