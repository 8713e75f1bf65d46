"""Streams equal replies, however the network cuts them; a cut one never ends in a whole call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute.events.messages import Refusal, Text, ToolCall
from brute.transports import Anthropic, MessageTransport, OpenAI
from brute.transports.base import ProviderError, UnreadableReply
from tests.transports.wires import (
    CUTS,
    Events,
    JSONObject,
    chat_events,
    chat_replies,
    chopped,
    messages_events,
    messages_replies,
    sse,
)

APIS: list[Any] = [
    pytest.param(OpenAI, chat_replies(), chat_events, id="openai"),
    pytest.param(Anthropic, messages_replies(), messages_events, id="anthropic"),
]
each_api = pytest.mark.parametrize(("transport", "replies", "events"), APIS)


@each_api
@given(data=st.data())
def test_a_stream_ends_in_the_reply_that_was_streamed(
    transport: type[MessageTransport],
    replies: st.SearchStrategy[JSONObject],
    events: Events,
    data: st.DataObject,
) -> None:
    body, cuts = data.draw(replies), data.draw(CUTS)
    whole = transport.reply(body)

    reader = transport.stream()
    deltas = [delta for event in events(body, cuts) for delta in reader.feed(event)]

    assert reader.finish() == whole
    said = "".join(part.text for part in whole.message.parts if isinstance(part, (Text, Refusal)))
    assert "".join(delta.text for delta in deltas) == said


@each_api
@given(data=st.data())
def test_it_does_not_matter_where_the_network_cuts_the_bytes(
    transport: type[MessageTransport],
    replies: st.SearchStrategy[JSONObject],
    events: Events,
    data: st.DataObject,
) -> None:
    body, cuts = data.draw(replies), data.draw(CUTS)
    wire = sse(events(body, [5]), done=transport is OpenAI)

    reader = transport.stream()
    for chunk in chopped(wire, cuts):
        reader.feed(chunk)

    assert reader.finish() == transport.reply(body)
    assert transport.reply(wire) == transport.reply(body)


@each_api
@given(data=st.data())
def test_a_cut_stream_ends_in_an_interrupted_reply_without_a_whole_call(
    transport: type[MessageTransport],
    replies: st.SearchStrategy[JSONObject],
    events: Events,
    data: st.DataObject,
) -> None:
    body = data.draw(replies)
    told = events(body, [3])
    last = next(i for i, e in enumerate(told) if _ends(e))
    reader = transport.stream()
    for event in told[: data.draw(st.integers(0, last))]:
        reader.feed(event)

    reply = reader.finish()

    assert reply.finish == "interrupted"
    assert all(call.cut and call.malformed for call in reply.message.tool_calls)
    dumped = transport.dump_all([reply.message])
    assert not any(_holds_a_call(message) for message in dumped)


def _ends(event: JSONObject) -> bool:
    choices = event.get("choices") or [{}]
    return event.get("type") == "message_delta" or bool(choices[0].get("finish_reason"))


def _holds_a_call(message: JSONObject) -> bool:
    content = message["content"] if isinstance(message["content"], list) else []
    return "tool_calls" in message or any(b.get("type") == "tool_use" for b in content)


@each_api
@given(data=st.data())
def test_a_reply_that_hit_its_length_keeps_that_finish_and_its_last_call_is_not_run(
    transport: type[MessageTransport],
    replies: st.SearchStrategy[JSONObject],
    events: Events,
    data: st.DataObject,
) -> None:
    body = data.draw(replies)
    if transport is OpenAI:
        body["choices"][0]["finish_reason"] = "length"
    else:
        body["stop_reason"] = "max_tokens"

    reply = transport.reply(body)

    assert reply.finish == "length"
    cuts = [call.cut for call in reply.message.tool_calls]
    assert cuts == [False] * (len(cuts) - 1) + [True] * bool(cuts)
    assert [*transport.wrap_each(body)] == [reply.message]


@each_api
@given(data=st.data())
def test_wrap_each_takes_a_stream_in_every_form(
    transport: type[MessageTransport],
    replies: st.SearchStrategy[JSONObject],
    events: Events,
    data: st.DataObject,
) -> None:
    body = data.draw(replies)
    told = events(body, [4])
    wire = sse(told, done=transport is OpenAI)
    framed = [{"event": e.get("type", "chunk"), "data": e} for e in told]

    forms: list[object] = [
        told,
        iter(told),
        framed,
        ({"data": sse([e]).decode().split("data: ", 1)[1]} for e in told),
        wire,
        wire.decode(),
        chopped(wire, [11]),
        iter(chopped(wire, [1000])),
    ]

    want = [*transport.wrap_each(body)]
    assert [[*transport.wrap_each(form)] for form in forms] == [want] * len(forms)


@each_api
def test_a_stream_is_read_when_it_is_asked_for_and_not_before(
    transport: type[MessageTransport], replies: object, events: Events
) -> None:
    asked: list[int] = []

    def told() -> Iterator[JSONObject]:
        for number, event in enumerate(events(BODIES[transport], [3])):
            asked.append(number)
            yield event

    messages = transport.wrap_each(told())

    assert asked == []
    assert len([*messages]) == 1
    assert asked


@each_api
async def test_an_async_stream_gives_the_same_message(
    transport: type[MessageTransport], replies: st.SearchStrategy[JSONObject], events: Events
) -> None:
    body = BODIES[transport]

    async def streamed() -> Any:
        for event in events(body, [3]):
            yield event

    assert [m async for m in transport.awrap_each(streamed())] == [*transport.wrap_each(body)]
    assert [m async for m in transport.awrap_each(body)] == [*transport.wrap_each(body)]


CHAT_BODY: JSONObject = {
    "id": "chatcmpl-1",
    "model": "gpt-5.4",
    "created": 1,
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "Looking.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"a":1}'},
                    }
                ],
            },
        }
    ],
}
MESSAGES_BODY: JSONObject = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-6",
    "content": [
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 5},
}
BODIES = {OpenAI: CHAT_BODY, Anthropic: MESSAGES_BODY}


@pytest.mark.parametrize(
    ("transport", "told", "error"),
    [
        (OpenAI, chat_events(CHAT_BODY, [3])[:4], {"error": {"message": "boom", "code": 502}}),
        (
            Anthropic,
            messages_events(MESSAGES_BODY, [3])[:5],
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ),
    ],
)
def test_an_error_in_mid_stream_is_raised_and_what_had_come_is_kept(
    transport: type[MessageTransport], told: list[JSONObject], error: JSONObject
) -> None:
    reader = transport.stream()
    for event in told:
        reader.feed(event)

    with pytest.raises(ProviderError) as raised:
        reader.feed(error)

    assert raised.value.message == error["error"]["message"]
    reply = reader.cut(raised.value)
    assert reply.finish == "interrupted"
    assert reply.message.content.startswith("Loo")


def test_an_error_body_is_raised_with_status_kind_and_words() -> None:
    chat = {"error": {"message": "no such model", "type": "invalid_request_error", "code": 404}}
    anthropic = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}

    with pytest.raises(ProviderError, match="no such model") as first:
        next(OpenAI.wrap_each(chat))
    with pytest.raises(ProviderError, match="slow down") as second:
        Anthropic.reply(anthropic)
    with pytest.raises(ProviderError, match="bad gateway"):
        OpenAI.reply({"error": "bad gateway"})

    assert (first.value.status, first.value.kind) == (404, "invalid_request_error")
    assert (second.value.status, second.value.kind) == (None, "rate_limit_error")


def test_what_is_no_reply_says_so_and_what_to_check() -> None:
    for odd in (42, None, "hello", b"<html>502</html>", {"weather": "fine"}, object()):
        with pytest.raises(UnreadableReply, match="is no reply of this API"):
            OpenAI.reply(odd)


def test_the_events_of_boto3_hold_their_data_as_bytes() -> None:
    told = [
        {"chunk": {"bytes": json.dumps(e).encode()}} for e in messages_events(MESSAGES_BODY, [3])
    ]

    assert Anthropic.reply(told) == Anthropic.reply(MESSAGES_BODY)
    assert [*Anthropic.wrap_each(told)] == [*Anthropic.wrap_each(MESSAGES_BODY)]


def test_a_block_that_was_never_opened_is_what_its_deltas_say() -> None:
    told = [e for e in messages_events(MESSAGES_BODY, [3]) if e["type"] != "content_block_start"]

    assert Anthropic.reply(told).message.content == "Looking."


def test_the_deltas_name_the_call_they_belong_to() -> None:
    deltas = []
    reader = OpenAI.stream()
    for event in chat_events(CHAT_BODY, [4]):
        deltas += reader.feed(event)

    assert "".join(d.text for d in deltas) == "Looking."
    calls = [d for d in deltas if d.call is not None]
    assert [d.name for d in calls if d.name] == ["f"]
    assert "".join(d.arguments for d in calls if d.call == 0) == '{"a":1}'
    part = reader.finish().message.parts[-1]
    assert part == ToolCall(id="call_1", name="f", raw='{"a":1}')
