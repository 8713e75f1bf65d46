"""Faults that public libraries had in reading whole replies, each with the right value."""

from __future__ import annotations

from typing import Any

import pytest

from brute.events.messages import Finish, Hosted, Reasoning, Refusal, Text, ToolCall, Usage
from brute.transports import Anthropic, OpenAI

JSONObject = dict[str, Any]

A, B = "call_8sKd02mf", "call_Zq5TgB3n"


def chat(message: JSONObject, finish: str = "stop", **more: Any) -> JSONObject:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    return {"id": "chatcmpl-1", "model": "gpt-5.4", "choices": [choice], **more}


def claude(*blocks: JSONObject, stop: str = "end_turn", **usage: Any) -> JSONObject:
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": [*blocks],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 12, "output_tokens": 34, **usage},
    }


def wired_call(id: str, name: str, raw: str) -> JSONObject:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": raw}}


def test_cut_arguments_are_kept_and_are_not_the_same_as_none() -> None:
    reply = OpenAI.reply(
        chat({"content": None, "tool_calls": [wired_call(A, "w", '{"city": "Par')]}, "tool_calls")
    )

    [call] = reply.message.tool_calls
    assert call.raw == '{"city": "Par'
    assert call.arguments == {}
    assert call.malformed
    assert call != ToolCall(id=A, name="w", raw="{}")


def test_one_broken_call_loses_nothing_of_the_rest() -> None:
    calls = [wired_call(A, "a", '{"x":1}'), wired_call(B, "b", "{x:1}")]

    reply = OpenAI.reply(chat({"content": "ok", "tool_calls": calls}, "tool_calls"))

    first, second = reply.message.tool_calls
    assert reply.message.content == "ok"
    assert (first.arguments, first.malformed) == ({"x": 1}, None)
    assert (second.raw, bool(second.malformed)) == ("{x:1}", True)


def test_a_text_that_looks_like_json_stays_a_text() -> None:
    raw = '{"todos":"[{\\"t\\":1}]","note":"42"}'

    reply = OpenAI.reply(chat({"content": None, "tool_calls": [wired_call(A, "todo", raw)]}))

    assert reply.message.tool_calls[0].arguments == {"todos": '[{"t":1}]', "note": "42"}


def test_a_refusal_is_a_part_and_goes_back() -> None:
    body = chat({"content": None, "refusal": "I can't help with that."})

    reply = OpenAI.reply(body)

    assert reply.message.parts == (Refusal(text="I can't help with that."),)
    assert reply.finish == "refusal"
    dumped = OpenAI.dump(reply.message)
    assert dumped == {"role": "assistant", "content": None, "refusal": "I can't help with that."}


def test_a_hosted_search_comes_back_block_by_block_and_elsewhere_only_its_words() -> None:
    use = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    hit = {
        "type": "web_search_result",
        "url": "https://example.com",
        "title": "Ex",
        "encrypted_content": "EqgfCio=",
        "page_age": None,
    }
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [hit]}
    cite = {
        "type": "web_search_result_location",
        "cited_text": "y",
        "url": "https://example.com",
        "title": "Ex",
        "encrypted_index": "Eo8B",
    }
    cited = {"type": "text", "text": "X is y.", "citations": [cite]}

    reply = Anthropic.reply(claude(use, found, cited))

    assert [type(p) for p in reply.message.parts] == [Hosted, Hosted, Text]
    assert reply.message.tool_calls == []
    assert Anthropic.dump(reply.message)["content"] == [use, found, cited]
    assert OpenAI.dump_all([reply.message]) == [{"role": "assistant", "content": "X is y."}]


