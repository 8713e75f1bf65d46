"""Messages of Chat Completions, written: parts become members again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from brute.events.jsontypes import JSON, JSONObject
from brute.events.messages import (
    AnyPart,
    Citation,
    Hosted,
    Json,
    Media,
    Message,
    Native,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from brute.transports.openai_blocks import API, dump_block
from brute.transports.wire import (
    is_object,
    json_text,
)

DETAILS = {
    "reasoning.text": "thinking",
    "reasoning.summary": "summary",
    "reasoning.encrypted": "encrypted",
}
DETAIL_TYPES = {kind: word for word, kind in DETAILS.items()}

CITED = {
    "url": "url",
    "title": "title",
    "content": "quote",
    "start_index": "start",
    "end_index": "end",
}
"""Members of a url_citation and our fields for them."""


def write(message: Message) -> list[JSONObject]:
    """One message for the wire; a tool message may be several."""
    if message.role == "tool" and "$raw" not in message.extra(API):
        return [_write_result(p, message) for p in message.parts if type(p) is ToolResult]
    return [write_one(message)]


def write_one(message: Message) -> JSONObject:
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
        out["content"] = [dump_block(only)] if only.extra(API) else only.text
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
    elif content or not is_own(message):
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
    if "verbatim" in x:  # a kind of call that is new to us
        return {**x["verbatim"], "id": call.id}
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


def _dump_citation(citation: Citation) -> JSON:
    x = (citation.extras or {}).get(API, {})
    if citation.kind == "native":
        return x.get("block")
    said = {t: v for t, o in CITED.items() if (v := getattr(citation, o)) is not None}
    inner = {k: v for k, v in x.items() if k != "around"}
    return {"type": "url_citation", "url_citation": {**said, **inner}, **x.get("around", {})}
