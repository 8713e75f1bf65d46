"""OpenAI Chat Completions, and everything that speaks it.

A message of this API says its things in separate members: reasoning (in dialects), content,
refusal, calls. They become ordered parts; what the parts do not say (whether content was a text,
a list, null or absent; which member reasoning came in) is residual and goes back as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

from msgspec.structs import replace

from brute.events.events import Settings, ToolSpec
from brute.events.jsontypes import JSON, JSONObject
from brute.events.messages import (
    AnyPart,
    Citation,
    Finish,
    Hosted,
    Json,
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
    Usage,
)
from brute.transports.base import MessageTransport, normal_finish, sealed
from brute.transports.openai_rules import RULE_BOOK
from brute.transports.openai_stream import ChatReader
from brute.transports.plan import Plan
from brute.transports.rules import NAME, Aim, Pattern, Rules
from brute.transports.shapes import Loss, Received, UnreadableReply
from brute.transports.wire import (
    extras,
    from_base64,
    from_data_url,
    image_type,
    is_array,
    is_object,
    json_text,
    objects,
    plain,
    rest,
    to_base64,
    to_data_url,
)

API = "openai.chat"

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

DETAILS = {
    "reasoning.text": "thinking",
    "reasoning.summary": "summary",
    "reasoning.encrypted": "encrypted",
}
DETAIL_TYPES = {kind: word for word, kind in DETAILS.items()}

NOT_SENT_BACK = frozenset({"provider_metadata", "channel", "parsed"})
"""Members of a reply that no request has."""

URLS = {
    "image_url": "image",
    "video_url": "video",
    "document_url": "document",
    "audio_url": "audio",
}

_KNOWN_TEXT = frozenset({"type", "text"})
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


# -- content -------------------------------------------------------------------------------------


def load_block(block: JSON) -> AnyPart:
    """A part of a content list."""
    if not is_object(block):
        return Native(api=API, kind="text", block=block)
    kind = str(block.get("type"))
    part = LOADERS[kind](block) if kind in LOADERS else None
    return part if part is not None else Native(api=API, kind=kind, block=block)


def _load_text(block: JSONObject) -> AnyPart | None:
    text = block.get("text")
    if not isinstance(text, str):
        return None
    return Text(text=text, extras=extras(API, rest(block, _KNOWN_TEXT)))


def _load_refusal(block: JSONObject) -> AnyPart | None:
    text = block.get("refusal")
    if not isinstance(text, str):
        return None
    residual = rest(block, frozenset({"type", "refusal"}))
    return Refusal(text=text, extras=extras(API, {"in": "content", **residual}))


def _load_thinking(block: JSONObject) -> AnyPart | None:
    inner = block.get("thinking")
    residual = {
        "in": "content",
        **rest(block, frozenset({"type", "thinking", "signature"})),
    }
    if is_array(inner):
        chunks = objects(inner)
        text = "".join(str(c.get("text") or "") for c in chunks)
        if len(inner) != 1 or set(chunks[0] if chunks else ()) != {"type", "text"}:
            residual["chunks"] = inner
    else:
        text, residual["plain"] = inner, True
    signature = block.get("signature")
    if not isinstance(text, str) or not isinstance(signature, (str, type(None))):
        return None
    return Reasoning(text=text, signature=signature, extras=extras(API, residual))


def _load_url(block: JSONObject) -> AnyPart | None:
    word = str(block["type"])
    said = block.get(word)
    residual = rest(block, frozenset({"type", word}))
    if is_object(said):
        url, detail = said.get("url"), said.get("detail")
        if inner := rest(said, frozenset({"url", "detail"})):
            residual["inner"] = inner
    else:
        url, detail, residual["bare"] = said, None, True
    if not isinstance(url, str) or not isinstance(detail, (str, type(None))):
        return None
    if word in {"document_url", "audio_url"}:
        residual["as"] = word
    kind = cast(Any, URLS[word])
    data = from_data_url(url)
    held = {"media_type": data[0], "data": data[1]} if data else {"url": url}
    return Media(kind=kind, detail=detail, extras=extras(API, residual), **cast(Any, held))


def _load_audio(block: JSONObject) -> AnyPart | None:
    said = block.get("input_audio")
    if not is_object(said):
        return None
    data, word = from_base64(said.get("data")), said.get("format")
    if data is None or not isinstance(word, str):
        return None
    residual = rest(block, frozenset({"type", "input_audio"}))
    if inner := rest(said, frozenset({"data", "format"})):
        residual["inner"] = inner
    return Media(kind="audio", media_type=f"audio/{word}", data=data, extras=extras(API, residual))


def _load_file(block: JSONObject) -> AnyPart | None:
    said = block.get("file")
    if not is_object(said):
        return None
    data = from_data_url(said.get("file_data"))
    known = {"filename", "file_id", "file_data"} if data else {"filename", "file_id"}
    residual = rest(block, frozenset({"type", "file"}))
    if inner := rest(said, frozenset(known)):
        residual["inner"] = inner
    name, file_id = said.get("filename"), said.get("file_id")
    return Media(
        kind="document",
        media_type=data[0] if data else None,
        data=data[1] if data else None,
        name=name,
        file_id=file_id,
        extras=extras(API, residual),
    )


LOADERS: dict[str, Callable[[JSONObject], AnyPart | None]] = {
    "text": _load_text,
    "refusal": _load_refusal,
    "thinking": _load_thinking,
    "input_audio": _load_audio,
    "file": _load_file,
    **dict.fromkeys(URLS, _load_url),
}


def dump_block(part: AnyPart) -> JSON:
    """A part as an item of a content list."""
    x = part.extra(API)
    if isinstance(part, Text):
        block = {"type": "text", "text": part.text}
        return {**block, **x} if x else block
    if isinstance(part, Native):
        return part.block
    if isinstance(part, Media):
        return _dump_media(part, x)
    if isinstance(part, Json):
        return {"type": "text", "text": json_text(part.value)}
    x = {k: v for k, v in x.items() if k not in {"in", "chunks", "plain"}}
    if isinstance(part, Reasoning):
        signed = {"signature": part.signature} if part.signature is not None else {}
        return {"type": "thinking", "thinking": _thinking(part), **signed, **x}
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text, **x}
    return {"type": "text", "text": ""}


def _thinking(part: Reasoning) -> JSON:
    x = part.extra(API)
    if x.get("plain"):
        return part.text
    return x["chunks"] if "chunks" in x else [{"type": "text", "text": part.text}]


def _dump_media(part: Media, x: JSONObject) -> JSONObject:
    inner = x.get("inner", {})
    others = {k: v for k, v in x.items() if k not in {"inner", "bare", "as"}} if x else {}
    url = part.url if part.data is None else to_data_url(part.media_type, part.data)
    if part.kind == "audio" and part.data is not None and "as" not in x:
        said = {"data": to_base64(part.data), "format": audio_format(part.media_type), **inner}
        return {"type": "input_audio", "input_audio": said, **others}
    if part.kind == "document" and "as" not in x:
        members = {"filename": part.name, "file_id": part.file_id, "file_data": url}
        held = {k: v for k, v in members.items() if v is not None}
        return {"type": "file", "file": {**held, **inner}, **others}
    word = x.get("as", f"{part.kind}_url")
    if x.get("bare"):
        return {"type": word, word: url, **others}
    detail = {"detail": part.detail} if part.detail is not None else {}
    return {"type": word, word: {"url": url, **detail, **inner}, **others}


AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3"}


def audio_format(media_type: str | None) -> str:
    """The word for an audio type: `wav`, `mp3`, or what stands behind the slash."""
    said = media_type or ""
    return AUDIO.get(said, said.removeprefix("audio/"))


# -- messages in ---------------------------------------------------------------------------------


def load(message: JSONObject, origin: Origin) -> Message:
    """One message of the wire."""
    role = ROLES.get(str(message.get("role") or "assistant"), "user")
    if role == "tool":
        made = _load_tool(message, origin)
    elif role == "assistant":
        made = _load_assistant(message, origin)
    else:
        parts, marks = _load_content(message.get("content"), "content" in message)
        made = _message(role, parts, message, {**marks, **rest(message, _KNOWN)}, origin)
    if message.get("role") not in ROLES and "role" in message:
        residual = {**made.extra(API), "role": message["role"]}
        made = replace(made, extras={API: residual})
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
        content=cast("tuple[ResultPart, ...]", tuple(parts)),
        extras=extras(API, marks),
    )
    return Message(role="tool", parts=(result,), origin=origin)


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
    if not is_object(detail) or detail.get("type") not in DETAILS:
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
    part = Reasoning(
        text=text if isinstance(text, str) else "",
        kind=kind,
        signature=detail.get("signature"),
        data=detail.get("data"),
        id=detail.get("id"),
        extras={API: residual},
    )
    return part


def _cited(body: list[AnyPart], message: JSONObject, marks: JSONObject) -> list[AnyPart]:
    annotations = message.get("annotations")
    if not annotations:
        return body
    if not is_array(annotations) or not body or type(body[0]) is not Text:
        marks["annotations"] = annotations
        return body
    cites = tuple(_load_citation(a) for a in annotations)
    return [replace(body[0], citations=cites), *body[1:]]


CITED = {
    "url": "url",
    "title": "title",
    "content": "quote",
    "start_index": "start",
    "end_index": "end",
}


def _load_citation(annotation: JSON) -> Citation:
    said = annotation.get("url_citation") if is_object(annotation) else None
    if not is_object(said) or annotation.get("type") != "url_citation":
        return Citation(kind="native", extras={API: {"block": annotation}})
    residual = rest(said, frozenset(CITED))
    if around := rest(annotation, frozenset({"type", "url_citation"})):
        residual["around"] = around
    fields = {ours: said.get(theirs) for theirs, ours in CITED.items()}
    return Citation(kind="url", extras=extras(API, residual), **cast(Any, fields))


def _dump_citation(citation: Citation) -> JSON:
    x = (citation.extras or {}).get(API, {})
    if citation.kind == "native":
        return x.get("block")
    said = {t: v for t, o in CITED.items() if (v := getattr(citation, o)) is not None}
    inner = {k: v for k, v in x.items() if k != "around"}
    return {"type": "url_citation", "url_citation": {**said, **inner}, **x.get("around", {})}


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
    if _alike(again, wire):
        return made
    raw = {k: v for k, v in wire.items() if v is not None or k == "content"}
    return replace(made, extras={**(made.extras or {}), API: {**made.extra(API), "$raw": raw}})


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


# -- messages out --------------------------------------------------------------------------------


def write(message: Message) -> list[JSONObject]:
    """One message for the wire; a tool message may be several."""
    if message.role == "tool" and "$raw" not in message.extra(API):
        return [_write_result(p, message) for p in message.parts if type(p) is ToolResult]
    return [_write_one(message)]


def _write_one(message: Message) -> JSONObject:
    """A message that is one message on the wire."""
    x = message.extras.get(API, NOTHING) if message.extras is not None else NOTHING
    if "$raw" in x:
        return dict(x["$raw"])
    if message.role == "assistant":
        return _write_assistant(message, x)
    parts = message.parts
    out: JSONObject
    if len(parts) == 1 and type(parts[0]) is Text and not x and parts[0].extras is None:
        out = {"role": message.role, "content": parts[0].text}
    else:
        out = {"role": x.get("role", message.role)}
        _put_content(out, parts, x)
        out.update((k, v) for k, v in x.items() if k not in MARKS)
    if message.name is not None:
        out["name"] = message.name
    return out


NOTHING: JSONObject = {}
MARKS = frozenset({"form", "plain", "details", "calls", "role", "$raw"})
"""Marks of ours among a message's residual, which are no members of the wire."""


