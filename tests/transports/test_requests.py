"""Requests: what they are built from, what they hold, and what they report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from brute.events.events import ModelRef, Settings, ToolSpec
from brute.events.messages import Media, Message, Native, Origin, Text, ToolCall
from brute.transports import Anthropic, MessageTransport, OpenAI
from brute.transports.base import Buildable, NotSendable, Request, View

JSONObject = dict[str, Any]
each_transport = pytest.mark.parametrize("transport", [OpenAI, Anthropic])

SEARCH = ToolSpec(name="search", description="Finds.", schema={"type": "object", "properties": {}})
SCHEMA: JSONObject = {"type": "object", "properties": {"city": {"type": "string"}}}


class Shown:
    """A session's view."""

    def __init__(self, messages: Sequence[Message], **settings: Any) -> None:
        self.messages = messages
        self.settings = Settings(**settings)


class Recording(Shown):
    """A turn: it records the request it builds."""

    def __init__(self, messages: Sequence[Message], **settings: Any) -> None:
        super().__init__(messages, **settings)
        self.recorded: list[Request] = []

    def build(self, transport: type[MessageTransport], **options: Any) -> Request:
        request = transport.render(self, **options)
        self.recorded.append(request)
        return request


TALK = [Message.user("hi")]


@each_transport
def test_a_turn_builds_its_own_request_and_a_view_is_only_rendered(
    transport: type[MessageTransport],
) -> None:
    turn = Recording(TALK, model=ModelRef(id="m"))

    request = transport.request(turn, max_tokens=7)

    assert turn.recorded == [request]
    assert isinstance(turn, Buildable)
    assert isinstance(turn, View)
    assert request == transport.request(Shown(TALK, model=ModelRef(id="m")), max_tokens=7)
    assert request == transport.request(TALK, model="m", max_tokens=7)


def test_a_chat_request_has_everything_flat() -> None:
    view = Shown(
        TALK,
        model=ModelRef(id="gpt-5.4"),
        system="Be brief.",
        tools=(SEARCH,),
        format=SCHEMA,
        parameters={"temperature": 0, "tool_choice": "auto"},
    )

    assert OpenAI.request(view, temperature=1, stream=True) == {
        "model": "gpt-5.4",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "search",
                    "description": "Finds.",
                    "parameters": SEARCH.schema,
                },
            }
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": SCHEMA},
        },
        "temperature": 1,
        "tool_choice": "auto",
        "stream": True,
    }


def test_an_anthropic_request_has_its_system_text_apart_and_always_max_tokens() -> None:
    view = Shown(
        [Message.system("You plan."), *TALK],
        model=ModelRef(id="claude-opus-4-8"),
        system="Be brief.",
        tools=(SEARCH,),
        format=SCHEMA,
        parameters={"output_config": {"effort": "low"}, "top_k": 3},
    )

    request = Anthropic.request(view)

    assert request == {
        "model": "claude-opus-4-8",
        "max_tokens": 4096,
        "system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "You plan."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "tools": [{"name": "search", "description": "Finds.", "input_schema": SEARCH.schema}],
        "output_config": {
            "effort": "low",
            "format": {"type": "json_schema", "schema": SCHEMA},
        },
        "extra_body": {"top_k": 3},
    }
    assert Anthropic.body(request)["top_k"] == 3
    assert [str(loss) for loss in request.losses] == [
        "the request: added: max_tokens of 4,096 (A1b)"
    ]


def test_tools_are_offered_in_each_shape() -> None:
    specs: list[Any] = [
        ToolSpec(name="bare"),
        ToolSpec(name="strict", extras={OpenAI.api: {"strict": True}}),
        ToolSpec(name="free", kind="custom", description="Anything."),
        ToolSpec(name="web_search", kind="web_search_20250305", extras={Anthropic.api: {"max": 1}}),
        {"type": "function", "function": {"name": "verbatim"}},
    ]

    chat = OpenAI.tools(specs)
    anthropic = Anthropic.tools(specs[:4])

    empty = {"type": "object", "properties": {}}
    assert chat == [
        {"type": "function", "function": {"name": "bare", "parameters": empty}},
        {"type": "function", "function": {"name": "strict", "parameters": empty, "strict": True}},
        {"type": "custom", "custom": {"name": "free", "description": "Anything."}},
        {"type": "function", "function": {"name": "verbatim"}},
    ]
    assert [t["name"] for t in anthropic] == ["bare", "strict", "free", "web_search"]
    assert anthropic[2]["input_schema"]["required"] == ["input"]
    assert anthropic[3] == {"type": "web_search_20250305", "name": "web_search", "max": 1}


def test_system_text_is_what_dump_all_leaves_out() -> None:
    talk = [Message.system("A"), Message.developer("B"), *TALK, Message.system("C")]

    assert Anthropic.system_text(talk) == "A\n\nB"
    assert "A" not in str(Anthropic.dump_all(talk))
    assert "C" in str(Anthropic.dump_all(talk))
    assert Anthropic.system_text(TALK) is None
    assert [m["role"] for m in OpenAI.dump_all(talk)] == ["system", "developer", "user", "system"]


