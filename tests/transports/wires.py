"""What providers send, made up: replies of both APIs, and the streams that say the same.

`*_events` cuts a reply into the events of a stream as the provider would, with texts cut at any
places; `sse` writes events as bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

JSONObject = dict[str, Any]

TEXT = st.sampled_from(["a", "Kyoto, dann", "é😀", "日本", "\n\n", '{"a": 1}', "x" * 40]) | st.text(
    st.characters(codec="utf-8"), min_size=1, max_size=12
)
WORD = st.sampled_from(["search", "read_file", "a", "f-1"])
VALUES = st.sampled_from([1, 1.5, True, None, "x", [1, {"b": []}], {"c": "é"}])
ARGUMENTS = st.dictionaries(st.sampled_from(["a", "b", "é"]), VALUES, max_size=2)
CUTS = st.lists(st.integers(1, 7), min_size=1, max_size=4)


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[JSONObject]:
    """Dicts with any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


def pieces(text: str, cuts: list[int]) -> Iterator[str]:
    """The text in pieces as long as `cuts` says, over and over."""
    at = turn = 0
    while at < len(text):
        size = cuts[turn % len(cuts)]
        yield text[at : at + size]
        at, turn = at + size, turn + 1


# -- Chat Completions ------------------------------------------------------------------------------


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@st.composite
def chat_calls(draw: st.DrawFn) -> list[JSONObject]:
    """Calls of functions and custom tools, some with a signature as Gemini gives it."""
    calls: list[JSONObject] = []
    for index in range(draw(st.integers(0, 3))):
        call: JSONObject = {"id": f"call_{index}", "type": "function"}
        raw = draw(ARGUMENTS.map(_compact) | st.sampled_from(["{}", '{"a": 1e2}', '{"a":']))
        call["function"] = {"name": draw(WORD), "arguments": raw}
        if draw(st.booleans()):
            call["extra_content"] = {"google": {"thought_signature": "c2lnbmF0dXJl"}}
        calls.append(call)
    return calls


DETAILS = st.lists(
    st.sampled_from(
        [
            {"type": "reasoning.text", "text": "hm, so", "signature": "c2ln", "index": 0},
            {"type": "reasoning.summary", "summary": "In short", "index": 1},
            {"type": "reasoning.encrypted", "data": "ZW5j", "id": "rs_1", "index": 2},
        ]
    ),
    unique_by=lambda detail: str(detail["index"]),
    min_size=1,
    max_size=3,
)

CHAT_MESSAGES = st.builds(
    lambda content, calls, more: {
        "role": "assistant",
        "content": content,
        **({"tool_calls": calls} if calls else {}),
        **more,
    },
    st.none() | TEXT,
    chat_calls(),
    _some(
        reasoning_content=TEXT,
        reasoning=TEXT,
        reasoning_details=DETAILS,
        refusal=TEXT,
        thinking_blocks=st.just([{"type": "thinking", "thinking": "t"}]),
    ),
)

CHAT_FINISHES = st.sampled_from(["stop", "tool_calls", "length", "content_filter", "function_call"])


@st.composite
def chat_replies(draw: st.DrawFn) -> JSONObject:
    """Whole completions."""
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1790000000,
        "model": draw(st.sampled_from(["gpt-5.4", "deepseek-v4", "my-deployment"])),
        "choices": [
            {
                "index": 0,
                "finish_reason": draw(CHAT_FINISHES),
                "message": draw(CHAT_MESSAGES),
            }
        ],
        **draw(st.sampled_from([{}, {"usage": usage}])),
    }


def chat_events(body: JSONObject, cuts: list[int]) -> list[JSONObject]:
    """The chunks of a stream that says the completion."""
    [choice] = body["choices"]
    message, around = choice["message"], {k: body[k] for k in ("id", "created", "model")}
    deltas = [{"role": "assistant", "content": None}, *_chat_deltas(message, cuts)]
    told: list[tuple[JSONObject, str | None]] = [(delta, None) for delta in deltas]
    chunks: list[JSONObject] = [
        {**around, "object": "chat.completion.chunk", "choices": [_part(delta, finish)]}
        for delta, finish in [*told, ({}, choice["finish_reason"])]
    ]
    if "usage" in body:
        tail = {"object": "chat.completion.chunk", "choices": [], "usage": body["usage"]}
        chunks.append({**around, **tail})
    return chunks


def _part(delta: JSONObject, finish: str | None) -> JSONObject:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def _chat_deltas(message: JSONObject, cuts: list[int]) -> Iterator[JSONObject]:
    for key in ("reasoning_content", "reasoning", "content", "refusal"):
        if message.get(key):
            yield from ({key: piece} for piece in pieces(message[key], cuts))
    for detail in message.get("reasoning_details") or []:
        yield from _detail_deltas(detail, cuts)
    for index, call in enumerate(message.get("tool_calls") or []):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield {"tool_calls": [{**call, "index": index, "function": function}]}
        for piece in pieces(call["function"]["arguments"], cuts):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
    if "thinking_blocks" in message:
        yield {"thinking_blocks": message["thinking_blocks"]}


