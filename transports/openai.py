"""OpenAI Chat Completions, and everything that speaks it.

A message of this API says its things in separate members: reasoning (in dialects), content,
refusal, calls. They become ordered parts; what the parts do not say (whether content was a text,
a list, null or absent; which member reasoning came in) is residual and goes back as it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from msgspec.structs import replace

from brute.events.events import Settings, ToolSpec
from brute.events.jsontypes import JSON, JSONObject
from brute.events.messages import (
    Finish,
    Json,
    Media,
    Message,
    Origin,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from brute.transports.base import MessageTransport, normal_finish, sealed
from brute.transports.models import differ, maker
from brute.transports.openai_blocks import API, audio_format
from brute.transports.openai_dump import write, write_one
from brute.transports.openai_load import load
from brute.transports.openai_rules import RULE_BOOK
from brute.transports.openai_stream import ChatReader
from brute.transports.plan import Plan
from brute.transports.rules import NAME, Aim, Pattern, Rules, fitting
from brute.transports.shapes import Loss, Received, UnreadableReply
from brute.transports.wire import (
    extras,
    image_type,
    is_object,
    objects,
    plain,
    rest,
)

FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "refusal",
    "error": "error",
}

NOT_SENT_BACK = frozenset({"provider_metadata", "channel", "parsed"})
"""Members of a reply that no request has."""

# -- the target ----------------------------------------------------------------------------------


def take_reasoning(message: Message, part: Reasoning, aim: Aim) -> Reasoning | None:
    """Reasoning goes back to the API, and the maker of models, that it came from.

    It has no place of its own here. A dialect's member is used when the reasoning came in one, or
    when the profile of the target names one.
    """
    origin = message.origin
    if origin is None or origin.api != API:
        return None
    if part.extra(API):
        return part
    field = aim.profile.get("reasoning_field")
    return replace(part, extras={API: {"fields": [field]}}) if field and part.text else None


def is_issuer(origin: Origin, aim: Aim) -> bool:
    """Whether a target is where something came from, as far as both are known.

    Many speak this API; what tells them apart is the maker of the model.
    """
    return not (
        differ(maker(aim.model), maker(origin.model))
        or differ(aim.provider, origin.provider)
        or differ(aim.platform, origin.platform)
    )


def take_media(part: Media) -> Media | None:
    """Images by data or URL, audio as wav or mp3, files by data with a name, or by id."""
    if part.kind == "image":
        return _typed(part, image_type(part.data, part.media_type)) if part.data else _by_url(part)
    if part.kind == "audio":
        return part if part.data and audio_format(part.media_type) in {"wav", "mp3"} else None
    if part.kind == "document" and part.data:
        named = part if part.name is not None else replace(part, name="document.pdf")
        return _typed(named, part.media_type or "application/octet-stream")
    return part if part.kind == "document" and part.file_id and part.data is None else None


def _by_url(part: Media) -> Media | None:
    known = part.url is not None and part.url.startswith(("https://", "http://", "data:"))
    return part if known and part.data is None else None


def _typed(part: Media, media_type: str | None) -> Media | None:
    if media_type is None or media_type == part.media_type:
        return part if media_type else None
    return replace(part, media_type=media_type)


def lasts(part: Media, aim: Aim) -> bool:
    """Whether the API still has an audio that it spoke."""
    until = part.extra(API).get("audio", {}).get("expires_at")
    return aim.now is None or not isinstance(until, (int, float)) or until > aim.now


def carried(part: Media) -> Media:
    """Media as they are loaded again: an image has no name, a file no detail."""
    if part.extra(API).keys() & {"as", "audio"}:
        return part  # a block of the API's own, which carries what it carried
    if part.kind == "audio":
        return replace(
            part,
            media_type=f"audio/{audio_format(part.media_type)}",
            name=None,
            detail=None,
            url=None,
            file_id=None,
        )
    if part.kind == "document":
        return replace(
            part,
            detail=None,
            url=None,
            media_type=part.media_type if part.data is not None else None,
        )
    part = replace(part, name=None, file_id=None)
    return replace(part, url=None) if part.data is not None else replace(part, media_type=None)


_HINTS = frozenset({"cache_control", "prompt_cache_breakpoint"})
RULES = Rules(
    api=API,
    own_ids=Pattern(".", 64, "call"),
    names=NAME,
    speaks={
        "system": frozenset({Text}),
        "user": frozenset({Text, Media}),
        "assistant": frozenset({Text, Refusal, ToolCall, Reasoning, Media}),
    },
    results=frozenset({Text, Json}),
    hints={
        Message: frozenset({"prefix"}),
        Text: _HINTS,
        Media: _HINTS,
        ToolResult: frozenset({"form"}),
    },
    flags_errors=False,
    passes_over=frozenset({Reasoning}),
    cites=True,
    orders=(Reasoning, Text, Refusal, ToolCall),
    joins_results=True,
    issued=is_issuer,
    reasoning=take_reasoning,
    media=take_media,
    lasts=lasts,
    carries=carried,
    check=RULE_BOOK,
)

PROFILES: dict[str, JSONObject] = {
    "deepseek": {"reasoning_field": "reasoning_content", "reasoning_always": True},
    "ollama": {"null_content": False},
    "azure": {"id_limit": 40},
}


class OpenAI(MessageTransport):
    """OpenAI Chat Completions: `client.chat.completions.create(**OpenAI.request(turn))`."""

    api: ClassVar[str] = API
    VERSION: ClassVar[int] = 1
    rules: ClassVar[Rules] = RULES
    reader = ChatReader
    finishes: ClassVar[Mapping[str, Finish]] = FINISHES

    # -- in --------------------------------------------------------------------------------------

    def wrap(self, message: Any) -> Message:
        """One message of a completion, a request or a transcript as a `Message`."""
        wire: JSONObject = plain(message)
        if not is_object(wire):
            raise UnreadableReply(API, f"a message of type {type(message).__name__}")
        origin = wire.origin if isinstance(wire, Received) else Origin(api=API)
        finish = wire.finish if isinstance(wire, Received) else None
        made = load(wire, origin) if self.sent else load(as_sent(wire), origin, spoken=True)
        return sealed(made, finish)

    @classmethod
    def pieces(cls, body: JSONObject) -> Iterator[Received]:
        """The messages in a completion, a request, a transcript, or one message by itself."""
        if "choices" in body:
            origin = Origin(api=API, platform=_platform(body), model=_name(body.get("model")))
            for choice in objects(body["choices"]):
                message = choice.get("message")
                if is_object(message):
                    yield Received(message, origin, _finish(choice, message))
        elif "messages" in body:
            for message in objects(body["messages"]):
                yield Received(message, Origin(api=API))
        elif body.keys() & {"role", "content", "tool_calls", "refusal"}:
            yield Received(body, Origin(api=API))
        else:
            raise UnreadableReply(API, f"an object with the keys {sorted(body)[:8]}")

    @classmethod
    def is_event(cls, body: JSONObject) -> bool:
        """Whether a dict is a chunk of a stream."""
        if body.get("object") == "chat.completion.chunk" or body.get("type") == "chunk":
            return True
        if str(body.get("type", "")).endswith((".delta", ".done")):
            return True
        if body.get("choices") == [] and body.get("object") == "":
            return True  # Azure's first chunk: what its filter found in the prompt, and no choice
        return any("delta" in choice for choice in objects(body.get("choices")))

    @classmethod
    def is_body(cls, body: JSONObject) -> bool:
        """Whether a dict is a whole completion."""
        choices = objects(body.get("choices"))
        return any(is_object(c.get("message")) and "delta" not in c for c in choices)

    @classmethod
    def read_finish(cls, body: JSONObject) -> str | None:
        """The first choice's word for why it ended."""
        choices = objects(body.get("choices"))
        return _name(choices[0].get("finish_reason")) if choices else None

    @classmethod
    def read_usage(cls, body: JSONObject) -> Usage | None:
        """The tokens that a completion reports."""
        said = body.get("usage")
        return read_usage(said) if is_object(said) else None

    # -- out -------------------------------------------------------------------------------------

    @classmethod
    def dump(cls, message: Message) -> JSONObject | list[JSONObject]:
        """One message for the wire; a list for a tool message with several results."""
        if message.role != "tool":
            return write_one(message)
        out = write(message)
        return out[0] if len(out) == 1 else out

    @classmethod
    def written(cls, planned: Plan, aim: Aim) -> list[JSONObject]:
        """Planned messages for the wire, in the dialect of the target's profile."""
        out = super().written(planned, aim)
        return [_in_dialect(m, aim.profile) for m in out] if aim.profile else out

    @classmethod
    def aim(cls, **options: Any) -> Aim:
        """What the options say about the target; `profile` is a name or the details."""
        profile = options.get("profile")
        if isinstance(profile, str):
            options["profile"] = PROFILES.get(profile, {})
        aim = super().aim(**options)
        rules = aim.rules
        if aim.profile.get("id_limit"):
            rules = replace(rules, own_ids=Pattern(".", aim.profile["id_limit"], "call"))
        if aim.profile.get("reasoning_field"):
            rules = replace(rules, passes_over=frozenset[type[Part]]())
        return aim if rules is aim.rules else replace(aim, rules=rules)

    @classmethod
    def tool(cls, spec: ToolSpec) -> JSONObject:
        """One tool: a function, a custom tool, or what only this API offers."""
        x = dict((spec.extras or {}).get(API, {}))
        said = {"description": spec.description} if spec.description is not None else {}
        named = {"name": fitting(spec.name), **said}
        if spec.kind == "function":
            schema = spec.schema if spec.schema is not None else EMPTY_SCHEMA
            return {"type": "function", "function": {**named, "parameters": schema, **x}}
        if spec.kind == "custom":
            return {"type": "custom", "custom": {**named, **x}}
        return {"type": spec.kind, **x}

    @classmethod
    def compose(cls, settings: Settings, planned: Plan, aim: Aim, losses: list[Loss]) -> JSONObject:
        """The arguments of `chat.completions.create`."""
        out: JSONObject = {"model": settings.model.id} if settings.model is not None else {}
        out["messages"] = cls.written(planned, aim)
        if settings.tools:
            out["tools"] = cls.tools(settings.tools, losses)
        if settings.format is not None:
            out["response_format"] = response_format(settings.format)
        out.update(settings.parameters or {})
        choice = out.get("tool_choice")
        if is_object(choice) and is_object(said := choice.get("function")) and said.get("name"):
            out["tool_choice"] = {**choice, "function": {**said, "name": fitting(said["name"])}}
        return out