@each_transport
def test_a_request_is_a_plain_dict_and_tells_messages_from_settings(
    transport: type[MessageTransport],
) -> None:
    request = transport.request(TALK, model="m", max_tokens=1, timeout=3, extra_headers={"a": "b"})

    assert isinstance(request, dict)
    assert transport.items(request) == request["messages"]
    assert transport.settings(request) == {"model": "m", "max_tokens": 1}
    assert "timeout" not in transport.body(request)
    assert Request() == {}
    assert Request().losses == []


@each_transport
def test_what_could_not_be_sent_is_reported_with_its_place(
    transport: type[MessageTransport],
) -> None:
    foreign = Native(api="gemini", kind="executableCode", block={})
    video = Media(kind="video", media_type="video/mp4", name="cat", url="https://example.com/v")
    talk = [Message.user("look", video), Message.assistant("Hm.", foreign, ToolCall(name="f"))]

    request = transport.request(talk, max_tokens=1)

    places = {(loss.kind, loss.message, loss.part): str(loss) for loss in request.losses}
    assert "Video video/mp4 'cat' https://example.com/v" in places["omitted", 0, 1]
    assert "a block 'executableCode' of gemini" in places["omitted", 1, 1]
    assert "renamed" in places["renamed", 1, 2]
    assert ("added", 1, None) in places
    assert request.losses == transport.losses(talk)
    assert "Video video/mp4 'cat'" in str(request["messages"][0])


@each_transport
def test_strict_refuses_to_send_what_it_would_have_to_repair(
    transport: type[MessageTransport],
) -> None:
    with pytest.raises(NotSendable, match="a result for the open call of 'f'"):
        transport.request([*TALK, Message.assistant(ToolCall(id="c1", name="f"))], strict=True)

    assert transport.request(TALK, strict=True, max_tokens=1)["messages"]


@each_transport
def test_an_empty_list_stays_empty_and_anything_else_asks_something(
    transport: type[MessageTransport],
) -> None:
    assert transport.dump_all([]) == []
    assert transport.load_all([]) == []
    for silent in (Message.assistant(), Message.system(), Message.assistant(Text(text=""))):
        [wired] = transport.dump_all([silent])
        assert wired["role"] == "user"


def test_a_name_of_a_speaker_goes_where_there_is_a_place_for_it() -> None:
    talk = [Message.user("hi", name="Ann Lee")]

    [wired] = OpenAI.dump_all(talk)

    assert wired["name"].startswith("Ann_Lee_")
    assert "name" not in Anthropic.dump_all(talk)[0]
    assert [loss.rule for loss in Anthropic.losses(talk)] == ["U6"]


def test_a_data_url_is_data_where_addresses_are_fetched() -> None:
    url = "data:image/png;base64,iVBORw0KGgo="
    picture = Message.user(Media(kind="image", url=url))

    [wired] = Anthropic.dump_all([picture])

    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    assert wired["content"] == [{"type": "image", "source": source}]
    assert OpenAI.dump_all([picture])[0]["content"][0]["image_url"] == {"url": url}


def test_members_of_a_message_of_ours_are_only_such_as_the_request_has() -> None:
    extras = {OpenAI.api: {"cache_control": {"type": "ephemeral"}, "secret": 1}}
    talk = [Message.user(Text(text="a", extras=extras))]

    assert OpenAI.dump_all(talk)[0]["content"] == [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    ]


def test_an_audio_that_another_model_spoke_is_words() -> None:
    spoken = {"id": "audio_1", "transcript": "Woof.", "data": "AAAA", "expires_at": 4102444800}
    body = {"model": "gpt-audio", "choices": [{"message": {"role": "assistant", "audio": spoken}}]}
    [wrapped] = OpenAI.wrap_each(body)

    own, other = (OpenAI.dump_all([wrapped], model=m)[0] for m in ("gpt-audio", "grok-5"))

    assert own["audio"] == {"id": "audio_1"}
    assert other == {"role": "assistant", "content": "Woof."}


def test_a_quoted_text_keeps_its_block_and_elsewhere_its_words() -> None:
    block = {
        "type": "search_result",
        "source": "https://example.com",
        "title": "Ex",
        "content": [{"type": "text", "text": "X is y."}],
        "citations": {"enabled": True},
    }
    history = [{"role": "user", "content": [block, {"type": "text", "text": "So?"}]}]

    messages = Anthropic.load_all(history)

    assert Anthropic.dump_all(messages) == history
    assert OpenAI.dump_all(messages)[0]["content"][0] == {
        "type": "text",
        "text": "Ex\nhttps://example.com\nX is y.",
    }


def test_a_reply_of_one_maker_moves_to_the_other_as_text_and_calls() -> None:
    origin = Origin(api=Anthropic.api, provider="anthropic", model="claude-opus-4-8")
    call = ToolCall(id="toolu_1", name="f", raw='{"a":1}')
    said = Message(role="assistant", parts=(Text(text="Looking."), call), origin=origin)

    wired = OpenAI.dump_all([*TALK, said, Message.tool(call, "x")], model="gpt-5.4")

    assert wired[1] == {
        "role": "assistant",
        "content": "Looking.",
        "tool_calls": [
            {"id": "toolu_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
        ],
    }