def _detail_deltas(detail: JSONObject, cuts: list[int]) -> Iterator[JSONObject]:
    key = {"reasoning.text": "text", "reasoning.summary": "summary"}.get(detail["type"], "data")
    same = {k: v for k, v in detail.items() if k in {"type", "index", "id"}}
    for piece in pieces(detail[key], cuts):
        yield {"reasoning_details": [{**same, key: piece}]}
    if "signature" in detail:
        yield {"reasoning_details": [{**same, "signature": detail["signature"]}]}


# -- Anthropic Messages ----------------------------------------------------------------------------

SEARCH_USE = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "x"},
}
SEARCH_RESULT = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {
            "type": "web_search_result",
            "url": "https://example.com",
            "title": "Ex",
            "encrypted_content": "EqgfCio=",
            "page_age": None,
        }
    ],
}
CITATION = {
    "type": "web_search_result_location",
    "cited_text": "y",
    "url": "https://example.com",
    "title": "Ex",
    "encrypted_index": "Eo8B",
}

THINKING = st.builds(lambda t: {"type": "thinking", "thinking": t, "signature": "U0lH"}, TEXT)
LONE_BLOCKS = st.one_of(
    THINKING,
    st.just({"type": "thinking", "thinking": "", "signature": "UzA="}),
    st.just({"type": "redacted_thinking", "data": "UkVE"}),
    st.builds(lambda t: {"type": "text", "text": t}, TEXT.filter(str.strip)),
    st.just({"type": "text", "text": "X is y.", "citations": [CITATION]}),
    st.just({"type": "hologram", "beam": {"of": [1, 2.5]}}),
)
PAIRS = st.sampled_from([[SEARCH_USE, SEARCH_RESULT]])


@st.composite
def messages_blocks(draw: st.DrawFn) -> list[JSONObject]:
    """The content of a reply: thinking, texts, hosted pairs, new kinds, and calls at the end."""
    runs = draw(st.lists(LONE_BLOCKS.map(lambda b: [b]), max_size=3))
    if draw(st.booleans()):
        runs.insert(draw(st.integers(0, len(runs))), draw(PAIRS))
    blocks = [block for run in runs for block in run]
    for index in range(draw(st.integers(0, 2))):
        caller = {"caller": {"type": "direct"}} if draw(st.booleans()) else {}
        call = {"type": "tool_use", "id": f"toolu_{index}", "name": draw(WORD)}
        blocks.append({**call, "input": draw(ARGUMENTS), **caller})
    return blocks


STOPS = st.sampled_from(
    ["end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal", "pause_turn", "a_new_one"]
)


@st.composite
def messages_replies(draw: st.DrawFn) -> JSONObject:
    """Whole messages of the model."""
    usage = {"input_tokens": 12, "output_tokens": 34, "cache_read_input_tokens": 5}
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": draw(st.sampled_from(["claude-sonnet-4-6", "claude-opus-4-8"])),
        "content": draw(messages_blocks()),
        "stop_reason": draw(STOPS),
        "stop_sequence": None,
        "usage": usage,
    }


def messages_events(body: JSONObject, cuts: list[int]) -> list[JSONObject]:
    """The events of a stream that says the message."""
    usage = {**body["usage"], "output_tokens": 1}
    start = {**body, "content": [], "stop_reason": None, "usage": usage}
    events: list[JSONObject] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(body["content"]):
        opened, deltas = _opened(block, cuts)
        events.append({"type": "content_block_start", "index": index, "content_block": opened})
        events += (
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        )
        events.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    tokens = {"output_tokens": body["usage"]["output_tokens"]}
    events.append({"type": "message_delta", "delta": ended, "usage": tokens})
    return [*events, {"type": "message_stop"}]


def _opened(block: JSONObject, cuts: list[int]) -> tuple[JSONObject, list[JSONObject]]:
    """A block as it opens, and the deltas that fill it."""
    kind = block["type"]
    if kind == "text":
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"], cuts)]
        cites = block.get("citations", [])
        deltas += ({"type": "citations_delta", "citation": cite} for cite in cites)
        return {"type": "text", "text": ""}, deltas
    if kind == "thinking":
        texts = pieces(block["thinking"], cuts)
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in texts]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if kind in {"tool_use", "server_tool_use"}:
        text = _compact(block["input"]) if block["input"] else ""
        deltas = [{"type": "input_json_delta", "partial_json": ""}]
        deltas += (
            {"type": "input_json_delta", "partial_json": piece} for piece in pieces(text, cuts)
        )
        return {**block, "input": {}}, deltas
    return block, []


# -- as bytes --------------------------------------------------------------------------------------


def sse(events: list[JSONObject], *, done: bool = False) -> bytes:
    """Events as server-sent events, named where the event has a type."""
    frames = [
        (f"event: {e['type']}\n" if "type" in e else "") + f"data: {_compact(e)}\n\n"
        for e in events
    ]
    return ("".join(frames) + ("data: [DONE]\n\n" if done else "")).encode()


def chopped(data: bytes, cuts: list[int]) -> list[bytes]:
    """Bytes in chunks as long as `cuts` says, over and over; inside characters too."""
    out: list[bytes] = []
    at = turn = 0
    while at < len(data):
        size = cuts[turn % len(cuts)]
        out.append(data[at : at + size])
        at, turn = at + size, turn + 1
    return out


Events = Callable[[JSONObject, list[int]], list[JSONObject]]
