"""Shapes that providers and gateways really send and take, each loaded and dumped as it came."""

from __future__ import annotations

from typing import Any

import pytest

from brute.events.messages import Media, Message, Native, Reasoning, ToolCall
from brute.transports import Anthropic, OpenAI

JSONObject = dict[str, Any]


def call(id: str | None = "c1", **more: Any) -> JSONObject:
    ident = {} if id is None else {"id": id}
    return {**ident, "type": "function", "function": {"name": "f", "arguments": "{}"}, **more}


def assistant(**more: Any) -> JSONObject:
    return {"role": "assistant", **more}


ASKED: JSONObject = {"role": "user", "content": "go"}
RESULT: JSONObject = {"role": "tool", "tool_call_id": "c1", "content": "x"}

CHAT: dict[str, list[JSONObject]] = {
    "content absent beside calls": [assistant(tool_calls=[call()]), RESULT],
    "content null beside calls": [assistant(content=None, tool_calls=[call()]), RESULT],
    "content empty beside calls": [assistant(content="", tool_calls=[call()]), RESULT],
    "content an empty list": [assistant(content=[], tool_calls=[call()], prefix=False), RESULT],
    "content a list of one text": [assistant(content=[{"type": "text", "text": "a"}])],
    "content of a result a list": [
        assistant(content=None, tool_calls=[call()]),
        {**RESULT, "content": [{"type": "text", "text": "a"}]},
    ],
    "a result with a name": [
        assistant(content=None, tool_calls=[call()]),
        {**RESULT, "name": "f"},
    ],
    "a result without content": [
        assistant(content=None, tool_calls=[call()]),
        {"role": "tool", "tool_call_id": "c1"},
    ],
    "a call without a type": [
        assistant(
            content=None,
            tool_calls=[{"id": "c1", "function": {"name": "f", "arguments": "{}"}}],
        ),
        RESULT,
    ],
    "a call without an id": [
        assistant(content=None, tool_calls=[call(None)]),
        {"role": "tool", "content": "x"},
    ],
    "arguments decoded": [
        assistant(
            content=None,
            tool_calls=[call(function={"name": "f", "arguments": {"a": [1, 2.0]}})],
        ),
        RESULT,
    ],
    "arguments empty": [
        assistant(content=None, tool_calls=[call(function={"name": "f", "arguments": ""})]),
        RESULT,
    ],
    "a custom call": [
        assistant(
            content=None,
            tool_calls=[{"id": "c1", "type": "custom", "custom": {"name": "f", "input": "a b"}}],
        ),
        RESULT,
    ],
    "a call of a kind that is new": [
        assistant(content="x", tool_calls=[{"id": "c1", "type": "hologram", "hologram": {}}]),
        RESULT,
    ],
    "a signature on a call": [
        assistant(
            content=None,
            tool_calls=[call(extra_content={"google": {"thought_signature": "c2ln"}})],
        ),
        RESULT,
    ],
    "an id of 80 characters": [
        assistant(content=None, tool_calls=[call("x" * 80)]),
        {**RESULT, "tool_call_id": "x" * 80},
    ],
    "results in another order": [
        assistant(content=None, tool_calls=[call("c1"), call("c2")]),
        {**RESULT, "tool_call_id": "c2"},
        RESULT,
    ],
    "an empty list of calls": [assistant(content="x", tool_calls=[])],
    "the legacy call": [
        assistant(content=None, function_call={"name": "f", "arguments": "{}"}),
        {"role": "function", "name": "f", "content": "x"},
    ],
    "both reasoning members alike": [assistant(content="x", reasoning="r", reasoning_content="r")],
    "both reasoning members unlike": [assistant(content="x", reasoning="r", reasoning_content="s")],
    "an empty reasoning": [assistant(content="x", reasoning_content="")],
    "details and their sum": [
        assistant(
            content="x",
            reasoning="ab",
            reasoning_details=[
                {"type": "reasoning.text", "text": "a", "format": "f", "index": 0},
                {"type": "reasoning.text", "text": "b", "signature": "c2ln", "index": 1},
            ],
        )
    ],
    "details and something else": [
        assistant(
            content="x",
            reasoning="other",
            reasoning_details=[{"type": "reasoning.summary", "summary": "a", "index": 0}],
        )
    ],
    "details that are encrypted": [
        assistant(
            content="x",
            reasoning_details=[
                {"type": "reasoning.encrypted", "data": "ZW5j", "id": "r1", "index": 0},
                {"type": "reasoning.hologram", "beam": 1},
            ],
        )
    ],
    "no details": [assistant(content="x", reasoning_details=[])],
    "thinking inside content": [
        assistant(
            content=[
                {"type": "thinking", "thinking": [{"type": "text", "text": "a"}], "closed": True},
                {"type": "text", "text": "b"},
            ]
        )
    ],
    "thinking of several chunks": [
        assistant(
            content=[
                {
                    "type": "thinking",
                    "thinking": [
                        {"type": "text", "text": "a"},
                        {"type": "reference", "reference_ids": [1]},
                    ],
                }
            ]
        )
    ],
    "a refusal": [assistant(content=None, refusal="no")],
    "a refusal inside content": [assistant(content=[{"type": "refusal", "refusal": "no"}])],
    "citations": [
        assistant(
            content="x",
            annotations=[
                {
                    "type": "url_citation",
                    "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1},
                },
                {"type": "file", "file": {"name": "a"}},
            ],
        )
    ],
    "a spoken audio": [assistant(content=None, audio={"id": "audio_1"})],
    "a prefix": [assistant(content="Dear", prefix=True)],
    "an empty text": [assistant(content="")],
    "a name": [assistant(content="x", name="Bot"), {**ASKED, "name": "Ann Lee"}],
    "an image as a bare address": [
        {"role": "user", "content": [{"type": "image_url", "image_url": "https://a.b/c.png"}]}
    ],
    "an image with a detail": [
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "https://a.b", "detail": "low"}},
                {"type": "text", "text": "what?"},
            ],
        }
    ],
    "a document by address": [
        {"role": "user", "content": [{"type": "document_url", "document_url": "https://a.b"}]}
    ],
    "a file by id": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f1"}}]}],
    "a file that is no base64": [
        {"role": "user", "content": [{"type": "file", "file": {"file_data": "~", "x": 1}}]}
    ],
    "an audio": [
        {
            "role": "user",
            "content": [
                {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "mp3"}},
                {"type": "hologram", "beam": {"of": None}},
            ],
        }
    ],
    "a cache mark": [
        {"role": "system", "content": "x", "cache_control": {"type": "ephemeral"}},
        {
            "role": "user",
            "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
        },
    ],
    "system text in the middle": [ASKED, {"role": "system", "content": "x"}, ASKED],
    "several users": [ASKED, ASKED, ASKED],
    "an unknown member": [assistant(content="x", thinking_blocks=[{"type": "thinking"}])],
    "an unknown role": [{"role": "critic", "content": "x"}],
    "numbers and truths": [{**ASKED, "weights": [1, 1.0, True, None, "1"]}],
}