def _put_content(out: JSONObject, parts: Sequence[AnyPart], x: JSONObject) -> None:
    form = x.get("form")
    if parts:
        if form == "verbatim" and type(parts[0]) is Native:
            out["content"] = parts[0].block
        elif len(parts) == 1 and type(parts[0]) is Text and form != "list":
            only = parts[0]
            out["content"] = [dump_block(only)] if only.extras and only.extra(API) else only.text
        else:
            out["content"] = [dump_block(part) for part in parts]
    elif form != "absent":
        out["content"] = [] if form == "list" else None


def _write_result(result: ToolResult, message: Message) -> JSONObject:
    content = result.content
    out: JSONObject = {"role": "tool", "tool_call_id": result.call_id, "content": None}
    if result.extras is None and len(content) == 1 and type(content[0]) is Text:
        only = content[0]
        out["content"] = only.text if only.extras is None else [dump_block(only)]
    else:
        _put_result(out, result, message)
    if result.call_id is None:
        del out["tool_call_id"]
    if result.name is not None and is_own(message):
        out["name"] = result.name
    return out


def _put_result(out: JSONObject, result: ToolResult, message: Message) -> None:
    """The content of a result that is not just one text."""
    content, x = result.content, result.extra(API)
    out["role"] = x.get("role", "tool")
    if x.get("form") in {"list", "absent", "verbatim"} or any(
        type(part) not in {Text, Json} for part in content
    ):
        del out["content"]
        _put_content(out, content, x)
    elif content or message.origin is None:
        out["content"] = "\n".join(
            part.text if type(part) is Text else json_text(cast(Json, part).value)
            for part in content
        )
    out.update((k, v) for k, v in x.items() if k not in MARKS)


