"""A transport for a library that has none: `wrap` and `dump`, as the seed shows, and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from brute.events.events import ToolSpec
from brute.events.messages import Message, ToolCall
from brute.transports import MessageTransport


@dataclass
class Said:
    """A message of a library that has never heard of us."""

    who: str
    words: str


@dataclass
class Transcript:
    """What the library gives back when it keeps a history."""

    messages: list[Said]


class MyTransport(MessageTransport):
    @staticmethod
    def dump(message: Message) -> dict[str, Any]:
        return {"who": message.role, "words": message.content}

    def wrap(self, message: Said) -> Message:
        role = "assistant" if message.who == "bot" else "user"
        return (
            Message.assistant(message.words) if role == "assistant" else Message.user(message.words)
        )


ONE, TWO = Said("human", "Hello"), Said("bot", "Good day")


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (ONE, ["Hello"]),
        ([ONE, TWO], ["Hello", "Good day"]),
        ((ONE, TWO), ["Hello", "Good day"]),
        (iter([ONE, TWO]), ["Hello", "Good day"]),
        (Transcript([ONE, TWO]), ["Hello", "Good day"]),
        (None, []),
        ([], []),
    ],
)
def test_wrap_each_flattens_whatever_the_library_gave_back(
    result: object, expected: list[str]
) -> None:
    assert [m.content for m in MyTransport.wrap_each(result)] == expected


def test_wrap_each_on_an_instance_and_the_messages_before_it() -> None:
    transport = MyTransport(Transcript([ONE, TWO]))

    assert transport.messages == [ONE, TWO]
    assert [m.role for m in transport.wrap_each()] == ["user", "assistant"]


def test_dump_all_dumps_each_message_and_ignores_options_it_does_not_know() -> None:
    talk = [Message.system("Be brief."), Message.user("Hello"), Message.assistant("Good day")]

    dumped = MyTransport.dump_all(talk, temperature=1, model="m", anything="at all")

    assert dumped == [
        {"who": "system", "words": "Be brief."},
        {"who": "user", "words": "Hello"},
        {"who": "assistant", "words": "Good day"},
    ]


def test_a_list_from_dump_is_laid_flat() -> None:
    class Several(MyTransport):
        @staticmethod
        def dump(message: Message) -> Any:
            return [{"part": part} for part in message.content.split()]

    assert Several.dump_all([Message.user("a b"), Message.user("c")]) == [
        {"part": "a"},
        {"part": "b"},
        {"part": "c"},
    ]


def test_calls_are_paired_for_it_too() -> None:
    call = ToolCall.of("search", {"q": "x"}, id="c1")

    dumped = MyTransport.dump_all([Message.user("a"), Message.assistant(call), Message.user("b")])

    assert [m["who"] for m in dumped] == ["user", "assistant", "tool", "user"]


def test_what_it_does_not_say_says_what_is_missing() -> None:
    silent: list[Callable[[], object]] = [
        MyTransport.stream,
        lambda: MyTransport.request([]),
        lambda: MyTransport.tools([ToolSpec(name="f")]),
    ]
    for missing in silent:
        with pytest.raises(NotImplementedError, match="MyTransport"):
            missing()
    with pytest.raises(NotImplementedError, match="MessageTransport"):
        MessageTransport.dump(Message.user("a"))
    with pytest.raises(NotImplementedError, match="wrap"):
        next(MessageTransport.wrap_each("a"))


def test_a_library_that_answers_with_a_text_or_a_dict_of_its_own_is_wrapped_too() -> None:
    class Plain(MessageTransport):
        def wrap(self, message: Any) -> Message:
            return Message.assistant(message if isinstance(message, str) else message["error"])

    results = ["42", '{"a": 1}', {"error": "none"}, ["a", "b"]]

    assert [m.content for result in results for m in Plain.wrap_each(result)] == [
        "42",
        '{"a": 1}',
        "none",
        "a",
        "b",
    ]