@pytest.mark.parametrize("history", CHAT.values(), ids=CHAT)
def test_an_accepted_chat_history_goes_back_as_it_came(history: list[JSONObject]) -> None:
    loaded = OpenAI.load_all({"model": "m", "messages": history})

    assert OpenAI.dump_all(loaded) == history
    assert OpenAI.losses(loaded) == []
    assert OpenAI.normal(loaded) == loaded
    assert all(m.origin and m.origin.api == OpenAI.api for m in loaded)


THOUGHT = {"type": "thinking", "thinking": "t", "signature": "c2ln"}
USE = {
    "type": "tool_use",
    "id": "t1",
    "name": "f",
    "input": {"a": 1.0},
    "caller": {"type": "direct"},
}
TEXT = {"type": "text", "text": "a"}


def claude(role: str, *blocks: JSONObject) -> JSONObject:
    return {"role": role, "content": [*blocks]}


def told(**more: Any) -> JSONObject:
    return claude("user", {"type": "tool_result", "tool_use_id": "t1", **more})


SAID: JSONObject = {"role": "user", "content": "go"}
ANTHROPIC: dict[str, list[JSONObject]] = {
    "content a text": [SAID, {"role": "assistant", "content": "a"}],
    "several messages of a user": [SAID, claude("user", TEXT), SAID, claude("user", TEXT, TEXT)],
    "the assistant first": [claude("assistant", TEXT), SAID],
    "a prefill": [SAID, claude("assistant", {"type": "text", "text": "Dear "})],
    "a blank text": [SAID, claude("assistant", {"type": "text", "text": " "}, TEXT), SAID],
    "a result without content": [SAID, claude("assistant", USE), told()],
    "a result with an empty text": [SAID, claude("assistant", USE), told(content="")],
    "a result with an empty list": [SAID, claude("assistant", USE), told(content=[])],
    "a result as a text": [SAID, claude("assistant", USE), told(content="x")],
    "a result as a list": [SAID, claude("assistant", USE), told(content=[TEXT])],
    "a result that is no error": [
        SAID,
        claude("assistant", USE),
        told(content="x", is_error=False),
    ],
    "a result that is an error": [SAID, claude("assistant", USE), told(content="x", is_error=True)],
    "a result with media and references": [
        SAID,
        claude("assistant", USE),
        told(
            content=[
                {"type": "tool_reference", "tool_name": "f"},
                {"type": "image", "source": {"type": "url", "url": "https://a.b"}},
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "é"},
                    "title": "T",
                    "context": "c",
                },
            ]
        ),
    ],
    "a word before a result": [
        SAID,
        claude("assistant", USE),
        claude("user", TEXT, told(content="x")["content"][0], TEXT),
    ],
    "a result and then a message of its own": [
        SAID,
        claude("assistant", USE),
        told(content="x"),
        claude("user", TEXT),
    ],
    "calls of one reply in two messages": [
        SAID,
        claude("assistant", USE),
        claude("assistant", {**USE, "id": "t2"}),
        claude(
            "user",
            told(content="x")["content"][0],
            {"type": "tool_result", "tool_use_id": "t2", "content": "y"},
        ),
    ],
    "ids that come again": [SAID, *[claude("assistant", USE), told(content="x")] * 2],
    "thinking and redacted thinking": [
        SAID,
        claude("assistant", THOUGHT, {"type": "redacted_thinking", "data": "UkVE"}, TEXT),
        SAID,
    ],
    "a cache mark on a call": [
        SAID,
        claude("assistant", {**USE, "cache_control": {"type": "ephemeral", "ttl": "1h"}}),
        told(content="x", cache_control={"type": "ephemeral"}),
    ],
    "a tool that the provider ran": [
        SAID,
        claude(
            "assistant",
            {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {}},
            {
                "type": "code_execution_tool_result",
                "tool_use_id": "s1",
                "content": {"type": "code_execution_tool_result_error", "error_code": "x"},
            },
            TEXT,
        ),
        SAID,
    ],
    "a tool of an mcp server": [
        SAID,
        claude(
            "assistant",
            {"type": "mcp_tool_use", "id": "m1", "name": "f", "server_name": "s", "input": {}},
            {
                "type": "mcp_tool_result",
                "tool_use_id": "m1",
                "is_error": False,
                "content": [TEXT],
            },
        ),
        SAID,
    ],
    "code that calls tools, answered in the next reply": [
        SAID,
        claude(
            "assistant",
            {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {}},
            {**USE, "caller": {"type": "code_execution_20250825", "tool_id": "s1"}},
        ),
        told(content="x"),
        claude(
            "assistant",
            {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}},
            TEXT,
        ),
        SAID,
    ],
    "blocks of the container and of tomorrow": [
        claude("user", {"type": "container_upload", "file_id": "f"}, TEXT),
        claude("assistant", {"type": "compaction", "content": "c"}, {"type": "hologram", "b": [1]}),
        SAID,
    ],
    "system text that adds a tool": [
        SAID,
        claude("system", {"type": "tool_addition", "tool": {"type": "tool_reference"}}),
        claude("assistant", TEXT),
        SAID,
    ],
    "an image that is no base64": [
        claude(
            "user",
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "A"},
            },
        )
    ],
}


