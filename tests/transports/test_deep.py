"""Arguments nested a thousand deep are legal JSON, and the reply that has them was paid for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brute.transports import Anthropic, OpenAI
from tests.brute.replies import chat

DEPTH = 1000


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"a": 1}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("depth", [10, 400, DEPTH])
def test_a_call_with_deep_arguments_is_read_and_goes_back(depth: int) -> None:
    block = {"type": "tool_use", "id": "tu", "name": "f", "input": nested(depth)}
    reply = Anthropic.reply(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-4-8",
            "content": [block],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )

    (call,) = reply.message.tool_calls
    assert call.raw.count("{") == depth + 1
    (said,) = Anthropic.dump_all([reply.message], model="claude-opus-4-8")[-1:]
    assert str(said["content"]).count("tool") >= 1


def test_a_chat_call_with_deep_arguments_is_read() -> None:
    body = chat(None, ("f", {}))
    raw = "[" * DEPTH + "]" * DEPTH
    arguments = json.dumps({"a": 0}).replace("0", raw)
    body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = arguments

    (call,) = OpenAI.reply(body).message.tool_calls

    assert call.raw == arguments
    assert call.malformed is None
