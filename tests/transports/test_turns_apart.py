"""Whole replies stay apart, whatever stands between a call and its result."""

from __future__ import annotations

from typing import Any

import brute
from brute.events.messages import Message, Origin, ToolCall
from brute.testing import provider_refusal
from brute.transports import Anthropic, OpenAI

MODEL = "claude-opus-4-8"
CLAUDE = Origin(api="anthropic.messages", provider="anthropic", model=MODEL)


def said(call: ToolCall, origin: Origin = CLAUDE) -> Message:
    return Message(role="assistant", parts=(call,), origin=origin)


def test_system_text_between_unanswered_calls_does_not_poison_the_session() -> None:
    with brute.open(":memory:") as log:
        session = log.start()
        session.user("go")
        numbers = iter(range(9))

        @brute.run(Anthropic)
        def claude(request: dict[str, Any]) -> dict[str, Any]:
            assert provider_refusal("anthropic.messages", Anthropic.body(request)) is None
            assert Anthropic.check(request) == []
            call = {"type": "tool_use", "id": f"c{next(numbers)}", "name": "f", "input": {}}
            return {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": [call],
                "stop_reason": "tool_use",
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }

        for _ in range(3):
            session.complete(claude, model=MODEL, max_tokens=5)
            session.system("mid")


def test_what_the_user_said_after_an_interrupt_stays_before_the_next_call() -> None:
    one, two = ToolCall.of("rm", id="c1"), ToolCall.of("ls", id="c2")
    before = [Message.user("go"), said(one), Message.user("STOP! list instead")]
    after = [*before, said(two), Message.tool(two, "a.txt")]

    first = Anthropic.dump_all(before, model=MODEL)
    second = Anthropic.dump_all(after, model=MODEL)

    assert second[: len(first)] == first
    assert [m["role"] for m in second] == ["user", "assistant", "user", "assistant", "user"]


def test_two_calls_of_one_id_are_each_answered() -> None:
    adopted = Origin(api="anthropic.messages")
    call = ToolCall.of("f", id="c1")
    messages = [
        Message.user("q"),
        said(call, adopted),
        said(call, adopted),
        Message.tool("c1", "r"),
    ]

    request = Anthropic.request(messages, model=MODEL, max_tokens=5)

    assert [v for v in Anthropic.check(request) if v.grade == "hard"] == []


def test_an_empty_result_of_another_api_is_an_empty_text() -> None:
    history = Anthropic.load_all(
        [
            {"role": "user", "content": "q"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]},
        ]
    )

    assert OpenAI.dump_all(history)[-1] == {"role": "tool", "tool_call_id": "t1", "content": ""}


def test_a_stream_cut_while_the_model_was_thinking_does_not_poison_the_session() -> None:
    chunk = {
        "id": "c",
        "object": "chat.completion.chunk",
        "model": "deepseek-chat",
        "choices": [
            {
                "index": 0,
                "delta": {"role": "assistant", "content": None, "reasoning_content": "hmm"},
                "finish_reason": None,
            }
        ],
    }
    cut = OpenAI.reply([chunk])

    request = OpenAI.request(
        [Message.user("a"), cut.message, Message.user("b")], model="deepseek-chat"
    )

    assert cut.finish == "interrupted"
    assert cut.message.reasoning == "hmm"
    refused = provider_refusal(
        "openai.chat", OpenAI.body(request), reasoning_field="reasoning_content"
    )
    assert refused is None
