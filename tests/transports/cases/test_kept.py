"""What the log must keep and a dump may never depend on, each with the right value."""

from __future__ import annotations

import time
from typing import Any

import pytest

from brute.events.codec import decode, encode
from brute.events.entries import Record
from brute.events.events import PromptAppended
from brute.events.messages import Message, Text, ToolCall
from brute.transports import Anthropic, MessageTransport, OpenAI

each_transport = pytest.mark.parametrize("transport", [OpenAI, Anthropic])


def saved(message: Message) -> Message:
    """The message as it comes back from the store."""
    record = Record(event=PromptAppended(message=message), at=0)
    event = decode("prompt.appended", encode(record))[0].event
    assert isinstance(event, PromptAppended)
    return event.message


@each_transport
def test_a_cancelled_run_leaves_the_same_request_however_many_calls_were_done(
    transport: type[MessageTransport],
) -> None:
    calls = [ToolCall(id=f"call_{n}", name="slow") for n in (1, 2)]
    begun = [Message.user("go"), Message.assistant(*calls)]
    after = Message.user("stop, summarise")

    none = transport.dump_all([*begun, after])
    one = transport.dump_all([*begun, Message.tool(calls[0], "done"), after])

    assert len(none) == len(one)
    assert str(none).count("call_2") == str(one).count("call_2")
    for wired in (none, one):
        assert [v for v in transport.check(wired) if v.grade == "hard"] == []


@each_transport
def test_a_cut_through_a_pair_leaves_no_half_on_the_wire(transport: type[MessageTransport]) -> None:
    calls = [ToolCall(id=f"call_{n}", name="run") for n in (1, 2)]
    log = [Message.user("task")]
    for call in calls:
        log += [Message.assistant(call), Message.tool(call, "x")]

    kept = [log[0], log[-1]]

    assert [v for v in transport.check(transport.dump_all(kept)) if v.grade == "hard"] == []


@each_transport
def test_what_was_saved_is_dumped_byte_for_byte(transport: type[MessageTransport]) -> None:
    call = ToolCall(id="call_1", name="q", raw='{"z": 1, "a": {"y":2,"b":3}}')
    nul = Message.tool(call, "W\x00s\x00l\x1a\ud800")
    log = [Message.user("q"), Message.assistant(call), nul]

    again = [saved(message) for message in log]

    assert again == log
    assert str(transport.dump_all(again)) == str(transport.dump_all(log))


@each_transport
def test_a_dump_takes_time_that_grows_with_the_list_alone(
    transport: type[MessageTransport],
) -> None:
    def log(size: int) -> list[Message]:
        pairs = ((ToolCall(id=f"c:{n}", name="a tool"), n) for n in range(size))
        return [m for call, _ in pairs for m in (Message.assistant(call), Message.tool(call, "x"))]

    def spent(messages: list[Message]) -> float:
        begun = time.process_time()
        transport.dump_all(messages)
        return time.process_time() - begun

    small, large = log(500), log(8000)  # every id and name is renamed: the slow way

    ratio = min(spent(large) for _ in range(3)) / min(spent(small) for _ in range(5))

    assert ratio < 16 * 4  # 256 if it grew with the square


@each_transport
def test_a_message_is_never_dumped_by_reference(transport: type[MessageTransport]) -> None:
    [wrapped] = transport.wrap_each(WRAPPED[transport])
    before = repr(wrapped)

    for wired in transport.dump_all([Message.user("a"), wrapped]):
        wired["role"] = "nobody"
        wired["content"] = None

    assert repr(wrapped) == before
    assert isinstance(wrapped.parts[-1], Text)


WRAPPED: dict[type[MessageTransport], Any] = {
    OpenAI: {"role": "assistant", "content": [{"type": "text", "text": "x"}], "odd": {"a": []}},
    Anthropic: {"type": "message", "content": [{"type": "text", "text": "x"}]},
}