@pytest.mark.parametrize("history", ANTHROPIC.values(), ids=ANTHROPIC)
def test_an_accepted_anthropic_history_goes_back_as_it_came(history: list[JSONObject]) -> None:
    loaded = Anthropic.load_all({"model": "claude-opus-4-8", "messages": history})

    assert Anthropic.dump_all(loaded) == history
    assert Anthropic.losses(loaded) == []
    assert Anthropic.normal(loaded) == loaded


def test_strictly_the_same_means_that_two_is_not_two_point_nought() -> None:
    decoded = {"input": {"a": 2.0, "b": 2, "c": True}}
    history = [SAID, claude("assistant", {**USE, **decoded}), told(content="x")]

    [_, wired, _] = Anthropic.dump_all(Anthropic.load_all(history))

    assert repr(wired["content"][0]["input"]) == "{'a': 2.0, 'b': 2, 'c': True}"


def test_what_a_gateway_zeroes_is_not_there() -> None:
    zeros = {
        "role": "assistant",
        "content": "x",
        "refusal": "",
        "annotations": None,
        "audio": {"id": "", "data": "", "expires_at": 0, "transcript": ""},
        "function_call": {"name": "", "arguments": ""},
        "tool_calls": [call(custom={"name": "", "input": ""})],
    }

    [message] = OpenAI.wrap_each({"choices": [{"message": zeros, "finish_reason": ""}]})

    assert OpenAI.dump(message) == {"role": "assistant", "content": "x", "tool_calls": [call()]}
    assert message.tool_calls == [ToolCall(id="c1", name="f", raw="{}")]


def test_the_parts_of_these_shapes_are_what_they_say() -> None:
    def one(history: str) -> Message:
        return OpenAI.load_all(CHAT[history])[0]

    assert one("the legacy call").tool_calls[0].name == "f"
    assert OpenAI.load_all(CHAT["the legacy call"])[1].role == "tool"
    assert one("a custom call").tool_calls[0].arguments == {"input": "a b"}
    assert one("arguments decoded").tool_calls[0].arguments == {"a": [1, 2.0]}
    assert one("thinking inside content").reasoning == "a"
    assert one("both reasoning members alike").reasoning == "r"
    assert [type(p) for p in one("details that are encrypted").parts][:2] == [Reasoning, Native]
    assert isinstance(one("an image as a bare address").parts[0], Media)
    assert one("an unknown role").role == "user"
    assert one("a document by address").parts[0] == Media(
        kind="document",
        url="https://a.b",
        extras={OpenAI.api: {"bare": True, "as": "document_url"}},
    )