def test_tokens_are_counted_alike() -> None:
    counted = Anthropic.usage(
        claude(
            {"type": "text", "text": "hi"},
            input_tokens=10,
            cache_creation_input_tokens=1733,
            cache_read_input_tokens=512,
            output_tokens=50,
            output_tokens_details={"thinking_tokens": 40},
        )
    )
    other = OpenAI.usage(
        chat(
            {"content": "hi"},
            usage={
                "prompt_tokens": 2255,
                "completion_tokens": 50,
                "total_tokens": 2305,
                "prompt_tokens_details": {"cached_tokens": 512, "cache_write_tokens": 1733},
                "completion_tokens_details": {"reasoning_tokens": 40},
            },
        )
    )

    assert counted == other
    assert counted == Usage(input=2255, output=50, reasoning=40, cache_read=512, cache_write=1733)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        (
            {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": None},
            Usage(input=3, output=2),
        ),
        (
            {"prompt_tokens": 3, "completion_tokens": 2, "prompt_cache_hit_tokens": 1},
            Usage(
                input=3,
                output=2,
                cache_read=1,
                extras={OpenAI.api: {"prompt_cache_hit_tokens": 1}},
            ),
        ),
        (  # xAI counts reasoning beside the completion
            {
                "prompt_tokens": 3,
                "completion_tokens": 2,
                "total_tokens": 12,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(input=3, output=9, reasoning=7),
        ),
    ],
)
def test_tokens_that_are_not_told_are_none_and_details_are_optional(
    usage: JSONObject | None, expected: Usage | None
) -> None:
    assert OpenAI.usage(chat({"content": "hi"}, usage=usage)) == expected


CALLING: list[JSONObject] = [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}]
SAYING: list[JSONObject] = [{"type": "text", "text": "done"}]


@pytest.mark.parametrize(
    ("stop", "blocks", "finish"),
    [
        ("model_context_window_exceeded", SAYING, "length"),
        ("max_tokens", CALLING, "length"),
        ("a_reason_of_tomorrow", SAYING, "other"),
        ("tool_use", SAYING, "stop"),
        ("end_turn", CALLING, "tool_calls"),
        ("pause_turn", SAYING, "pause"),
        ("refusal", SAYING, "refusal"),
        ("stop_sequence", SAYING, "stop"),
    ],
)
def test_why_a_reply_ended_fits_what_it_holds_and_the_raw_word_is_kept(
    stop: str, blocks: list[JSONObject], finish: Finish
) -> None:
    assert Anthropic.finish(claude(*blocks, stop=stop)) == (finish, stop)


@pytest.mark.parametrize(
    ("word", "calls", "finish"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("tool_calls", False, "stop"),
        ("length", True, "length"),
        ("content_filter", False, "content_filter"),
        ("MALFORMED_FUNCTION_CALL", False, "other"),
        ("", True, "tool_calls"),
        ("eos", False, "stop"),
    ],
)
def test_chat_finishes_fit_what_the_reply_holds(word: str, calls: bool, finish: Finish) -> None:
    called = {"tool_calls": [wired_call(A, "f", "{}")]} if calls else {}

    assert OpenAI.finish(chat({"content": "x", **called}, word)) == (finish, word or None)


def test_blocks_are_read_by_their_kind_and_not_by_their_place() -> None:
    blocks = [
        {"type": "thinking", "thinking": "t", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "Ug=="},
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]

    message = Anthropic.reply(claude(*blocks)).message

    assert message.parts == (
        Reasoning(text="t", signature="c2ln"),
        Reasoning(kind="encrypted", data="Ug=="),
        Text(text="a"),
        Text(text="b"),
    )
    assert message.content == "ab"


def test_of_several_choices_each_is_a_message_and_the_first_is_the_reply() -> None:
    body = chat({"content": "one"})
    second = {"index": 1, "finish_reason": "length", "message": {"content": "two"}}
    body["choices"].append(second)

    assert [m.content for m in OpenAI.wrap_each(body)] == ["one", "two"]
    reply = OpenAI.reply(body)
    assert (reply.message.content, reply.finish) == ("one", "stop")


def test_who_issued_a_reply_is_on_it() -> None:
    plain = Anthropic.reply(claude(*SAYING)).message.origin
    bedrock = Anthropic.reply({**claude(*SAYING), "id": "msg_bdrk_01"}).message.origin
    azure = OpenAI.reply(chat({"content": "x"}, prompt_filter_results=[])).message.origin

    assert plain is not None
    assert (plain.provider, plain.api, plain.model) == (
        "anthropic",
        "anthropic.messages",
        "claude-sonnet-4-6",
    )
    assert bedrock is not None
    assert bedrock.platform == "bedrock"
    assert azure is not None
    assert (azure.platform, azure.model) == ("azure", "gpt-5.4")
