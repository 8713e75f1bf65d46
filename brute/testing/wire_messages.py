"""Anthropic Messages as it stands on the wire: one JSON body, or events from block to block."""

from __future__ import annotations

import json
from collections.abc import Iterator

from brute.testing.wire_messages_rules import refusal
from brute.testing.wire_script import (
    Call,
    Exchange,
    Failure,
    JSONObject,
    Reply,
    Request,
    Tokens,
    WireProtocol,
    compact,
    is_object,
    thinking_signature,
)

FINISH = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "pause": "pause_turn",
}
"""Our words to Anthropic's, where they differ."""

ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Status to `error.type`; another 4xx is an `invalid_request_error`, another 5xx an `api_error`."""


def streams(request: Request) -> bool:
    """Whether the request asks for server-sent events."""
    return request.body.get("stream") is True


def body(reply: Reply, exchange: Exchange) -> JSONObject:
    """The whole reply as a `message`.

    Raises:
        ValueError: A call's arguments are not an object, which only a stream can carry.
    """
    content: list[JSONObject] = []
    if reply.thinking is not None:
        signature = thinking_signature(reply.thinking)
        content.append({"type": "thinking", "thinking": reply.thinking, "signature": signature})
    if reply.text is not None:
        content.append({"type": "text", "text": reply.text})
    content += ({**_tool_use(call, exchange), "input": _input(call)} for call in reply.calls)
    return {
        **_envelope(exchange),
        "content": content,
        **_ending(reply),
        "usage": _usage(reply, exchange),
    }


def frames(reply: Reply, exchange: Exchange) -> Iterator[bytes]:
    """The reply as events: start, each block's start, deltas and stop, the ending, stop."""
    counted = _usage(reply, exchange)
    opening: JSONObject = {
        **_envelope(exchange),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {**counted, "output_tokens": 1},
    }
    yield _frame("message_start", message=opening)
    for index, (block, deltas) in enumerate(_blocks(reply, exchange)):
        yield _frame("content_block_start", index=index, content_block=block)
        if index == 0:
            yield _frame("ping")
        for delta in deltas:
            yield _frame("content_block_delta", index=index, delta=delta)
        yield _frame("content_block_stop", index=index)
    del counted["service_tier"]
    yield _frame("message_delta", delta=_ending(reply), usage=counted)
    yield _frame("message_stop")


def _blocks(reply: Reply, exchange: Exchange) -> Iterator[tuple[JSONObject, Iterator[JSONObject]]]:
    """Each block as it starts, with the deltas that fill it."""
    if reply.thinking is not None:
        empty = {"type": "thinking", "thinking": "", "signature": ""}
        yield empty, _thinking_deltas(reply.thinking, exchange)
    if reply.text is not None:
        pieces = exchange.deltas(reply.text)
        yield {"type": "text", "text": ""}, ({"type": "text_delta", "text": p} for p in pieces)
    for call in reply.calls:
        yield {**_tool_use(call, exchange), "input": {}}, _input_deltas(call, exchange)


def _thinking_deltas(thinking: str, exchange: Exchange) -> Iterator[JSONObject]:
    for piece in exchange.deltas(thinking):
        yield {"type": "thinking_delta", "thinking": piece}
    yield {"type": "signature_delta", "signature": thinking_signature(thinking)}


def _input_deltas(call: Call, exchange: Exchange) -> Iterator[JSONObject]:
    """The first delta is empty, and stays the only one when there are no arguments."""
    yield {"type": "input_json_delta", "partial_json": ""}
    for piece in exchange.deltas("" if call.text == "{}" else call.text):
        yield {"type": "input_json_delta", "partial_json": piece}


def _tool_use(call: Call, exchange: Exchange) -> JSONObject:
    return {"type": "tool_use", "id": exchange.call_id(call, "toolu_"), "name": call.name}


def _input(call: Call) -> JSONObject:
    try:
        value = json.loads(call.text)
    except ValueError:
        value = None
    if not is_object(value):
        raise ValueError(
            f"{call}: a plain Anthropic reply carries arguments as an object, so only a stream "
            "can hold a text that is none; ask with stream=True, or script a RawBody"
        )
    return value


def _ending(reply: Reply) -> JSONObject:
    word = reply.finish_word()
    details = (
        None
        if reply.refusal is None
        else {"type": "refusal", "category": None, "explanation": reply.refusal}
    )
    return {
        "stop_reason": FINISH.get(word, word),
        "stop_sequence": None,
        "stop_details": details,
    }


def _envelope(exchange: Exchange) -> JSONObject:
    return {
        "id": f"msg_{exchange.request.number:06d}",
        "type": "message",
        "role": "assistant",
        "model": exchange.model,
    }


def _usage(reply: Reply, exchange: Exchange) -> JSONObject:
    return usage(reply.tokens(exchange.request))


def usage(tokens: Tokens) -> JSONObject:
    """Anthropic's count: `input_tokens` are those the cache neither had nor took."""
    return {
        "input_tokens": tokens.input - tokens.cache_read - tokens.cache_write,
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "output_tokens": tokens.output,
        "output_tokens_details": {"thinking_tokens": tokens.reasoning},
        "service_tier": "standard",
    }


def error(failure: Failure, request_id: str) -> JSONObject:
    """An error as Anthropic says it."""
    other = "invalid_request_error" if failure.status < 500 else "api_error"
    kind = failure.type or ERRORS.get(failure.status, other)
    return {
        "type": "error",
        "error": {"type": kind, "message": failure.message},
        "request_id": request_id,
    }


def error_frame(failure: Failure, request_id: str) -> bytes:
    """The same in a stream that has begun: an event named `error`."""
    return f"event: error\ndata: {compact(error(failure, request_id))}\n\n".encode()


def _frame(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {compact({'type': kind, **fields})}\n\n".encode()


MESSAGES = WireProtocol(
    api="anthropic.messages",
    sdk="anthropic",
    base="",
    path=r"/v1/messages",
    request_id_header="request-id",
    marker="anthropic-version",
    streams=streams,
    body=body,
    frames=frames,
    error=error,
    error_frame=error_frame,
    refusal=refusal,
)
