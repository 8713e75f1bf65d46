"""What no provider should send is kept, mended or named; it never ends in a TypeError of ours."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute.events.codec import encode
from brute.events.entries import Record
from brute.events.errors import TransportError
from brute.events.events import PromptAppended
from brute.events.messages import Message
from brute.transports import Anthropic, MessageTransport, OpenAI
from tests.transports.wires import (
    Events,
    JSONObject,
    chat_events,
    chat_replies,
    messages_events,
    messages_replies,
)

ODD: list[Any] = [None, "", 0, [], {}, "x", 5, True, [None], {"type": "text"}, "\ud800", 1.5]
GONE = object()

APIS: list[Any] = [
    pytest.param(OpenAI, chat_replies(), chat_events, id="openai"),
    pytest.param(Anthropic, messages_replies(), messages_events, id="anthropic"),
]
each_api = pytest.mark.parametrize(("transport", "replies", "events"), APIS)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every member of a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, held in inner if isinstance(value, (dict, list)) else ():
        yield (*at, key)
        if isinstance(held, (dict, list)):
            yield from places(held, (*at, key))


def broken(data: st.DataObject, value: Any) -> Any:
    """The value with one or two of its members gone, or something else."""
    value = copy.deepcopy(value)
    for _ in range(data.draw(st.integers(1, 2))):
        ways = list(places(value))
        if ways:
            *way, last = data.draw(st.sampled_from(ways))
            holder = value
            for key in way:
                holder = holder[key]
            odd = data.draw(st.sampled_from([GONE, *ODD]))
            if odd is GONE:
                del holder[last]
            else:
                holder[last] = copy.deepcopy(odd)
    return value


def survive(read: Callable[[], list[Message]]) -> None:
    """Assert that messages are read, stored, sent and reported, or that an error says why not."""
    try:
        messages = read()
    except TransportError:
        return
    for message in messages:
        encode(Record(event=PromptAppended(message=message), at=0))
    for target in (OpenAI, Anthropic):
        wired = target.dump_all(messages)
        json.dumps(wired, ensure_ascii=False, allow_nan=False).encode()
        target.losses(messages)
        target.normal(messages)
        target.check(wired)


@each_api
@given(data=st.data())
def test_a_reply_of_the_wrong_types_is_read_or_named(
    transport: type[MessageTransport],
    replies: st.SearchStrategy[JSONObject],
    events: Events,
    data: st.DataObject,
) -> None:
    body = broken(data, data.draw(replies))

    survive(lambda: [*transport.wrap_each(body)])
    survive(lambda: [transport.reply(body).message])


@each_api
@given(data=st.data())
def test_a_stream_of_the_wrong_types_is_read_or_named(
    transport: type[MessageTransport],
    replies: st.SearchStrategy[JSONObject],
    events: Events,
    data: st.DataObject,
) -> None:
    told = broken(data, events(data.draw(replies), [9]))

    survive(lambda: [*transport.wrap_each(told)])


@each_api
@given(data=st.data())
def test_a_history_of_the_wrong_types_is_adopted_or_named(
    transport: type[MessageTransport],
    replies: st.SearchStrategy[JSONObject],
    events: Events,
    data: st.DataObject,
) -> None:
    reply = data.draw(replies)
    said = reply if transport is Anthropic else reply["choices"][0]["message"]
    said = {k: v for k, v in said.items() if k in {"role", "content", "tool_calls", "refusal"}}
    body = broken(data, {"system": "s", "messages": [{"role": "user", "content": "a"}, said]})

    survive(lambda: transport.load_all(body))
