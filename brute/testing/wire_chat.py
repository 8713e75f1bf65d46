"""OpenAI Chat Completions on the wire: one JSON body, or chunks that end in `[DONE]`."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus

from brute.testing.wire_chat_rules import refusal
from brute.testing.wire_script import (
    CREATED,
    JSON,
    Exchange,
    Failure,
    JSONObject,
    Reply,
    Request,
    Tokens,
    WireProtocol,
    compact,
    is_object,
)

FINISH = {"refusal": "stop"}
"""Only the words that differ: OpenAI ends a refusal as it ends a text."""

ERRORS: dict[int, tuple[str, str | None]] = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "not_found"),
    405: ("invalid_request_error", "method_not_supported"),
    429: ("requests", "rate_limit_exceeded"),
}
"""Status to `error.type` and `error.code`; every other status is a `server_error`."""


def streams(request: Request) -> bool:
    """Whether the request asks for server-sent events."""
    return request.body.get("stream") is True


def body(reply: Reply, exchange: Exchange) -> JSONObject:
    """The whole reply as a `chat.completion`."""
    message: JSONObject = {"role": "assistant", "content": _content(reply)}
    if exchange.settings.reasoning_field is not None and reply.thinking is not None:
        message[exchange.settings.reasoning_field] = reply.thinking
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": exchange.call_id(call, "call_"),
                "type": "function",
                "function": {"name": call.name, "arguments": call.text},
            }
            for call in reply.calls
        ]
    message |= {"refusal": reply.refusal, "annotations": []}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
    return {
        **_envelope(exchange, "chat.completion"),
        "choices": [choice],
        "usage": usage(reply.tokens(exchange.request)),
    }


def frames(reply: Reply, exchange: Exchange) -> Iterator[bytes]:
    """The reply as `chat.completion.chunk` events, usage last when it was asked for."""
    envelope = _envelope(exchange, "chat.completion.chunk")
    options = exchange.request.body.get("stream_options")
    counted = is_object(options) and options.get("include_usage") is True
    extra: JSONObject = {"usage": None} if counted else {}

    def chunk(delta: JSONObject, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _frame({**envelope, "choices": [choice], **extra})

    content = "" if reply.text is not None else _content(reply)
    yield chunk({"role": "assistant", "content": content, "refusal": None})
    for delta in _deltas(reply, exchange):
        yield chunk(delta)
    yield chunk({}, _finish(reply))
    if counted:
        tokens = reply.tokens(exchange.request)
        yield _frame({**envelope, "choices": [], "usage": usage(tokens)})
    yield b"data: [DONE]\n\n"


def _deltas(reply: Reply, exchange: Exchange) -> Iterator[JSONObject]:
    if exchange.settings.reasoning_field is not None:
        for piece in exchange.deltas(reply.thinking or ""):
            yield {exchange.settings.reasoning_field: piece}
    for piece in exchange.deltas(reply.text or ""):
        yield {"content": piece}
    for piece in exchange.deltas(reply.refusal or ""):
        yield {"refusal": piece}
    for index, call in enumerate(reply.calls):
        opening = {
            "index": index,
            "id": exchange.call_id(call, "call_"),
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        yield {"tool_calls": [opening]}
        for piece in exchange.deltas(call.text):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _content(reply: Reply) -> str | None:
    silent = bool(reply.calls) or reply.refusal is not None
    return reply.text if reply.text is not None else None if silent else ""


def _finish(reply: Reply) -> str:
    word = reply.finish_word()
    return FINISH.get(word, word)


def _envelope(exchange: Exchange, kind: str) -> JSONObject:
    if exchange.request.body.get("n", 1) not in {1, None}:
        raise ValueError("the request asks for several choices (n); the script has one a reply")
    return {
        "id": f"chatcmpl-{exchange.request.number:06d}",
        "object": kind,
        "created": CREATED,
        "model": exchange.model,
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def usage(tokens: Tokens) -> JSONObject:
    """OpenAI's count: the prompt includes the cached tokens, the completion the reasoning."""
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {
            "cached_tokens": tokens.cache_read,
            "cache_write_tokens": tokens.cache_write,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": tokens.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def error(failure: Failure, _request_id: str) -> JSONObject:
    """An error as OpenAI says it; the request id is in the headers alone."""
    kind, code = ERRORS.get(failure.status, ("server_error", None))
    if failure.status < HTTPStatus.INTERNAL_SERVER_ERROR and failure.status not in ERRORS:
        kind = "invalid_request_error"
    return {
        "error": {
            "message": failure.message,
            "type": failure.type or kind,
            "param": failure.param,
            "code": failure.code or (code if failure.type is None else None),
        }
    }


def error_frame(failure: Failure, request_id: str) -> bytes:
    """The same in a stream that has begun: a chunk that is an error."""
    return _frame(error(failure, request_id))


def _frame(data: JSON) -> bytes:
    return f"data: {compact(data)}\n\n".encode()


CHAT = WireProtocol(
    api="openai.chat",
    sdk="openai",
    base="/v1",
    path=r"/v1/chat/completions",
    request_id_header="x-request-id",
    marker=None,
    streams=streams,
    body=body,
    frames=frames,
    error=error,
    error_frame=error_frame,
    refusal=refusal,
)
