"""Messages of Chat Completions, read: members become ordered parts, the rest is residual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from msgspec.structs import replace

from brute.events.jsontypes import JSON, JSONObject
from brute.events.messages import (
    AnyPart,
    Citation,
    Media,
    Message,
    Native,
    Origin,
    Reasoning,
    Refusal,
    ResultPart,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from brute.transports.openai_blocks import API, load_block
from brute.transports.openai_dump import CITED, DETAILS, write
from brute.transports.wire import (
    extras,
    from_base64,
    is_array,
    is_object,
    json_text,
    kind_of,
    rest,
    text_in,
    text_or_none,
)

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

REASONING = ("reasoning", "reasoning_content")
"""Members in which gateways say reasoning as a plain text."""


_KNOWN_TOOL = frozenset({"role", "content", "name", "tool_call_id"})
_KNOWN = frozenset({"role", "content", "name"})
_KNOWN_ASSISTANT = _KNOWN | {
    *REASONING,
    "reasoning_details",
    "refusal",
    "tool_calls",
    "annotations",
    "audio",
    "function_call",
}


def load(message: JSONObject, origin: Origin, *, spoken: bool = False) -> Message:
    """One message of the wire; of an audio that was `spoken` just now, only the id goes back."""
    role = ROLES.get(str(message.get("role") or "assistant"), "user")
    if role == "tool":
        made = _load_tool(message, origin)
    elif role == "assistant":
        made = _load_assistant(message, origin)
    else:
        parts, marks = _load_content(message.get("content"), "content" in message)
        made = _message(role, parts, message, {**marks, **rest(message, _KNOWN)}, origin)
    if message.get("role") and str(message["role"]) not in ROLES:
        residual = {**made.extra(API), "role": message["role"]}
        made = replace(made, extras={API: residual})
    audio = message.get("audio")
    if spoken and is_object(audio):
        message = {**message, "audio": {"id": audio.get("id")}}
    return _verified(made, message)


def _message(
    role: Role, parts: Sequence[AnyPart], wire: JSONObject, marks: JSONObject, origin: Origin
) -> Message:
    name = wire.get("name")
    if not isinstance(name, (str, type(None))):
        marks, name = {**marks, "name": name}, None
    return Message(
        role=role, parts=tuple(parts), name=name, extras=extras(API, marks), origin=origin
    )


def _load_content(content: JSON, present: bool) -> tuple[list[AnyPart], JSONObject]:
    """The parts of a content, and what they do not say of its form.

    A text is the natural form of one text, a list that of anything else; for nothing it is null.
    """
    if isinstance(content, str):
        return [Text(text=content)], {}
    if is_array(content):
        parts = [load_block(block) for block in content]
        alone = len(parts) == 1 and type(parts[0]) is Text and parts[0].extras is None
        return parts, {"form": "list"} if alone or not parts else {}
    if content is None:
        return [], {} if present else {"form": "absent"}
    return [Native(api=API, kind="content", block=content)], {"form": "verbatim"}


def _load_tool(message: JSONObject, origin: Origin) -> Message:
    parts, marks = _load_content(message.get("content"), "content" in message)
    if len(parts) > 1:
        marks["form"] = "list"
    marks.update(rest(message, _KNOWN_TOOL))
    if message.get("role") == "function":
        marks["role"] = "function"
    name, id = message.get("name"), message.get("tool_call_id")
    result = ToolResult(
        call_id=id if isinstance(id, str) else None,
        name=name if isinstance(name, str) else None,
        content=tuple(map(result_part, parts, _blocks(message.get("content")))),
        extras=extras(API, marks),
    )
    return Message(role="tool", parts=(result,), origin=origin)


def result_part(part: AnyPart, block: JSON) -> ResultPart:
    """A part of a result; a block that no result should hold stays a block."""
    if isinstance(part, ResultPart):
        return part
    kind = kind_of(block) if is_object(block) else "content"
    return Native(api=API, kind=kind, block=block)


def _blocks(content: JSON) -> list[JSON]:
    return content if is_array(content) else [content]


def _load_assistant(message: JSONObject, origin: Origin) -> Message:
    body, marks = _load_content(message.get("content"), "content" in message)
    parts = [*_load_reasoning(message, marks), *_cited(body, message, marks)]
    if (audio := message.get("audio")) is not None:
        parts.append(_load_spoken(audio))
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        parts.append(Refusal(text=refusal))
    calls = message.get("tool_calls")
    if is_array(calls):
        parts += [load_call(call) for call in calls]
        if not calls:
            marks["calls"] = []
    if is_object(legacy := message.get("function_call")):
        parts.append(_load_legacy(legacy))
    marks.update(rest(message, _KNOWN_ASSISTANT))
    return _message("assistant", parts, message, marks, origin)


def _load_reasoning(message: JSONObject, marks: JSONObject) -> list[AnyPart]:
    """Reasoning, from whichever members it came in: details, plain texts, or both."""
    plain_texts = {f: t for f in REASONING if isinstance(t := message.get(f), str)}
    details = message.get("reasoning_details")
    if is_array(details):
        parts = [_load_detail(d) for d in details]
        joined = "".join(p.text for p in parts if isinstance(p, Reasoning))
        if plain_texts:
            fits = all(text == joined for text in plain_texts.values())
            marks["plain"] = list(plain_texts) if fits else plain_texts
        if not parts:
            marks["details"] = []
        return parts
    if len(set(plain_texts.values())) == 1:  # the same, said twice
        text = next(iter(plain_texts.values()))
        return [Reasoning(text=text, extras={API: {"fields": list(plain_texts)}})]
    return [Reasoning(text=t, extras={API: {"fields": [f]}}) for f, t in plain_texts.items()]


def _load_detail(detail: JSON) -> AnyPart:
    if not is_object(detail) or kind_of(detail) not in DETAILS:
        return Native(api=API, kind="reasoning_detail", block=detail)
    kind = cast(Any, DETAILS[str(detail["type"])])
    key = "summary" if kind == "summary" else "text"
    residual = {
        "in": "details",
        **rest(detail, frozenset({"type", key, "signature", "data", "id"})),
    }
    text = detail.get(key)
    if text is None and kind == "thinking":
        residual["absent"] = True
    return Reasoning(
        text=text if isinstance(text, str) else "",
        kind=kind,
        signature=text_or_none(detail, "signature"),
        data=text_or_none(detail, "data"),
        id=text_or_none(detail, "id"),
        extras={API: residual},
    )


def _cited(body: list[AnyPart], message: JSONObject, marks: JSONObject) -> list[AnyPart]:
    annotations = message.get("annotations")
    if not annotations:
        return body
    if not is_array(annotations) or not body or type(body[0]) is not Text:
        marks["annotations"] = annotations
        return body
    cites = tuple(_load_citation(a) for a in annotations)
    return [replace(body[0], citations=cites), *body[1:]]


def _load_citation(annotation: JSON) -> Citation:
    said = annotation.get("url_citation") if is_object(annotation) else None
    if not is_object(said) or annotation.get("type") != "url_citation":
        return Citation(kind="native", extras={API: {"block": annotation}})
    residual = rest(said, frozenset(CITED))
    if around := rest(annotation, frozenset({"type", "url_citation"})):
        residual["around"] = around
    fields: JSONObject = {}
    for theirs, ours in CITED.items():
        value, kind = said.get(theirs), int if theirs.endswith("_index") else str
        if type(value) is kind:
            fields[ours] = value
        elif value is not None:
            return Citation(kind="native", extras={API: {"block": annotation}})
    return Citation(kind="url", extras=extras(API, residual), **fields)


def _load_spoken(audio: JSON) -> AnyPart:
    if not is_object(audio):
        return Native(api=API, kind="audio", block=audio)
    data, id = from_base64(audio.get("data")), audio.get("id")
    residual = {"audio": rest(audio, frozenset({"data"} if data is not None else ()))}
    return Media(
        kind="audio",
        data=data,
        file_id=id if data is None and isinstance(id, str) else None,
        extras={API: residual},
    )


def load_call(call: JSON) -> AnyPart:
    """A call, of a function or of a custom tool."""
    if not is_object(call):
        return Native(api=API, kind="tool_call", block=call)
    function, custom, id = call.get("function"), call.get("custom"), call.get("id")
    if is_object(function):
        return _load_function(call, function, id)
    if is_object(custom) and isinstance(custom.get("name"), str):
        residual = rest(call, frozenset({"id", "type", "custom", "index"}))
        if inner := rest(custom, frozenset({"name", "input"})):
            residual["inner"] = inner
        return ToolCall(
            id=id if isinstance(id, str) else None,
            name=custom["name"],
            raw=str(custom.get("input") or ""),
            kind="custom",
            extras=extras(API, residual),
        )
    kind = call.get("type")
    if isinstance(kind, str) and isinstance(id, str) and kind not in {"function", "custom"}:
        own = call.get(kind)
        said: JSONObject = own if is_object(own) else {}
        name = text_or_none(said, "name") or kind
        extra = extras(API, {"verbatim": call})
        return ToolCall(id=id, name=name, raw=json_text(said), kind=kind, extras=extra)
    return Native(api=API, kind="tool_call", block=call)


def _load_function(call: JSONObject, function: JSONObject, id: JSON) -> AnyPart:
    raw = function.get("arguments")
    residual = rest(call, frozenset({"id", "type", "function", "index"}))
    custom = residual.get("custom")
    if is_object(custom) and not any(custom.values()):
        del residual["custom"]  # a struct of zeros, as Go writes it
    guessed = residual.pop("guessed", None) is True
    if call.get("type") is None:
        residual["untyped"] = True
    if not isinstance(raw, (str, type(None))):
        residual["decoded"] = True
    if inner := rest(function, frozenset({"name", "arguments"})):
        residual["inner"] = inner
    return ToolCall(
        id=id if isinstance(id, str) else None,
        name=str(function.get("name") or ""),
        raw=raw if isinstance(raw, str) else "" if raw is None else json_text(raw),
        cut=guessed,
        extras=extras(API, residual),
    )


def _load_legacy(call: JSONObject) -> AnyPart:
    residual = {"legacy": True, **rest(call, frozenset({"name", "arguments"}))}
    raw = call.get("arguments")
    return ToolCall(
        name=str(call.get("name") or ""),
        raw=raw if isinstance(raw, str) else "",
        extras={API: residual},
    )


def _verified(made: Message, wire: JSONObject) -> Message:
    """The message; with the wire's own beside it where writing it again would not give that."""
    [again] = write(made)
    if _alike(again, wire) or not _is_sound_shape(wire):
        return made
    raw = {k: v for k, v in wire.items() if v is not None or k == "content"}
    return replace(made, extras={**(made.extras or {}), API: {**made.extra(API), "$raw": raw}})


