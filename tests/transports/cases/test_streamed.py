"""Faults that public libraries had in reading streams, each with the right value."""

from __future__ import annotations

from typing import Any

import pytest

from brute.events.messages import Reasoning, Text, ToolCall
from brute.transports import Anthropic, OpenAI
from brute.transports.shapes import Reply

JSONObject = dict[str, Any]

A, B = "call_8sKd02mf", "call_Zq5TgB3n"


# -- Chat Completions ------------------------------------------------------------------------------


def chunk(delta: JSONObject | None, finish: str | None = None, **more: Any) -> JSONObject:
    choice: JSONObject = {"index": 0, "finish_reason": finish}
    if delta is not None:
        choice["delta"] = delta
    head = {"id": "chatcmpl-s", "object": "chat.completion.chunk", "model": "gpt-5.4"}
    return {**head, "choices": [choice], **more}


def piece(arguments: str | None = None, **more: Any) -> JSONObject:
    """A delta of one call."""
    name = {"name": more.pop("name")} if "name" in more else {}
    return {"tool_calls": [{**more, "function": {**name, "arguments": arguments}}]}


def streamed(*deltas: JSONObject) -> Reply:
    return OpenAI.reply([*map(chunk, deltas), chunk({}, "tool_calls")])


def calls(*deltas: JSONObject) -> list[tuple[str | None, str, str]]:
    return [(c.id, c.name, c.raw) for c in streamed(*deltas).message.tool_calls]


def test_an_id_and_a_name_that_come_again_are_set_once() -> None:
    again = {"index": 0, "id": A, "name": "search"}

    assert calls(piece("", **again), piece('{"q":', **again), piece('"x"}', **again)) == [
        (A, "search", '{"q":"x"}')
    ]


def test_a_pair_of_surrogates_may_be_split_over_deltas() -> None:
    start = piece('{"t":"\\ud83c', index=0, id=A, name="say")

    [call] = streamed(start, piece('\\udf78"}', index=0)).message.tool_calls

    assert call.arguments == {"t": "\U0001f378"}


def test_a_chunk_before_the_first_has_no_id_and_no_choices() -> None:
    preamble = {"id": "", "model": "", "choices": [], "prompt_filter_results": [{}]}

    reply = OpenAI.reply([preamble, chunk({"content": "Hi"}), chunk({}, "stop")])

    assert (reply.response_id, reply.message.content, reply.finish) == ("chatcmpl-s", "Hi", "stop")


def test_a_choice_without_a_delta_says_nothing_new() -> None:
    note = {**chunk(None, content_filter_results={}), "id": ""}

    reply = OpenAI.reply([chunk({"content": "Hi"}), note, chunk({}, "stop")])

    assert (reply.response_id, reply.message.content) == ("chatcmpl-s", "Hi")


def test_without_an_index_an_id_opens_a_call_and_a_piece_continues_the_last() -> None:
    assert calls(
        piece("{}", id="c1", name="a"), piece('{"x":', id="c2", name="b"), piece("1}")
    ) == [
        ("c1", "a", "{}"),
        ("c2", "b", '{"x":1}'),
    ]


def test_an_index_is_a_key_and_no_place() -> None:
    assert calls(
        piece("", index=3, id=B, name="b"),
        piece("", index=1, id=A, name="a"),
        piece('{"x":1', index=1),
        piece('{"y":2}', index=3),
        piece("}", index=1),
    ) == [(A, "a", '{"x":1}'), (B, "b", '{"y":2}')]


@pytest.mark.parametrize("index", [{"index": -1}, {}, {"index": None}])
def test_an_index_that_says_nothing_is_none(index: JSONObject) -> None:
    assert calls(
        piece("{}", id="c1", name="a", **index), piece("[]", id="c2", name="b", **index)
    ) == [("c1", "a", "{}"), ("c2", "b", "[]")]


def test_one_index_for_two_ids_is_two_calls() -> None:
    assert calls(
        piece("{}", index=0, id="c1", name="a"), piece("{}", index=0, id="c2", name="b")
    ) == [("c1", "a", "{}"), ("c2", "b", "{}")]


def test_calls_without_ids_are_told_apart_by_their_names() -> None:
    assert calls(piece("{}", index=0, name="a"), piece("{}", index=0, name="b")) == [
        (None, "a", "{}"),
        (None, "b", "{}"),
    ]


def test_an_empty_id_and_an_empty_name_are_none() -> None:
    assert calls(
        piece("", index=0, id="", name=""),
        piece("{", index=0, id=A, name="ls"),
        piece("}", index=0, id="", name=""),
    ) == [(A, "ls", "{}")]