EMPTY_SCHEMA: JSONObject = {"type": "object", "properties": {}}


def response_format(schema: JSONObject) -> JSONObject:
    """The format of a structured reply; a JSON schema, or what the API calls a format already."""
    if schema.get("type") in {"json_schema", "json_object", "text"}:
        return schema
    name = fitting(str(schema.get("title") or "reply"))
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


def _in_dialect(message: JSONObject, profile: JSONObject) -> JSONObject:
    if message["role"] == "developer" and profile.get("developer") is False:
        message = {**message, "role": "system"}
    if message["role"] != "assistant":
        return message
    if profile.get("null_content") is False and message.get("content") is None:
        message = {**message, "content": ""}
    field = profile.get("reasoning_field")
    if field and profile.get("reasoning_always") and field not in message:
        message = {**message, field: ""}
    return message


def as_sent(message: JSONObject) -> JSONObject:
    """A reply's message without what no request has."""
    out = {k: v for k, v in message.items() if k not in NOT_SENT_BACK}
    for key in ("audio", "function_call"):
        said = out.get(key)
        if is_object(said) and not any(said.values()):
            del out[key]  # a struct of zeros, as Go writes it
    return out


def _finish(choice: JSONObject, message: JSONObject) -> Finish:
    raw = choice.get("finish_reason")
    word = FINISHES.get(str(raw).lower(), "other") if raw else "stop"
    if word == "stop" and message.get("refusal"):
        word = "refusal"
    if choice.get("error"):
        word = "error"
    called = bool(message.get("tool_calls")) or bool(
        is_object(f := message.get("function_call")) and f.get("name")
    )
    return normal_finish(word, called)


