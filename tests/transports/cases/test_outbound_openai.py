"""Faults that public libraries had in what they sent to Chat Completions and its like."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from brute.events.events import Settings, ToolSpec
from brute.events.messages import Hosted, Json, Media, Message, Origin, Reasoning, Refusal, ToolCall
from brute.transports import Anthropic, OpenAI
from brute.transports.shapes import PlainView

JSONObject = dict[str, Any]

A, B, C = "call_8sKd02mf", "call_Zq5TgB3n", "call_m4Jf8QwE"
PNG = b"\x89PNG\r\n\x1a\n"
RESPONSES = Origin(api="openai.responses", provider="openai", model="gpt-5.4")
DEEPSEEK = Origin(api=OpenAI.api, provider="deepseek", model="deepseek-v4-pro")


def call(id: str, name: str = "f", raw: str = "{}") -> ToolCall:
    return ToolCall(id=id, name=name, raw=raw)


def sent(*messages: Message, **options: Any) -> list[JSONObject]:
    """The messages of a request that breaks no rule, twice the same."""
    request = OpenAI.request([*messages], **options)
    assert OpenAI.check(request) == []
    assert OpenAI.request([*messages], **options) == request
    return list(request["messages"])


# -- pairing ---------------------------------------------------------------------------------------


def test_every_call_has_a_tool_message_right_behind_it_in_the_order_of_the_calls() -> None:
    talk = [
        Message.user("Read a, b and c"),
        Message.assistant(call(A), call(B), call(C)),
        Message.tool(B, "BBB"),
        Message.user("continue"),
    ]

    wired = sent(*talk)

    assert [m["role"] for m in wired] == ["user", "assistant", "tool", "tool", "tool", "user"]
    assert [m["tool_call_id"] for m in wired[2:5]] == [A, B, C]
    assert wired[3]["content"] == "BBB"
    assert wired[2]["content"]
    assert wired[4]["content"]


def test_several_results_in_one_message_are_several_messages_on_the_wire() -> None:
    results = [Message.tool(id, text).parts[0] for id, text in ((A, "1"), (B, "2"), (C, "3"))]

    wired = sent(
        Message.user("kw"),
        Message.assistant(call(A), call(B), call(C)),
        Message(role="tool", parts=tuple(results)),
    )

    assert [(m["tool_call_id"], m["content"]) for m in wired[2:]] == [
        (A, "1"),
        (B, "2"),
        (C, "3"),
    ]


def test_a_window_that_holds_a_result_alone_still_asks_something() -> None:
    [wired] = sent(Message.tool(A, "42", name="get"))

    assert wired["role"] == "user"
    assert "42" in json.dumps(wired)


def test_a_word_behind_a_result_stays_behind_it() -> None:
    talk = [
        Message.user("w?"),
        Message.assistant(call(A)),
        Message.tool(A, "4C"),
        Message.user("in F please"),
    ]

    assert [m["role"] for m in sent(*talk)] == ["user", "assistant", "tool", "user"]


# -- ids, names, arguments -------------------------------------------------------------------------


def test_the_id_on_the_wire_is_the_call_s_and_never_the_item_s() -> None:
    item = {"openai.responses": {"id": "fc_0a1b2c"}}
    asked = ToolCall(id=A, name="vs", raw="{}", extras=item)
    said = Message(role="assistant", parts=(asked,), origin=RESPONSES)

    wired = sent(Message.user("v"), said, Message.tool(A, "hit"))

    assert wired[1]["tool_calls"][0]["id"] == A
    assert "fc_" not in json.dumps(wired)


def test_a_long_id_becomes_a_short_one_on_both_sides() -> None:
    for long in (f"{A}|fc_{'0a1b2c' * 12}", f"call_x__thought__{'CiQB0e2K' * 20}"):
        talk = [Message.user("v"), Message.assistant(call(long)), Message.tool(long, "hit")]

        wired = sent(*talk)
        older = sent(*talk, profile="azure")

        assert wired[1]["tool_calls"][0]["id"] == wired[2]["tool_call_id"]
        assert len(wired[2]["tool_call_id"]) <= 64
        assert len(older[2]["tool_call_id"]) <= 40
        assert talk[1].tool_calls[0].id == long


def test_argument_text_goes_out_byte_for_byte() -> None:
    for raw in ('{"z": 1, "a": {"y":2,"b":3}}', '{"n": 9007199254740993, "x": 1e400}'):
        talk = [Message.user("a"), Message.assistant(call(A, raw=raw)), Message.tool(A, "7")]

        [wired] = OpenAI.dump_all(talk)[1]["tool_calls"]

        assert wired == {
            "id": A,
            "type": "function",
            "function": {"name": "f", "arguments": raw},
        }


def test_no_arguments_are_an_empty_object_and_broken_ones_stay_as_they_are() -> None:
    talk = [Message.user("a"), Message.assistant(call(A, raw=""), call(B, raw='{"a": '))]

    calls = OpenAI.dump_all(talk)[1]["tool_calls"]

    assert [c["function"]["arguments"] for c in calls] == ["{}", '{"a": ']


def test_a_call_of_a_stream_has_no_index_when_it_goes_back() -> None:
    chunk = {
        "choices": [
            {
                "index": 0,
                "delta": {
                    "tool_calls": [
                        {"index": 1, "id": A, "function": {"name": "run", "arguments": "{}"}}
                    ]
                },
                "finish_reason": "tool_calls",
            }
        ]
    }

    wired = sent(Message.user("x"), *OpenAI.wrap_each([chunk]), Message.tool(A, "558"))

    [one] = wired[1]["tool_calls"]
    assert one.keys() == {"id", "type", "function"}
    assert one["function"].keys() == {"name", "arguments"}


def test_a_name_of_the_model_s_own_making_fits_and_an_empty_one_has_a_word() -> None:
    talk = [
        Message.user("x"),
        Message.assistant(call(A, "read file!"), call(B, "")),
        Message.tool(A, "no such tool", outcome="error"),
        Message.tool(B, "no"),
        Message.user("try again"),
    ]

    names = [c["function"]["name"] for c in sent(*talk)[1]["tool_calls"]]

    assert names[0].startswith("read_file_")
    assert names[1].startswith("unknown_tool")
    assert [c.name for c in talk[1].tool_calls] == ["read file!", ""]


def test_numbers_that_json_has_no_word_for_become_null() -> None:
    value = {"mean": math.nan, "max": math.inf, "n": 2**63, "m": 10**30}
    talk = [Message.user("s"), Message.assistant(call(A)), Message.tool(A, Json(value=value))]

    said = json.loads(sent(*talk)[2]["content"])

    assert said == {"mean": None, "max": None, "n": 2**63, "m": 10**30}


# -- content ---------------------------------------------------------------------------------------

CALLED = [Message.user("x"), Message.assistant(call(A)), Message.tool(A, "y")]


def test_content_is_null_beside_calls_or_empty_where_null_is_refused() -> None:
    assert sent(*CALLED)[1]["content"] is None
    assert sent(*CALLED, profile="ollama")[1]["content"] == ""
    assert sent(*CALLED, profile={"null_content": False})[1]["content"] == ""


def test_reasoning_goes_to_deepseek_in_its_own_member_and_to_openai_never() -> None:
    thought = Message(role="assistant", parts=(Reasoning(text="need t"), call(A)), origin=DEEPSEEK)
    talk = [Message.user("x"), thought, Message.tool(A, "y"), Message.assistant("done")]

    def reasoning(**options: Any) -> list[str | None]:
        request = OpenAI.request(talk, **options)
        return [m.get("reasoning_content") for m in request["messages"] if m["role"] == "assistant"]

    assert reasoning(profile="deepseek", model="deepseek-v4-pro") == ["need t", ""]
    assert reasoning(model="deepseek-v4-pro") == [None, None]
    assert reasoning(model="gpt-5.4") == [None, None]
    assert reasoning(model="gpt-5.4", profile="deepseek") == ["", ""]


def test_an_image_of_a_result_goes_behind_all_results_in_a_message_of_the_user() -> None:
    picture = Media(kind="image", media_type="image/png", data=PNG)
    talk = [
        Message.user("shot"),
        Message.assistant(call(A), call(B)),
        Message.tool(A, "done", picture),
        Message.tool(B, "fine"),
    ]

    wired = sent(*talk)

    assert [m["role"] for m in wired] == ["user", "assistant", "tool", "tool", "user"]
    assert wired[2]["content"].startswith("done\n")
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert wired[4]["content"][-1] == {"type": "image_url", "image_url": {"url": url}}


def test_an_audio_goes_back_by_its_id_and_as_words_when_it_is_gone() -> None:
    def spoken(id: str, words: str, until: int) -> Message:
        audio = {"id": id, "transcript": words, "expires_at": until, "data": "AAAA"}
        message = {"role": "assistant", "content": None, "audio": audio}
        [wrapped] = OpenAI.wrap_each({"choices": [{"message": message}]})
        return wrapped

    talk = [
        Message.user("dog?"),
        spoken("audio_68a1", "Yes, good dog.", 4102444800),
        Message.user("why?"),
        spoken("audio_old", "Because.", 1600000000),
        Message.user("ok"),
    ]

    wired = OpenAI.request(talk, model="gpt-audio", now=1_790_000_000)["messages"]

    assert wired[1] == {"role": "assistant", "content": None, "audio": {"id": "audio_68a1"}}
    assert wired[3] == {"role": "assistant", "content": "Because."}
    assert Anthropic.dump_all(talk)[1]["content"][0]["text"] == "Yes, good dog."


def test_a_failed_tool_says_so_in_its_text_once() -> None:
    outcomes = [Message.tool(A, "boom", outcome="error"), Message.tool(A, outcome="unknown")]
    for answer in outcomes:
        said = sent(Message.user("x"), Message.assistant(call(A)), answer)[2]["content"]
        assert said.startswith("Error: ")
    again = Message.tool(A, "Error: boom", outcome="error")

    wired = sent(Message.user("x"), Message.assistant(call(A)), again)

    assert wired[2]["content"] == "Error: boom"


def test_an_outcome_that_is_not_known_is_said() -> None:
    answer = Message.tool(A, "partial output", outcome="unknown")

    for transport in (OpenAI, Anthropic):
        wired = json.dumps(transport.dump_all([*CALLED[:2], answer]))
        assert "not known" in wired
        assert "partial output" in wired


def test_a_file_has_a_data_url_and_always_a_name() -> None:
    data = base64.b64encode(b"%PDF-1.4").decode()
    named = Media(kind="document", media_type="application/pdf", name="a.pdf", data=b"%PDF-1.4")
    nameless = Media(kind="document", media_type="application/pdf", data=b"%PDF-1.4")

    [message] = sent(Message.user("sum", named, nameless))

    url = f"data:application/pdf;base64,{data}"
    assert message["content"][1:] == [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": url}},
        {"type": "file", "file": {"filename": "document.pdf", "file_data": url}},
    ]


def test_a_refusal_is_a_refusal() -> None:
    wired = sent(Message.user("bad"), Message.assistant(Refusal(text="I can't.")))

    assert wired[1] == {"role": "assistant", "content": None, "refusal": "I can't."}


def test_a_provider_s_own_call_is_no_function_call() -> None:
    own = Hosted(id="ws_689e", tool="web_search", input={"query": "x"}, output=[])
    said = Message(role="assistant", parts=(own, *Message.assistant("Found it.").parts))

    wired = sent(Message.user("news"), said, Message.user("more"))

    assert wired[1] == {"role": "assistant", "content": "Found it."}
    assert OpenAI.losses([said])[0].rule == "U8"


def test_a_tool_of_another_api_stays_behind_and_is_reported() -> None:
    tools = (
        ToolSpec(name="f", schema={"type": "object"}),
        ToolSpec(name="web_search", kind="web_search_20250305", extras={Anthropic.api: {}}),
    )

    request = OpenAI.request(PlainView([Message.user("x")], Settings(tools=tools)), model="gpt-5.4")

    assert [t["type"] for t in request["tools"]] == ["function"]
    assert [loss.rule for loss in request.losses] == ["U8"]