def test_null_arguments_are_nothing_yet() -> None:
    assert calls(piece(None, index=0, id=A, name="f"), piece("{}", index=0)) == [(A, "f", "{}")]
    assert calls(piece(None, index=0, id=A, name="f")) == [(A, "f", "")]


def test_a_piece_under_an_unknown_index_continues_the_only_call() -> None:
    start = piece("", index=0, id=A, name="w")

    assert calls(start, piece('{"c":', index=1), piece('"Oslo"}', index=2)) == [
        (A, "w", '{"c":"Oslo"}')
    ]


def test_a_piece_that_may_belong_to_either_call_makes_its_call_unfit_to_run() -> None:
    first, second = piece("{}", index=0, id=A, name="a"), piece("", index=1, id=B, name="b")

    one, other = streamed(first, second, piece("{}", index=7)).message.tool_calls

    assert (one.raw, one.malformed) == ("{}", None)
    assert other.raw == "{}"
    assert other.malformed


def test_both_reasoning_members_are_printed_once_and_go_back_both() -> None:
    reader = OpenAI.stream()
    deltas = [
        delta
        for text in ("hm, ", "so")
        for delta in reader.feed(chunk({"reasoning": text, "reasoning_content": text}))
    ]
    reader.feed(chunk({"content": "x"}, "stop"))

    message = reader.finish().message

    assert [d.reasoning for d in deltas] == ["hm, ", "so"]
    assert message.reasoning == "hm, so"
    assert OpenAI.dump(message) == {
        "role": "assistant",
        "content": "x",
        "reasoning": "hm, so",
        "reasoning_content": "hm, so",
    }


def test_thinking_inside_content_and_the_text_behind_it_are_one_list() -> None:
    def thought(text: str) -> JSONObject:
        return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}

    reply = OpenAI.reply(
        [
            chunk({"content": [thought("5 + ")]}),
            chunk({"content": [thought("3")]}),
            chunk({"content": "It is "}),
            chunk({"content": "8."}, "stop"),
        ]
    )

    assert OpenAI.dump(reply.message) == {
        "role": "assistant",
        "content": [thought("5 + 3"), {"type": "text", "text": "It is 8."}],
    }


def test_spoken_audio_is_joined_as_bytes() -> None:
    def spoken(**audio: Any) -> JSONObject:
        return chunk({"audio": audio})

    reply = OpenAI.reply(
        [
            spoken(id="audio_1", transcript="Good "),
            spoken(data="QQ==", transcript="dog"),
            spoken(data="Qg==", expires_at=5),
            chunk({}, "stop"),
        ]
    )

    [part] = reply.message.parts
    assert getattr(part, "data", None) == b"AB"
    assert part.extra(OpenAI.api)["audio"] == {
        "id": "audio_1",
        "transcript": "Good dog",
        "expires_at": 5,
    }


# -- Anthropic Messages ----------------------------------------------------------------------------

START: JSONObject = {
    "type": "message_start",
    "message": {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    },
}


def opened(index: int, **block: Any) -> JSONObject:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **said: Any) -> JSONObject:
    return {"type": "content_block_delta", "index": index, "delta": said}


def ended(stop: str, **usage: int) -> list[JSONObject]:
    end = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage}
    return [end, {"type": "message_stop"}]


def called(index: int, id: str, name: str = "w") -> JSONObject:
    return opened(index, type="tool_use", id=id, name=name, input={})


def said(index: int, **more: Any) -> JSONObject:
    return delta(index, type="input_json_delta", partial_json=more["json"])


def test_no_input_at_all_is_an_empty_object_everywhere() -> None:
    told = [START, called(0, "toolu_1", "ls"), said(0, json=""), *ended("tool_use")]

    message = Anthropic.reply(told).message

    assert message.tool_calls == [ToolCall(id="toolu_1", name="ls", raw="{}")]
    assert message.tool_calls[0].malformed is None
    assert Anthropic.dump(message)["content"][0]["input"] == {}
    answered = OpenAI.dump_all([message])
    assert answered[0]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_thoughts_stay_apart_byte_by_byte_and_in_their_places() -> None:
    told = [START]
    for index, text in ((0, "a"), (2, "b")):
        told += [
            opened(index, type="thinking", thinking="", signature=""),
            delta(index, type="thinking_delta", thinking=text),
            delta(index, type="signature_delta", signature=f"S{index}"),
        ]
        told.append({"type": "content_block_stop", "index": index})
    told.insert(4, opened(1, type="redacted_thinking", data="RDATA"))

    message = Anthropic.reply([*told, *ended("end_turn")]).message

    assert message.parts == (
        Reasoning(text="a", signature="S0"),
        Reasoning(kind="encrypted", data="RDATA"),
        Reasoning(text="b", signature="S2"),
    )
    assert [b["type"] for b in Anthropic.dump(message)["content"]] == [
        "thinking",
        "redacted_thinking",
        "thinking",
    ]