def _platform(body: JSONObject) -> str | None:
    return "azure" if "prompt_filter_results" in body else None


def _name(value: JSON) -> str | None:
    return value if isinstance(value, str) and value else None


_USAGE = frozenset(
    {
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
    }
)


def read_usage(said: JSONObject) -> Usage:
    """Tokens, with input including what was cached and output including what was reasoned."""
    before, after = said.get("prompt_tokens_details"), said.get("completion_tokens_details")
    prompt, completion = _count(said, "prompt_tokens"), _count(said, "completion_tokens")
    reasoning = _count(after, "reasoning_tokens")
    if reasoning and _count(said, "total_tokens") == prompt + completion + reasoning:
        completion += reasoning  # xAI counts reasoning beside the completion
    cached = _count(before, "cached_tokens") or _count(said, "prompt_cache_hit_tokens")
    return Usage(
        input=prompt,
        output=completion,
        reasoning=reasoning,
        cache_read=cached or _count(said, "cached_tokens"),
        cache_write=_count(before, "cache_write_tokens"),
        extras=extras(API, {k: v for k, v in rest(said, _USAGE).items() if v}),
    )


def _count(said: JSON, key: str) -> int:
    value = said.get(key) if is_object(said) else None
    return int(value) if isinstance(value, (int, float)) else 0