def _is_sound_shape(wire: JSONObject) -> bool:
    """Whether role, ids, names and arguments are of their types: what planning goes by.

    Only then may the wire's own form stand for the message.
    """
    known = bool(text_in(wire, "role")) and _is_text_or_none(wire.get("tool_call_id"))
    calls = wire.get("tool_calls")
    if calls is None:
        return known
    return known and is_array(calls) and all(map(_is_sound_call, calls))


def _is_sound_call(call: JSON) -> bool:
    if not is_object(call) or not _is_text_or_none(call.get("id")):
        return False
    for word, text in (("function", "arguments"), ("custom", "input")):
        said = call.get(word)
        if is_object(said):
            return isinstance(said.get("name"), str) and isinstance(said.get(text), (str, dict))
    return True


def _is_text_or_none(value: JSON) -> bool:
    return value is None or isinstance(value, str)


RESPONSE_ONLY = frozenset({"refusal", "annotations", "audio", "function_call", "custom"})
"""Members that say nothing when they are empty."""


def _alike(a: JSON, b: JSON) -> bool:
    """Whether two wire values say the same: null is absent, and a call's `index` is a stream's."""
    if is_object(a) and is_object(b):
        keys = a.keys() | b.keys()
        if "function" in a or "custom" in a:
            keys -= {"index"}
        return all(_alike(_said(a, key), _said(b, key)) for key in keys)
    if is_array(a) and is_array(b):
        return len(a) == len(b) and all(map(_alike, a, b))
    return type(a) is type(b) and a == b


def _said(wire: JSONObject, key: str) -> JSON:
    value = wire.get(key)
    if key in RESPONSE_ONLY and (not value or (is_object(value) and not any(value.values()))):
        return None  # a struct of zeros, as Go writes it
    return value
