"""Blocks of Anthropic Messages, read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from brute.events.jsontypes import JSON, JSONObject
from brute.events.messages import (
    AnyPart,
    Citation,
    Hosted,
    Json,
    Media,
    Native,
    Reasoning,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from brute.transports.wire import (
    copied,
    extras,
    from_base64,
    is_array,
    is_object,
    json_text,
    kind_of,
    mend_json,
    objects,
    rest,
    same,
    to_base64,
    without_nulls,
)

API = "anthropic.messages"

SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
# -- blocks in -----------------------------------------------------------------------------------


def load_block(block: JSON) -> AnyPart:
    """A block as a part; the block itself is kept beside it where writing it would not give it."""
    if not is_object(block):
        return Native(api=API, kind="text", block=block)
    kind = str(block.get("type"))
    loader = LOADERS.get(kind)
    if loader is None and kind.endswith("_tool_result"):
        loader = _load_hosted_result
    part = loader(block) if loader is not None else None
    if part is None:
        return Native(api=API, kind=kind, block=without_nulls(block))
    return _verified(part, block)


def _verified(part: AnyPart, block: JSONObject) -> AnyPart:
    said = without_nulls(block)
    if "$text" in said or same(dump_block(part), said) or not _is_sound_shape(block):
        return part
    residual = {**part.extra(API), "$raw": said}
    return replace(part, extras={API: residual})


def _is_sound_shape(block: JSONObject) -> bool:
    """Whether ids, names and input are of their types: what planning goes by.

    Only then may the wire's own form stand for the part.
    """
    if block["type"] == "tool_use":
        words = (block.get("id"), block.get("name"))
        return all(isinstance(word, str) for word in words) and is_object(block.get("input"))
    return block["type"] != "tool_result" or isinstance(block.get("tool_use_id"), str)


def _load_text(block: JSONObject) -> AnyPart | None:
    text, cites = block.get("text"), block.get("citations")
    if not isinstance(text, str) or not (cites is None or is_array(cites)):
        return None
    residual = rest(block, frozenset({"type", "text", "citations"}))
    if cites == []:
        residual["citations"] = []
    citations = tuple(map(_load_citation, objects(cites)))
    return Text(text=text, citations=citations, extras=extras(API, residual))


_CITED = {"url": "url", "title": "title", "cited_text": "quote"}


def _load_citation(cite: JSONObject) -> Citation:
    fields = {ours: v for theirs, ours in _CITED.items() if isinstance(v := cite.get(theirs), str)}
    kept = {t for t, o in _CITED.items() if o in fields}
    residual = rest(cite, frozenset({"type", *kept}))
    return Citation(kind=str(cite.get("type")), extras=extras(API, residual), **cast(Any, fields))


def _dump_citation(cite: Citation) -> JSONObject:
    said = {t: v for t, o in _CITED.items() if (v := getattr(cite, o)) is not None}
    return {"type": cite.kind, **said, **((cite.extras or {}).get(API, {}))}


def _load_thinking(block: JSONObject) -> AnyPart | None:
    text, signature = block.get("thinking"), block.get("signature")
    if not isinstance(text, str) or not isinstance(signature, (str, type(None))):
        return None
    residual = rest(block, frozenset({"type", "thinking", "signature"}))
    return Reasoning(text=text, signature=signature, extras=extras(API, residual))


def _load_redacted(block: JSONObject) -> AnyPart | None:
    data = block.get("data")
    if not isinstance(data, str):
        return None
    residual = rest(block, frozenset({"type", "data"}))
    return Reasoning(kind="encrypted", data=data, extras=extras(API, residual))


def _load_call(block: JSONObject) -> AnyPart | None:
    id = block.get("id")
    residual = rest(block, frozenset({"type", "id", "name", "input", "$text"}))
    raw = block.get("$text")
    if not isinstance(raw, str):
        raw = json_text(block.get("input") if block.get("input") is not None else {})
    return ToolCall(
        id=id if isinstance(id, str) else None,
        name=str(block.get("name") or ""),
        raw=raw,
        extras=extras(API, residual),
    )


def _load_hosted_call(block: JSONObject) -> AnyPart | None:
    id, name = block.get("id"), block.get("name")
    if not isinstance(id, str) or not isinstance(name, str):
        return None
    residual = rest(block, frozenset({"type", "id", "name", "input", "$text"}))
    if block["type"] != "server_tool_use":
        residual["type"] = block["type"]
    said = block.get("$text", block.get("input"))
    return Hosted(id=id, tool=name, input=said, extras=extras(API, residual))


def _load_hosted_result(block: JSONObject) -> AnyPart | None:
    id, kind, output = block.get("tool_use_id"), str(block["type"]), block.get("content")
    if not isinstance(id, str):
        return None
    residual = rest(block, frozenset({"type", "tool_use_id", "content"}))
    failed = bool(block.get("is_error")) or (
        is_object(output) and str(output.get("type")).endswith("_error")
    )
    return Hosted(
        id=id,
        tool=kind.removesuffix("_tool_result"),
        output=output,
        error=failed,
        extras=extras(API, residual),
    )


def _load_result(block: JSONObject) -> AnyPart | None:
    id, content, failed = block.get("tool_use_id"), block.get("content"), block.get("is_error")
    residual = rest(block, frozenset({"type", "tool_use_id", "content", "is_error"}))
    parts: list[AnyPart] = []
    if isinstance(content, str):
        parts = [Text(text=content)] if content else []
        if not parts or not content:
            residual["form"] = "empty"
    elif is_array(content):
        parts = [load_block(b) for b in content]
        alone = len(parts) == 1 and type(parts[0]) is Text and parts[0].extras is None
        if (alone and not cast(Text, parts[0]).citations) or not parts:
            residual["form"] = "list"
    if failed is False:
        residual["is_error"] = False
    return ToolResult(
        call_id=id if isinstance(id, str) else None,
        content=tuple(map(_result_part, parts, content if is_array(content) else [content])),
        outcome="error" if failed else "ok",
        extras=extras(API, residual),
    )


def _result_part(part: AnyPart, block: JSON) -> ResultPart:
    """A part of a result; a block that no result should hold stays a block."""
    if isinstance(part, ResultPart):
        return part
    kind = kind_of(block) if is_object(block) else "content"
    return Native(api=API, kind=kind, block=block)


def _load_media(block: JSONObject) -> AnyPart | None:
    source, title = block.get("source"), block.get("title")
    if not is_object(source) or not isinstance(title, (str, type(None))):
        return None
    known: dict[str, tuple[str, ...]] = {
        "base64": ("media_type", "data"),
        "text": ("media_type", "data"),
        "url": ("url",),
        "file": ("file_id",),
    }
    kind = str(source.get("type"))
    fields: dict[str, Any] = {k: source.get(k) for k in known.get(kind, ())}
    if not fields or not all(isinstance(v, str) for v in fields.values()):
        return None
    residual = rest(block, frozenset({"type", "source", "title"}))
    if inner := rest(source, frozenset({"type", *fields})):
        residual["source"] = inner
    if kind == "base64":
        fields["data"] = from_base64(fields["data"])
        if fields["data"] is None:
            return None
    elif kind == "text":
        fields["data"] = fields["data"].encode("utf-8", "surrogatepass")
        residual["plain"] = True
    return Media(kind=block["type"], name=title, extras=extras(API, residual), **fields)


def _load_document(block: JSONObject) -> AnyPart | None:
    source = block.get("source")
    if is_object(source) and source.get("type") == "content":
        return _load_quoted(block)
    return _load_media(block)


def _load_quoted(block: JSONObject) -> AnyPart | None:
    """Text that is quoted from somewhere: other APIs get its words, this one the block itself."""
    quoted = block.get("content")
    if is_object(source := block.get("source")):
        quoted = source.get("content")
    texts = [quoted] if isinstance(quoted, str) else [b.get("text") for b in objects(quoted)]
    about = [t for t in (block.get("title"), block.get("source")) if isinstance(t, str)]
    words = [text for text in (*about, *texts) if isinstance(text, str) and text]
    if not words or len(words) != len(about) + len(texts):
        return None  # there are images in it, or nothing at all
    return Text(text="\n".join(words))


LOADERS: dict[str, Callable[[JSONObject], AnyPart | None]] = {
    "text": _load_text,
    "thinking": _load_thinking,
    "redacted_thinking": _load_redacted,
    "tool_use": _load_call,
    "tool_result": _load_result,
    "image": _load_media,
    "document": _load_document,
    "search_result": _load_quoted,
    **dict.fromkeys(SERVER_CALLS, _load_hosted_call),
}


# -- blocks out ----------------------------------------------------------------------------------

_decode = msgspec.json.Decoder().decode


def dump_block(part: AnyPart) -> JSON:
    """A part as a block."""
    x = part.extra(API)
    if "$raw" in x:
        block = copied(x["$raw"])
        if isinstance(part, ToolCall):
            block["id"] = part.id
        elif isinstance(part, ToolResult):
            block["tool_use_id"] = part.call_id
        return block
    return DUMPERS[type(part)](part, x)


def _dump_text(part: Text, x: JSONObject) -> JSON:
    block: JSONObject = {"type": "text", "text": part.text}
    if part.citations:
        block["citations"] = [_dump_citation(c) for c in part.citations]
    if x:
        block.update(x)
    return block


def _dump_reasoning(part: Reasoning, x: JSONObject) -> JSON:
    if part.kind == "encrypted":
        return {"type": "redacted_thinking", "data": part.data, **x}
    block: JSONObject = {"type": "thinking", "thinking": part.text}
    if part.signature is not None:
        block["signature"] = part.signature
    if x:
        block.update(x)
    return block


def _dump_call(part: ToolCall, x: JSONObject) -> JSON:
    block = {"type": "tool_use", "id": part.id, "name": part.name, "input": input_of(part)}
    if x:
        block.update(x)
    if part.id is None:
        del block["id"]
    return block


def input_of(call: ToolCall) -> JSONObject:
    """The arguments of a call as the object that this API wants.

    Arguments that are no object are wrapped, so that the model sees what it wrote.
    """
    if call.kind == "function":
        try:
            value = _decode(call.raw)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            value = None
        if type(value) is dict:
            return cast(JSONObject, value)
    arguments = call.arguments
    if arguments or call.malformed is None:
        return {**mend_json(arguments)}
    return {"_raw": mend_json(call.raw)}


def _dump_hosted(part: Hosted, x: JSONObject) -> JSON:
    if part.input is not UNSET:
        kind = x.get("type", "server_tool_use")
        others = {k: v for k, v in x.items() if k != "type"} if x else x
        return {"type": kind, "id": part.id, "name": part.tool, "input": part.input, **others}
    kind = f"{part.tool}_tool_result"
    return {"type": kind, "tool_use_id": part.id, "content": part.output, **x}


def _dump_result(part: ToolResult, x: JSONObject) -> JSON:
    block: JSONObject = {"type": "tool_result", "tool_use_id": part.call_id}
    content, form = part.content, x.get("form") if x else None
    only = content[0] if len(content) == 1 and form != "list" else None
    if type(only) is Text and not only.citations and not (only.extras and only.extra(API)):
        block["content"] = only.text
    elif type(only) is Json and not only.extra(API):
        block["content"] = json_text(only.value)
    elif content or form == "list":
        block["content"] = [dump_block(p) for p in content]
    elif form == "empty":
        block["content"] = ""
    if part.outcome != "ok":
        block["is_error"] = True
    if x:
        block.update((k, v) for k, v in x.items() if k != "form")
    if part.call_id is None:
        del block["tool_use_id"]
    return block


def _dump_media(part: Media, x: JSONObject) -> JSON:
    if part.data is not None and x.get("plain"):
        text = part.data.decode("utf-8", "replace")
        source: JSONObject = {"type": "text", "media_type": part.media_type, "data": text}
    elif part.data is not None:
        data = to_base64(part.data)
        source = {"type": "base64", "media_type": part.media_type, "data": data}
    elif part.file_id is not None:
        source = {"type": "file", "file_id": part.file_id}
    else:
        source = {"type": "url", "url": part.url}
    block: JSONObject = {"type": part.kind, "source": {**source, **x.get("source", {})}}
    if part.name is not None and part.kind == "document":
        block["title"] = part.name
    block.update((k, v) for k, v in x.items() if k not in {"plain", "source"})
    return block


def _dump_json(part: Json, x: JSONObject) -> JSON:
    return {"type": "text", "text": json_text(part.value), **x}


def _dump_native(part: Native, _: JSONObject) -> JSON:
    return copied(part.block)


DUMPERS: dict[type, Callable[[Any, JSONObject], JSON]] = {
    Text: _dump_text,
    Reasoning: _dump_reasoning,
    ToolCall: _dump_call,
    ToolResult: _dump_result,
    Hosted: _dump_hosted,
    Media: _dump_media,
    Json: _dump_json,
    Native: _dump_native,
}