def is_own(message: Message) -> bool:
    """Whether a message was issued through this API."""
    return message.origin is not None and message.origin.api == API


def _write_assistant(message: Message, x: JSONObject) -> JSONObject:
    out: JSONObject = {"role": "assistant", "content": None}
    body: list[AnyPart] = []
    calls: list[JSON] = []
    own = is_own(message)
    for part in message.parts:
        kind = type(part)
        if kind is Text:
            body.append(part)
        elif kind is ToolCall:
            _write_call(out, cast(ToolCall, part), calls, own)
        else:
            _write_other(out, part, body, calls)
    if len(body) == 1 and type(body[0]) is Text and not x and body[0].extras is None:
        out["content"] = body[0].text
    elif body or x:
        del out["content"]
        _put_content(out, body, x)
    if calls:
        out["tool_calls"] = calls
    if own:
        _put_own(out, body, x, message)
    elif x:
        out.update((k, v) for k, v in x.items() if k not in MARKS)
    if message.name is not None:
        out["name"] = message.name
    return out


def _put_own(out: JSONObject, body: list[AnyPart], x: JSONObject, message: Message) -> None:
    """What only a message of this API has."""
    cites = [_dump_citation(c) for p in body if type(p) is Text for c in p.citations]
    if cites:
        out["annotations"] = cites
    if not x:
        return
    if "plain" in x:
        _put_plain(out, x["plain"], message)
    if "details" in x:
        out["reasoning_details"] = []
    if "calls" in x:
        out.setdefault("tool_calls", [])
    out.update((k, v) for k, v in x.items() if k not in MARKS)