def test_a_thought_may_be_nothing_but_a_signature() -> None:
    told = [
        START,
        opened(0, type="thinking", thinking="", signature=""),
        delta(0, type="signature_delta", signature="S0"),
        *ended("end_turn"),
    ]

    message = Anthropic.reply(told).message

    assert Anthropic.dump(message)["content"] == [
        {"type": "thinking", "thinking": "", "signature": "S0"}
    ]


def test_a_paused_turn_is_a_pause_and_goes_back_as_it_came() -> None:
    use = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    told = [START, opened(0, **use), said(0, json='{"query": "x"}'), *ended("pause_turn")]

    reply = Anthropic.reply(told)

    assert reply.finish == "pause"
    wired = Anthropic.dump_all([reply.message], model="claude-opus-4-8")
    assert wired[-1]["content"] == [{**use, "input": {"query": "x"}}]


def test_citations_are_collected_and_stay_with_their_api() -> None:
    cite = {
        "type": "web_search_result_location",
        "cited_text": "y",
        "url": "https://example.com",
        "title": "Ex",
        "encrypted_index": "Eo8B",
    }
    told = [
        START,
        opened(0, type="text", text="", citations=[]),
        delta(0, type="text_delta", text="X is y."),
        delta(0, type="citations_delta", citation=cite),
        *ended("end_turn"),
    ]

    message = Anthropic.reply(told).message

    [text] = message.parts
    assert isinstance(text, Text)
    assert len(text.citations) == 1
    assert Anthropic.dump(message)["content"][0]["citations"] == [cite]
    assert OpenAI.dump_all([message]) == [{"role": "assistant", "content": "X is y."}]


def test_a_stream_that_was_cut_leaves_its_text_and_no_call() -> None:
    told = [
        START,
        opened(0, type="text", text=""),
        delta(0, type="text_delta", text="Par"),
        called(1, "toolu_1"),
        said(1, json='{"ci'),
    ]

    reply = Anthropic.reply(told)

    assert (reply.finish, reply.finish_raw) == ("interrupted", None)
    assert reply.message.content == "Par"
    [call] = reply.message.tool_calls
    assert call.raw == '{"ci'
    assert call.malformed
    for transport in (Anthropic, OpenAI):
        assert "toolu_1" not in str(transport.dump_all([reply.message]))


def test_blocks_may_come_interleaved_and_pings_in_between() -> None:
    told = [
        START,
        opened(0, type="text", text=""),
        called(1, "toolu_1"),
        delta(0, type="text_delta", text="Hi"),
        said(1, json="{}"),
        {"type": "ping"},
        *ended("tool_use", output_tokens=9),
    ]

    reply = Anthropic.reply(told)

    assert reply.message.parts == (Text(text="Hi"), ToolCall(id="toolu_1", name="w", raw="{}"))
    assert reply.usage is not None
    assert (reply.usage.input, reply.usage.output) == (10, 9)


def test_a_message_told_as_ever_longer_snapshots_is_one_message() -> None:
    blocks: list[JSONObject] = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": n, "input": {}} for n in ("a", "b", "c")
    ]
    snapshots = [{**START["message"], "content": blocks[:size]} for size in (1, 2, 3, 3)]
    snapshots[-1]["stop_reason"] = "tool_use"

    [message] = Anthropic.wrap_each(snapshots)

    assert [c.id for c in message.tool_calls] == ["toolu_a", "toolu_b", "toolu_c"]
    reader = Anthropic.stream()
    for snapshot in snapshots:
        reader.feed(snapshot)
    assert reader.finish().message == message


def test_what_only_the_sdk_s_helper_says_is_passed_by() -> None:
    told = [
        START,
        opened(0, type="text", text=""),
        delta(0, type="text_delta", text="Hi"),
        {"type": "text", "text": "Hi", "snapshot": "Hi"},
        {"type": "an_event_of_tomorrow", "index": 0},
        {"type": "content_block_stop", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
        *ended("end_turn"),
    ]

    assert Anthropic.reply(told).message.content == "Hi"
