"""Histories as people write them with an SDK: its objects among the dicts."""

from __future__ import annotations

from typing import Any

from anthropic.types import Message as ClaudeMessage
from openai.types.chat import ChatCompletionMessage

from brute.events.messages import ToolCall
from brute.transports import Anthropic, OpenAI
from brute.transports.sdk_objects import without_objects

CLAUDE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-4-8",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "tool_use", "id": "tu", "name": "f", "input": {"a": 1}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
RESULT = {"type": "tool_result", "tool_use_id": "tu", "content": "r"}


def test_the_content_of_a_reply_object_is_a_history_like_its_json() -> None:
    reply = ClaudeMessage.model_validate(CLAUDE)

    def history(content: Any) -> list[Any]:
        return [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": content},
            {"role": "user", "content": [RESULT]},
        ]

    written, plain = history(reply.content), history(CLAUDE["content"])

    assert Anthropic.load_all(written) == Anthropic.load_all(plain)
    assert Anthropic.dump_all(Anthropic.load_all(written)) == plain
    assert [v for v in Anthropic.check(written) if v.grade == "hard"] == []


def test_a_message_object_among_dicts_is_not_lost() -> None:
    message = ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "i", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        }
    )
    given = (
        {"role": "user", "content": "q"},
        message,
        {"role": "tool", "tool_call_id": "i", "content": "x"},
    )

    loaded = OpenAI.load_all({"model": "m", "messages": given})

    assert [m.role for m in loaded] == ["user", "assistant", "tool"]
    assert isinstance(loaded[1].parts[0], ToolCall)
    assert [v for v in OpenAI.check(list(given)) if v.grade == "hard"] == []  # type: ignore[arg-type]


def test_what_is_plain_is_given_back_as_it_is() -> None:
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}

    assert without_objects(body) is body
