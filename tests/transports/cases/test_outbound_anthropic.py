"""Faults that public libraries had in what they sent to Anthropic, each with the right value."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from brute.events.events import ModelRef, Settings, ToolSpec
from brute.events.messages import Hosted, Media, Message, Origin, Reasoning, Refusal, Text, ToolCall
from brute.transports import Anthropic
from brute.transports.shapes import PlainView

JSONObject = dict[str, Any]

A, B, C = "toolu_01A9mXrY", "toolu_01Hq7sWc", "toolu_01Vd2fGj"
CLAUDE = Origin(api=Anthropic.api, provider="anthropic", model="claude-opus-4-8")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF"


def call(id: str, name: str = "f", raw: str = "{}") -> ToolCall:
    return ToolCall(id=id, name=name, raw=raw)


def asks(*parts: Any, origin: Origin | None = None) -> Message:
    body = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return Message(role="assistant", parts=body, origin=origin)


def sent(*messages: Message, **options: Any) -> list[JSONObject]:
    """The messages of a request that breaks no rule, twice the same."""
    request = Anthropic.request([*messages], **options)
    assert Anthropic.check(request) == []
    assert Anthropic.request([*messages], **options) == request
    return list(request["messages"])


def kinds(message: JSONObject) -> list[str]:
    return [block["type"] for block in message["content"]]


# -- pairing ---------------------------------------------------------------------------------------


def test_a_call_whose_process_died_gets_an_error_result_before_what_the_user_said_next() -> None:
    talk = [
        Message.user("count"),
        asks("Counting.", call(A)),
        Message.user("never mind, list the files"),
    ]

    wired = sent(*talk)

    result, text = wired[2]["content"]
    assert (result["type"], result["tool_use_id"], result["is_error"]) == ("tool_result", A, True)
    assert result["content"]
    assert text == {"type": "text", "text": "never mind, list the files"}


def test_a_result_whose_call_was_cut_off_is_said_by_the_user() -> None:
    talk = [Message.tool(A, "12 hits", name="grep"), asks("Found 12."), Message.user("in tests?")]

    wired = sent(*talk)

    assert [m["role"] for m in wired] == ["user", "assistant", "user"]
    assert "tool_result" not in json.dumps(wired)
    assert "12 hits" in json.dumps(wired[0])


def test_of_two_results_the_first_stands_and_the_late_one_is_said_by_the_user() -> None:
    talk = [
        Message.user("build"),
        asks(call(A, "make")),
        Message.tool(A, "[interrupted]", outcome="error"),
        Message.user("hello?"),
        Message.tool(A, "built ok"),
    ]

    wired = sent(*talk)

    blocks = wired[2]["content"]
    assert [b["type"] for b in blocks] == ["tool_result", *["text"] * (len(blocks) - 1)]
    assert blocks[0]["content"] == "[interrupted]"
    assert "built ok" in json.dumps(blocks[1:])


def test_parallel_results_come_in_one_message_in_the_order_of_the_calls() -> None:
    talk = [
        Message.user("read"),
        asks(call(A), call(B), call(C)),
        Message.tool(C, "3"),
        Message.tool(A, "1"),
        Message.tool(B, "2"),
    ]

    wired = sent(*talk)

    assert len(wired) == 3
    assert [(b["tool_use_id"], b["content"]) for b in wired[2]["content"]] == [
        (A, "1"),
        (B, "2"),
        (C, "3"),
    ]


def test_a_word_between_call_and_result_goes_behind_the_result() -> None:
    talk = [Message.user("w?"), asks(call(A)), Message.user("hurry"), Message.tool(A, "4C")]

    wired = sent(*talk)

    assert kinds(wired[2]) == ["tool_result", "text"]
    assert wired[2]["content"][1]["text"] == "hurry"


def test_thinking_and_calls_of_one_reply_stay_one_turn_in_order() -> None:
    thoughts = [Reasoning(text=t, signature=f"c2ln{t}") for t in "ab"]
    reply = asks(thoughts[0], call(A, "x"), thoughts[1], call(B, "y"), origin=CLAUDE)

    wired = sent(Message.user("go"), reply, Message.tool(A, "1"), Message.tool(B, "2"))

    assert [m["role"] for m in wired] == ["user", "assistant", "user"]
    assert kinds(wired[1]) == ["thinking", "tool_use", "thinking", "tool_use"]
    assert kinds(wired[2]) == ["tool_result", "tool_result"]


# -- ids, arguments, text --------------------------------------------------------------------------


def test_ids_of_another_provider_fit_the_pattern_and_stay_apart() -> None:
    talk: list[Message] = [Message.user("todo")]
    for word in ("functions.write_todos:0", "a:0", "a.0"):
        talk += [asks(call(word)), Message.tool(word, "ok")]

    wired = sent(*talk)

    calls = [b["id"] for m in wired for b in m["content"] if b["type"] == "tool_use"]
    results = [b["tool_use_id"] for m in wired for b in m["content"] if b["type"] == "tool_result"]
    assert calls == results
    assert len(set(calls)) == 3


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"city": "Par', {"_raw": '{"city": "Par'}),
        ("null", {}),
        ("", {}),
        ("[1]", {"_raw": "[1]"}),
        ('"x"', {"_raw": '"x"'}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"n": 9007199254740993}', {"n": 9007199254740993}),
    ],
)
def test_input_is_always_an_object_and_what_the_model_wrote_is_in_it(
    raw: str, expected: JSONObject
) -> None:
    asked = asks(call(A, raw=raw))

    wired = sent(Message.user("x"), asked, Message.tool(A, "1"))

    assert wired[1]["content"][0]["input"] == expected
    assert asked.tool_calls[0].raw == raw


def test_a_lone_surrogate_is_replaced_and_an_emoji_is_not() -> None:
    said = "Hello \ud800 World \U0001f600"
    talk = [
        Message.user("cat"),
        asks(call(A, raw='{"\\ud800": "\\ud83d\\ude00"}')),
        Message.tool(A, said),
    ]

    wired = sent(*talk)

    json.dumps(wired, ensure_ascii=False).encode()
    assert wired[1]["content"][0]["input"] == {"\ufffd": "\U0001f600"}
    assert wired[2]["content"][0]["content"] == "Hello \ufffd World \U0001f600"


def test_blank_texts_are_left_out_and_a_blank_message_of_the_user_says_that_it_is() -> None:
    talk = [
        Message.user("hi"),
        asks("\n\n", call(A)),
        Message.tool(A, "x"),
        asks("ok"),
        Message.user("  \n"),
    ]

    wired = sent(*talk)

    assert kinds(wired[1]) == ["tool_use"]
    assert wired[-1]["role"] == "user"
    assert wired[-1]["content"][0]["text"].strip()


def test_an_empty_reply_is_left_out_and_the_user_goes_on() -> None:
    wired = sent(Message.user("hi"), Message.assistant(), Message.user("still there?"))

    assert [m["role"] for m in wired] == ["user"]
    assert [b["text"] for b in wired[0]["content"]] == ["hi", "still there?"]


def test_an_error_says_something_and_an_empty_success_says_nothing() -> None:
    talk = [Message.user("x"), asks(call(A), call(B))]

    wired = sent(*talk, Message.tool(A, outcome="error"), Message.tool(B))

    failed, fine = wired[2]["content"]
    assert failed["is_error"] is True
    assert failed["content"].strip()
    assert "content" not in fine
    assert "is_error" not in fine


def test_a_refusal_is_said_as_text() -> None:
    wired = sent(Message.user("bad"), asks(Refusal(text="I can't.")), Message.user("ok then"))

    assert wired[1]["content"] == [{"type": "text", "text": "I can't."}]


def test_nothing_but_members_of_the_request_is_sent() -> None:
    reply = {
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8",
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "x", "parsed": None, "citations": None}],
    }

    wired = sent(Message.user("a"), *Anthropic.wrap_each(reply), Message.user("b"))

    assert wired[1] == {"role": "assistant", "content": [{"type": "text", "text": "x"}]}


# -- how a conversation begins and ends, and system text -------------------------------------------


@pytest.mark.parametrize("model", ["claude-opus-4-6", "claude-sonnet-5"])
def test_a_model_without_prefill_is_asked_by_the_user_in_the_end(model: str) -> None:
    talk = [Message.user("hi"), asks("Partial answ")]

    assert [m["role"] for m in sent(*talk, model=model)] == ["user", "assistant", "user"]
    assert [m["role"] for m in sent(*talk, model="claude-sonnet-4-5")] == ["user", "assistant"]


def test_a_brace_put_there_to_be_continued_is_dropped_for_a_format() -> None:
    schema = {"type": "object", "properties": {}}
    talk = [Message.user("Give JSON"), asks("{")]

    request = Anthropic.request(talk, model="claude-opus-4-6", max_tokens=9, format=schema)

    assert [m["role"] for m in request["messages"]] == ["user"]
    said = {"format": {"type": "json_schema", "schema": schema}}
    assert request["output_config"] == said
    assert [loss.rule for loss in request.losses] == ["A5"]


def test_a_prefill_does_not_end_in_white_space() -> None:
    wired = sent(Message.user("hi"), asks("Dear  \n"), model="claude-sonnet-4-5")

    assert wired[-1]["content"][-1]["text"] == "Dear"


def test_the_first_to_speak_is_the_user() -> None:
    assert [m["role"] for m in sent(asks("Hello!"), Message.user("hi"))] == [
        "user",
        "assistant",
        "user",
    ]


MIDWAY = [
    Message.system("base"),
    Message.user("A"),
    Message.system("be brief"),
    Message.user("B"),
    asks(call(A)),
    Message.system("no secrets"),
    Message.tool(A, "x"),
]


def test_system_text_in_mid_conversation_waits_for_a_place_where_it_may_stand() -> None:
    request = Anthropic.request(MIDWAY, model="claude-opus-4-8", max_tokens=9)
    wired = sent(*MIDWAY, model="claude-opus-4-8")

    assert request["system"] == "base"
    assert [m["role"] for m in wired] == ["user", "system", "assistant", "user", "system"]
    assert [b["text"] for b in wired[0]["content"]] == ["A", "B"]
    assert [m["content"][0]["text"] for m in wired if m["role"] == "system"] == [
        "be brief",
        "no secrets",
    ]


def test_an_older_model_hears_it_from_the_user_where_it_was_said() -> None:
    wired = sent(*MIDWAY, model="claude-sonnet-4-5")

    assert [m["role"] for m in wired] == ["user", "assistant", "user"]
    assert [b["text"] for b in wired[0]["content"]] == ["A", "<system>\nbe brief\n</system>", "B"]
    assert kinds(wired[2]) == ["tool_result", "text"]


def test_two_system_messages_at_the_same_place_are_one() -> None:
    talk = [Message.user("a"), asks("b"), Message.system("1"), Message.system("2")]

    wired = sent(*talk, model="claude-opus-4-8")

    assert [m["role"] for m in wired] == ["user", "assistant", "user", "system"]
    assert [b["text"] for b in wired[-1]["content"]] == ["1", "2"]


# -- thinking --------------------------------------------------------------------------------------


def test_thinking_is_switched_off_where_the_running_turn_has_none() -> None:
    foreign = Origin(api="openai.chat", provider="deepseek", model="deepseek-v4-pro")
    talk = [
        Message.user("plan"),
        asks(Reasoning(text="hmm"), call(A), origin=foreign),
        Message.tool(A, "x"),
    ]
    thinking = {"type": "enabled", "budget_tokens": 1024}

    request = Anthropic.request(talk, model="claude-sonnet-4-5", max_tokens=2048, thinking=thinking)
    own = Anthropic.request([Message.user("plan")], max_tokens=2048, thinking=thinking)

    assert "thinking" not in request
    assert "A23" in [loss.rule for loss in request.losses]
    assert "hmm" not in json.dumps(request)
    assert Anthropic.check(request) == []
    assert own["thinking"] == thinking


def test_thinking_at_the_end_goes_while_thinking_is_off() -> None:
    begun = asks(Reasoning(text="t", signature="c2ln"), "Dear", origin=CLAUDE)

    request = Anthropic.request([Message.user("x"), begun], max_tokens=9)

    assert kinds(request["messages"][-1]) == ["text"]
    assert [loss.rule for loss in request.losses] == ["A24"]


@pytest.mark.parametrize(
    ("issuer", "model"),
    [
        (CLAUDE, "claude-sonnet-5"),
        (Origin(api=Anthropic.api, provider="minimax", model="MiniMax-M3"), "claude-opus-4-7"),
        (Origin(api="gemini", provider="google", model="gemini-3"), "claude-opus-4-8"),
    ],
)
def test_a_signature_goes_to_no_other_model(issuer: Origin, model: str) -> None:
    said = asks(Reasoning(text="t", signature="c2lnbmVk"), "hello", origin=issuer)

    wired = sent(Message.user("x"), said, Message.user("y"), model=model)

    assert wired[1]["content"] == [{"type": "text", "text": "hello"}]


def test_half_of_a_provider_s_own_call_is_dropped_unless_the_turn_is_paused() -> None:
    use = Hosted(id="srvtoolu_01abc", tool="web_search", input={"query": "x"})
    found = Hosted(id="srvtoolu_01abc", tool="web_search", output=[])
    cut = asks(use, "Looking.", origin=CLAUDE)

    assert kinds(sent(Message.user("news"), cut, Message.user("and?"))[1]) == ["text"]
    pair = asks(use, found, "Found.", origin=CLAUDE)
    assert kinds(sent(Message.user("news"), pair, Message.user("and?"))[1]) == [
        "server_tool_use",
        "web_search_tool_result",
        "text",
    ]
    paused = asks("Looking.", use, origin=CLAUDE)
    assert kinds(sent(Message.user("news"), paused, model="claude-opus-4-8")[-1]) == [
        "text",
        "server_tool_use",
    ]


# -- media, files, cache marks ---------------------------------------------------------------------


def test_an_image_bears_the_type_its_bytes_say_and_others_are_described() -> None:
    images = [
        Media(kind="image", media_type="image/jpg", data=JPEG),
        Media(kind="image", media_type="image/jpeg", data=PNG),
        Media(kind="image", media_type="image/svg+xml", data=b"<svg/>"),
    ]

    [message] = sent(Message.user("a", *images))

    assert kinds(message) == ["text", "image", "image", "text"]
    types = [b["source"]["media_type"] for b in message["content"] if b["type"] == "image"]
    assert types == ["image/jpeg", "image/png"]


def test_an_image_of_a_result_stays_in_the_result() -> None:
    picture = Media(kind="image", media_type="image/png", data=PNG)

    wired = sent(Message.user("shot"), asks(call(A)), Message.tool(A, "done", picture))

    assert [b["type"] for b in wired[2]["content"][0]["content"]] == ["text", "image"]


def test_a_pdf_goes_as_a_document_by_data_and_by_address() -> None:
    pdf = Media(kind="document", media_type="application/pdf", name="a.pdf", data=b"%PDF-1.4")
    far = Media(kind="document", media_type="application/pdf", url="https://example.com/b.pdf")

    [message] = sent(Message.user("sum", pdf, far))

    near, away = message["content"][1:]
    data = base64.b64encode(b"%PDF-1.4").decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    assert near == {"type": "document", "source": source, "title": "a.pdf"}
    assert away["source"] == {"type": "url", "url": "https://example.com/b.pdf"}


MARK = {"anthropic.messages": {"cache_control": {"type": "ephemeral"}}}


def _marks(value: object) -> list[str]:
    """The texts and names that bear a cache mark, in order."""
    if isinstance(value, list):
        return [mark for item in value for mark in _marks(item)]
    if not isinstance(value, dict):
        return []
    mine = [str(value.get("text") or value.get("name"))] if "cache_control" in value else []
    return mine + [mark for held in value.values() for mark in _marks(held)]


def test_the_last_four_cache_marks_are_kept() -> None:
    tools = tuple(ToolSpec(name=n, schema={}, extras=MARK) for n in ("t1", "t2"))
    talk = [
        Message(role="system", parts=(Text(text="s", extras=MARK),)),
        Message(role="user", parts=(Text(text="a"),), extras=MARK),
        Message(role="assistant", parts=(Text(text="b"),), extras=MARK),
        Message(role="user", parts=(Text(text="c"),), extras=MARK),
    ]
    settings = Settings(model=ModelRef(id="claude-opus-4-8"), tools=tools)

    request = Anthropic.request(PlainView(talk, settings), max_tokens=9)

    assert _marks([request["tools"], request["system"], request["messages"]]) == list("sabc")
    assert Anthropic.check(request) == []
    assert talk[1].extras == MARK


def test_a_cache_mark_lands_on_the_last_block_that_may_bear_one() -> None:
    question = Message(role="user", parts=(Text(text="c"), Text(text="")), extras=MARK)
    thought = asks("b", Reasoning(text="t", signature="c2ln"), origin=CLAUDE)
    thought = Message(role="assistant", parts=thought.parts, extras=MARK, origin=CLAUDE)

    wired = sent(Message.user("a"), thought, question)

    assert _marks(wired) == ["b", "c"]


def test_a_name_that_the_pattern_refuses_is_renamed_in_tools_history_and_choice() -> None:
    tools = (ToolSpec(name="read file!", schema={"type": "object"}),)
    talk = [Message.user("x"), asks(call(A, "read file!")), Message.tool(A, "y")]
    settings = Settings(
        tools=tools, parameters={"tool_choice": {"type": "tool", "name": "read file!"}}
    )

    request = Anthropic.request(PlainView(talk, settings), max_tokens=9)

    [wired] = request.renamed
    assert request.renamed == {wired: "read file!"}
    assert request["tools"][0]["name"] == wired
    assert request["tool_choice"]["name"] == wired
    assert request["messages"][1]["content"][0]["name"] == wired
    assert Anthropic.check(request) == []
