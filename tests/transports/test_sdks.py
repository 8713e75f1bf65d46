"""The real SDK clients: what they send is the request's body, what they give back is understood."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import anthropic
import httpx2
import openai
import pytest
from anthropic.types import ContentBlockParam
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam

from brute.events.events import ModelRef, Settings, ToolSpec
from brute.events.messages import Media, Message, ToolCall
from brute.transports import Anthropic, MessageTransport, OpenAI
from brute.transports.anthropic_blocks import dump_block, load_block
from brute.transports.shapes import PlainView
from tests.transports.sdk_types import of_type
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

Handler = Callable[[httpx2.Request], httpx2.Response]


def openai_client(handler: Handler) -> openai.OpenAI:
    http = httpx2.Client(transport=httpx2.MockTransport(handler))
    return openai.OpenAI(api_key="k", base_url="http://test", http_client=http, max_retries=0)


def anthropic_client(handler: Handler) -> anthropic.Anthropic:
    http = httpx2.Client(transport=httpx2.MockTransport(handler))
    return anthropic.Anthropic(api_key="k", base_url="http://test", http_client=http, max_retries=0)


def create(transport: type[MessageTransport], handler: Handler) -> Callable[..., Any]:
    """The call that an application makes."""
    if transport is OpenAI:
        return cast(Callable[..., Any], openai_client(handler).chat.completions.create)
    return cast(Callable[..., Any], anthropic_client(handler).messages.create)


APIS: list[Any] = [
    pytest.param(OpenAI, chat_replies(), chat_events, id="openai"),
    pytest.param(Anthropic, messages_replies(), messages_events, id="anthropic"),
]
each_api = pytest.mark.parametrize(("transport", "replies", "events"), APIS)
slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
quick = settings(max_examples=20, suppress_health_check=slow)

CALL = ToolCall.of("search", {"q": "é\u2028"}, id="call_1")
TALK = [
    Message.system("You plan."),
    Message.user("hi", Media(kind="image", media_type="image/png", data=b"\x89PNG\r\n\x1a\n")),
    Message.assistant("Looking.", CALL),
    Message.tool(CALL, "found"),
    Message.user("thanks \U0001f600"),
]
VIEW = PlainView(
    TALK,
    Settings(
        model=ModelRef(id="some-model"),
        tools=(ToolSpec(name="search", description="Finds.", schema={"type": "object"}),),
        parameters={"max_tokens": 16_000, "temperature": 0.5},
    ),
)


@pytest.mark.parametrize("transport", [OpenAI, Anthropic])
def test_the_body_is_what_the_sdk_sends(transport: type[MessageTransport]) -> None:
    bodies: list[bytes] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        bodies.append(request.read())
        return httpx2.Response(500, json={"error": {"message": "enough"}})

    request = transport.request(VIEW, extra_body={"seen": True}, extra_headers={"x": "y"})
    with pytest.raises((openai.APIError, anthropic.APIError)):
        create(transport, handler)(**request)

    [sent] = bodies
    assert json.loads(sent) == transport.body(request)
    assert transport.items(request) == transport.body(request)["messages"]
    assert transport.settings(request).keys() == transport.body(request).keys() - {"messages"}
    assert "seen" in transport.settings(request)


@each_api
@quick
@given(data=st.data())
def test_the_sdk_s_objects_say_what_the_body_says(
    transport: type[MessageTransport],
    replies: st.SearchStrategy[JSONObject],
    events: Events,
    data: st.DataObject,
) -> None:
    body = data.draw(replies)

    result = create(transport, lambda _: httpx2.Response(200, json=body))(**transport.request(VIEW))

    assert transport.reply(result) == transport.reply(body)
    assert [*transport.wrap_each(result)] == [*transport.wrap_each(body)]


def test_a_message_out_of_a_completion_is_wrapped_by_itself_too() -> None:
    body = {
        "id": "x",
        "model": "m",
        "choices": [{"message": {"role": "assistant", "content": "a"}}],
    }

    completion = ChatCompletion.construct(**cast(Any, body))

    for part in (completion, completion.choices[0].message, [completion.choices[0].message]):
        assert [m.content for m in OpenAI.wrap_each(part)] == ["a"]


@each_api
@quick
@given(data=st.data())
def test_the_sdk_s_streams_say_what_the_body_says(
    transport: type[MessageTransport],
    replies: st.SearchStrategy[JSONObject],
    events: Events,
    data: st.DataObject,
) -> None:
    body, cuts = data.draw(replies), data.draw(CUTS)
    wire = sse(events(body, [5]), done=transport is OpenAI)

    def handler(_: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=iter(chopped(wire, cuts)))

    request = transport.request(VIEW, stream=True)

    assert transport.reply(create(transport, handler)(**request)) == transport.reply(body)
    assert [*transport.wrap_each(create(transport, handler)(**request))] == [
        *transport.wrap_each(body)
    ]


@quick
@given(body=messages_replies())
def test_the_stream_helper_of_anthropic_says_the_same(body: JSONObject) -> None:
    body["content"] = [b for b in body["content"] if b["type"] != "hologram"]
    wire = sse(messages_events(body, [5]))

    def handler(_: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=wire)

    arguments = cast(Any, Anthropic.request(VIEW))
    with anthropic_client(handler).messages.stream(**arguments) as stream:
        reply = Anthropic.reply(stream)

    assert reply == Anthropic.reply(body)


@quick
@given(body=chat_replies())
def test_the_stream_helper_of_openai_says_the_same(body: JSONObject) -> None:
    if body["choices"][0]["finish_reason"] in {"length", "content_filter"}:
        body["choices"][0]["finish_reason"] = "stop"  # the helper raises for the others
    wire = sse(chat_events(body, [5]), done=True)

    def handler(_: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=wire)

    arguments = cast(Any, OpenAI.request([Message.user("a")], model="m"))
    with openai_client(handler).chat.completions.stream(**arguments) as stream:
        reply = OpenAI.reply(stream)

    assert reply == OpenAI.reply(body)


# -- every block that the SDKs know, also those of tomorrow ----------------------------------------


@settings(max_examples=200, suppress_health_check=slow)
@given(block=of_type(ContentBlockParam))
def test_every_block_of_anthropic_s_request_types_goes_back_as_it_came(block: JSONObject) -> None:
    assert dump_block(load_block(block)) == block


@settings(max_examples=200, suppress_health_check=slow)
@given(message=of_type(ChatCompletionMessageParam))
def test_every_message_of_openai_s_request_types_is_loaded_and_dumped_alike(
    message: JSONObject,
) -> None:
    [loaded] = OpenAI.load_all([message])

    dumped = OpenAI.dump(loaded)

    empty = {"refusal", "annotations", "audio", "function_call"}
    expected = {k: v for k, v in message.items() if v or k not in empty}
    assert isinstance(dumped, dict)
    assert {k: v for k, v in dumped.items() if v is not None} == expected