def _write_call(out: JSONObject, call: ToolCall, calls: list[JSON], own: bool) -> None:
    if call.extras is not None or call.kind == "custom" or call.id is None:
        if not _is_legacy(out, call):
            calls.append(dump_call(call, own))
        return
    raw = call.raw or ("" if own else "{}")
    function = {"name": call.name, "arguments": raw}
    calls.append({"id": call.id, "type": "function", "function": function})


def _write_other(out: JSONObject, part: AnyPart, body: list[AnyPart], calls: list[JSON]) -> None:
    """A part of an assistant message that is neither text nor call."""
    x = part.extra(API)
    if isinstance(part, Reasoning) and x.get("in") != "content":
        if x.get("in") == "details":
            out.setdefault("reasoning_details", []).append(_dump_detail(part, x))
        else:
            for field in x.get("fields", ()):
                out[field] = part.text
    elif isinstance(part, Refusal) and x.get("in") != "content":
        said = f"{out['refusal']}\n" if "refusal" in out else ""
        out["refusal"] = said + part.text
    elif isinstance(part, Media) and "audio" in x:
        out["audio"] = {"id": x["audio"].get("id")}
    elif isinstance(part, Native) and part.kind in {"tool_call", "reasoning_detail", "audio"}:
        if part.kind == "tool_call":
            calls.append(part.block)
        elif part.kind == "audio":
            out["audio"] = part.block
        else:
            out.setdefault("reasoning_details", []).append(part.block)
    elif not isinstance(part, (Hosted, ToolResult)):
        body.append(part)


def _dump_detail(part: Reasoning, x: JSONObject) -> JSONObject:
    key = "summary" if part.kind == "summary" else "text"
    text = part.text if part.text or (part.kind != "encrypted" and "absent" not in x) else None
    members = {key: text, "signature": part.signature, "data": part.data, "id": part.id}
    said = {k: v for k, v in members.items() if v is not None}
    others = {k: v for k, v in x.items() if k not in {"in", "absent"}}
    return {"type": DETAIL_TYPES[part.kind], **said, **others}


def _put_plain(out: JSONObject, said: JSON, message: Message) -> None:
    """Reasoning said a second time as a plain text: the same as the details, or its own."""
    if is_object(said):
        out.update(said)
        return
    joined = "".join(
        p.text
        for p in message.parts
        if type(p) is Reasoning and p.extra(API).get("in") == "details"
    )
    out.update(dict.fromkeys(said, joined))


def _is_legacy(out: JSONObject, call: ToolCall) -> bool:
    x = call.extra(API)
    if not x.get("legacy"):
        return False
    others = {k: v for k, v in x.items() if k != "legacy"}
    out["function_call"] = {"name": call.name, "arguments": call.raw, **others}
    return True


