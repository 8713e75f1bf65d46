"""What is said: parts, messages, and the arguments of a call."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as hst

from brute.events.errors import EncodingError
from brute.events.jsontext import DEEPEST, same
from brute.events.messages import (
    PARTS,
    Foreign,
    Json,
    Media,
    Message,
    Native,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from brute.testing import st

# -- the arguments of a call ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        (' \n{"a":\t1} ', {"a": 1}),
        ("", {}),
        (" \r\n", {}),
        ("null", {}),
        (" null ", {}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a":1,"a":2}', {"a": 2}),
        ('{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
        ('{"a": 1.0, "b": 1, "c": true}', {"a": 1.0, "b": 1, "c": True}),
        ('{"a": "\\ud800"}', {"a": "\ud800"}),
        ('{"a": "\ud800"}', {"a": "\ud800"}),
        ('{"\\u0000": "\\u0000\\u001a"}', {"\x00": "\x00\x1a"}),
        ('{"a": "{\\"b\\": 1}"}', {"a": '{"b": 1}'}),
    ],
)
def test_arguments_are_a_dict(raw: str, arguments: dict[str, Any]) -> None:
    call = ToolCall(name="f", raw=raw)

    assert repr(call.arguments) == repr(arguments)
    assert call.malformed is None
    assert call.raw == raw


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ('{"a": 1', "the arguments are not JSON"),
        ("{'a': 1}", "the arguments are not JSON"),
        ("{} {}", "the arguments are not JSON"),
        ("{}x", "the arguments are not JSON"),
        ("\ufeff{}", "the arguments are not JSON"),
        ('{"a": NaN}', "the arguments are not JSON: NaN is not JSON"),
        ('{"a": -Infinity}', "the arguments are not JSON: -Infinity is not JSON"),
        ('{"a": 1e400}', "the number 1e400 is beyond what a float holds"),
        ('{"a": ' + "9" * 5000 + "}", "the arguments are not JSON"),
        ("[1]", "the arguments are a JSON array, not an object"),
        ("5", "the arguments are a JSON number, not an object"),
        ("true", "the arguments are a JSON boolean, not an object"),
        ('"a"', "the arguments are a JSON string, not an object"),
        ('""', "the arguments are a JSON string, not an object"),
        ('"null"', "the arguments are a JSON string, not an object"),
        ('"[1]"', "the arguments are a JSON string, not an object"),
        ('"\\"{}\\""', "the arguments are a JSON string, not an object"),
        ("\u00a0", "the arguments are not JSON"),
    ],
)
def test_a_malformed_call_says_why_and_has_no_arguments(raw: str, why: str) -> None:
    call = ToolCall(name="f", raw=raw)

    assert call.arguments == {}
    assert call.malformed is not None
    assert why in call.malformed
    assert call.raw == raw


@pytest.mark.parametrize("levels", [900, 1_000, 5_000, DEEPEST - 1])
def test_arguments_may_be_nested_thousands_deep(levels: int) -> None:
    call = ToolCall(name="f", raw='{"a":' + "[" * levels + "1" + "]" * levels + "}")

    value = call.arguments["a"]

    assert call.malformed is None
    for _ in range(levels):
        (value,) = value
    assert value == 1


@pytest.mark.parametrize("levels", [1_000, 5_000, 100_000])
@pytest.mark.parametrize("last", ["", "]]", "]]}", "}"])
def test_deep_arguments_that_do_not_end_right_are_malformed(levels: int, last: str) -> None:
    call = ToolCall(name="f", raw='{"a":' + "[" * levels + "1" + "]" * (levels - 1) + last)

    assert call.arguments == {}
    assert call.malformed is not None
    assert call.malformed.startswith("the arguments are not JSON: ")


@given(st.nasty_text())
def test_arguments_are_a_dict_whatever_stands_in_raw(raw: str) -> None:
    call = ToolCall(name="f", raw=raw)

    assert isinstance(call.arguments, dict)
    assert call.arguments == {} or call.malformed is None


@given(st.json_objects())
def test_a_call_made_of_arguments_has_them(arguments: dict[str, Any]) -> None:
    call = ToolCall.of("f", arguments, id="c1")

    assert repr(call.arguments) == repr(json.loads(json.dumps(arguments)))
    assert (call.malformed, call.id) == (None, "c1")


def test_a_call_cannot_be_made_of_what_json_has_no_word_for() -> None:
    with pytest.raises(EncodingError, match=r"/a/b: the number nan"):
        ToolCall.of("f", {"a": {"b": float("nan")}})


def test_free_text_given_to_a_custom_tool_is_its_input() -> None:
    call = ToolCall(name="patch", raw="*** Begin {", kind="custom")

    assert call.arguments == {"input": "*** Begin {"}
    assert call.malformed is None


def test_a_call_that_its_reply_did_not_finish_is_malformed_whatever_its_text() -> None:
    call = ToolCall(name="f", raw='{"a": 1}', cut=True)

    assert call.arguments == {}
    assert call.malformed == "the reply ended before this call was whole"


def test_arguments_that_are_changed_change_nothing() -> None:
    call = ToolCall(name="f", raw='{"a": []}')

    call.arguments["a"].append(1)

    assert call.arguments == {"a": []}


# -- messages ------------------------------------------------------------------------------------


def test_builders_make_messages_of_texts_and_parts() -> None:
    image = Media(kind="image", url="https://example.com/a.png")

    assert Message.user("a", image, "b").parts == (Text(text="a"), image, Text(text="b"))
    assert Message.system("s") == Message(role="system", parts=(Text(text="s"),))
    assert Message.developer("d").role == "developer"
    assert Message.assistant().parts == ()
    assert Message.user("a", name="ann").name == "ann"


def test_a_tool_message_answers_a_call_with_its_name_and_kind() -> None:
    call = ToolCall(id="c1", name="run", kind="shell")

    message = Message.tool(call, "out", Json(value=[1]), outcome="error")

    result = ToolResult(
        call_id="c1",
        name="run",
        kind="shell",
        content=(Text(text="out"), Json(value=[1])),
        outcome="error",
    )
    assert message == Message(role="tool", parts=(result,))
    assert message.tool_call_id == "c1"
    assert message.content == "out[1]"
    assert Message.tool("c2", "x").tool_call_id == "c2"
    assert Message.tool(None, "x").tool_call_id is None


def test_a_message_shows_its_text_calls_and_reasoning() -> None:
    call = ToolCall(name="f")
    message = Message.assistant(
        Reasoning(text="hm"), "a", Refusal(text="no"), call, Reasoning(text="m"), "b"
    )

    assert (message.content, message.reasoning) == ("ab", "hmm")
    assert message.tool_calls == [call]
    assert message.tool_call_id is None


@pytest.mark.parametrize("wrong", [5, None, b"a", {"type": "text", "text": "a"}, ["a"]])
def test_what_is_no_part_is_refused_with_its_place(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"part 1: found .*; give a str or a part"):
        Message.user("a", wrong)


def test_what_one_api_said_is_found_under_its_name_only() -> None:
    text = Text(text="a", extras={"gemini": {"thoughtSignature": "s"}})
    message = Message(role="user", parts=(text,), extras={"gemini": {"x": 1}})

    assert text.extra("gemini") == {"thoughtSignature": "s"}
    assert text.extra("openai.chat") == Text(text="a").extra("gemini") == {}
    assert (message.extra("gemini"), message.extra("openai.chat")) == ({"x": 1}, {})
    assert Foreign(b"{}").extra("gemini") == {}
    assert Foreign(b"{}").extras is None


def test_usage_adds_up() -> None:
    total = Usage(input=1, output=2, reasoning=1, cache_read=4) + Usage(input=10, cache_write=5)

    assert total == Usage(input=11, output=2, reasoning=1, cache_read=4, cache_write=5)


# -- immutable values ----------------------------------------------------------------------------


@given(st.messages(foreign=True))
def test_messages_are_equal_by_structure_and_survive_copies_and_pickles(message: Message) -> None:
    for other in (
        pickle.loads(pickle.dumps(message)),
        copy.copy(message),
        copy.deepcopy(message),
        msgspec.structs.replace(message),
    ):
        assert other == message


@given(hst.data())
def test_no_attribute_of_a_part_can_be_set(data: hst.DataObject) -> None:
    cls = data.draw(hst.sampled_from(PARTS))
    part = data.draw(hst.from_type(cls))

    for field in (*part.__struct_fields__, "new"):
        with pytest.raises(AttributeError):
            setattr(part, field, None)


def test_a_foreign_part_is_a_value_too() -> None:
    part = Foreign(b'{"type":"hologram"}')

    assert part == Foreign(b'{"type":"hologram"}')
    assert part != Foreign(b"{}")
    assert part != b'{"type":"hologram"}'
    assert len({part, Foreign(b'{"type":"hologram"}')}) == 1
    assert repr(part) == """Foreign(b'{"type":"hologram"}')"""
    assert pickle.loads(pickle.dumps(part)) == copy.deepcopy(part) == part
    with pytest.raises(AttributeError, match="immutable"):
        part.raw = b""
    with pytest.raises(AttributeError, match="immutable"):
        del part.raw


def test_equal_messages_have_equal_hashes() -> None:
    one, other = Message.user("a", ToolCall(name="f")), Message.user("a", ToolCall(name="f"))

    assert hash(one) == hash(other)
    assert len({one, other}) == 1


def test_deep_values_can_be_compared_without_the_stack() -> None:
    def native(last: int) -> Native:
        value: Any = last
        for _ in range(5_000):
            value = {"k": [value]}
        return Native(api="a", kind="k", block=value)

    assert same(Message.user(native(1)), Message.user(native(1)))
    assert not same(Message.user(native(1)), Message.user(native(2)))