def dump_call(call: ToolCall, own: bool) -> JSONObject:
    """A call, with what only this API says about it."""
    x = call.extra(API)
    inner = x.get("inner", {})
    out: JSONObject = {"id": call.id} if call.id is not None else {}
    if call.kind == "custom":
        out |= {"type": "custom", "custom": {"name": call.name, "input": call.raw, **inner}}
    else:
        raw: JSON = call.raw or ("" if own else "{}")
        if x.get("decoded"):
            raw = call.arguments
        if "untyped" not in x:
            out["type"] = "function"
        out["function"] = {"name": call.name, "arguments": raw, **inner}
    out.update((k, v) for k, v in x.items() if k not in {"inner", "decoded", "untyped"})
    return out


# -- the target ----------------------------------------------------------------------------------


def _vendor(model: str) -> str:
    name = model.lower().rsplit("/", 1)[-1]
    return name[: next((i for i, c in enumerate(name) if not c.isalpha()), len(name))]


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
    pairs = ((aim.provider, origin.provider), (aim.platform, origin.platform))
    if any(ours and theirs and ours != theirs for ours, theirs in pairs):
        return False
    return not (aim.model and origin.model) or _vendor(aim.model) == _vendor(origin.model)


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
    return part if part.url and part.data is None else None


def _typed(part: Media, media_type: str | None) -> Media | None:
    if media_type is None or media_type == part.media_type:
        return part if media_type else None
    return replace(part, media_type=media_type)


def carried(part: Media) -> Media:
    """Media as they are loaded again: an image has no name, a file no detail."""
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
        if not self.sent:
            wire = as_sent(wire)
        return sealed(load(wire, origin), finish)

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
        return any("delta" in choice for choice in objects(body.get("choices")))

    @classmethod
    def is_body(cls, body: JSONObject) -> bool:
        """Whether a dict is a whole completion."""
        return any(is_object(c.get("message")) for c in objects(body.get("choices")))

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
            return _write_one(message)
        out = write(message)
        return out[0] if len(out) == 1 else out

    @classmethod
    def written(cls, planned: Sequence[Message], aim: Aim) -> list[JSONObject]:
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
        limit = aim.profile.get("id_limit")
        if limit is None:
            return aim
        return replace(aim, rules=replace(aim.rules, own_ids=Pattern(".", limit, "call")))

    @classmethod
    def tool(cls, spec: ToolSpec) -> JSONObject:
        """One tool: a function, a custom tool, or what only this API offers."""
        x = dict((spec.extras or {}).get(API, {}))
        said = {"description": spec.description} if spec.description is not None else {}
        name = spec.name if NAME.fits(spec.name) else NAME.rename(spec.name)
        if spec.kind == "function":
            schema = spec.schema if spec.schema is not None else EMPTY_SCHEMA
            return {
                "type": "function",
                "function": {"name": name, **said, "parameters": schema, **x},
            }
        if spec.kind == "custom":
            return {"type": "custom", "custom": {"name": name, **said, **x}}
        return {"type": spec.kind, **x}

    @classmethod
    def compose(cls, settings: Settings, planned: Plan, aim: Aim, losses: list[Loss]) -> JSONObject:
        """The arguments of `chat.completions.create`."""
        out: JSONObject = {"model": settings.model.id} if settings.model is not None else {}
        out["messages"] = cls.written(planned.messages, aim)
        if settings.tools:
            out["tools"] = cls.tools(settings.tools)
        if settings.format is not None:
            out["response_format"] = response_format(settings.format)
        out.update(settings.parameters or {})
        return out


EMPTY_SCHEMA: JSONObject = {"type": "object", "properties": {}}


def response_format(schema: JSONObject) -> JSONObject:
    """The format of a structured reply; a JSON schema, or what the API calls a format already."""
    if schema.get("type") in {"json_schema", "json_object", "text"}:
        return schema
    name = str(schema.get("title") or "reply")
    named = name if NAME.fits(name) else NAME.rename(name)
    return {"type": "json_schema", "json_schema": {"name": named, "schema": schema}}


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
    before = said.get("prompt_tokens_details") or {}
    after = said.get("completion_tokens_details") or {}
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


def _count(said: Mapping[str, Any], key: str) -> int:
    value = said.get(key)
    return int(value) if isinstance(value, (int, float)) else 0
