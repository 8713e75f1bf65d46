"""The scripted server, met by the vendors' own SDK clients, as an agent under test meets it."""

from __future__ import annotations

import asyncio
import doctest
import gc
import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import typing
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brute.testing
import brute.testing.server as server_module
from brute.testing import (
    Call,
    CutStream,
    Drip,
    Hangup,
    HttpError,
    RawBody,
    Refused,
    Reply,
    Request,
    ScriptedServer,
    StreamError,
    Tokens,
    provider_refusal,
)
from brute.testing.wire_script import thinking_signature

HI: Any = [{"role": "user", "content": "hi"}]
DOCS = Path(__file__).parents[3] / "docs" / "reference" / "scripted-server.md"
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
Sdk = typing.Literal["openai", "anthropic"]
BOTH: tuple[Sdk, ...] = ("openai", "anthropic")


@contextmanager
def openai_at(server: ScriptedServer, **options: Any) -> Iterator[openai.OpenAI]:
    options = {"max_retries": 0, **options}
    with openai.OpenAI(base_url=server.base_url("openai"), api_key="sk-1", **options) as client:
        yield client


@contextmanager
def anthropic_at(server: ScriptedServer, **options: Any) -> Iterator[anthropic.Anthropic]:
    options = {"max_retries": 0, **options}
    url = server.base_url("anthropic")
    with anthropic.Anthropic(base_url=url, api_key="sk-2", **options) as client:
        yield client


@contextmanager
def asker(server: ScriptedServer, sdk: Sdk, **options: Any) -> Iterator[Callable[..., Any]]:
    """A function that asks through one SDK, so that a test can be the same for both."""
    with ExitStack() as stack:
        if sdk == "openai":
            client = stack.enter_context(openai_at(server, **options))
            create: Any = client.chat.completions.create
        else:
            create = stack.enter_context(anthropic_at(server, **options)).messages.create
        defaults = body_for(sdk)
        yield lambda **more: create(**{**defaults, **more})


def body_for(sdk: Sdk, **more: Any) -> dict[str, Any]:
    limit = {"max_tokens": 100} if sdk == "anthropic" else {}
    model = {"openai": "gpt-4.1", "anthropic": "claude-haiku-4-5"}[sdk]
    return {"model": model, "messages": HI, **limit, **more}


def ask_in_vain(script: Any, sdk: Sdk, message: str, **more: Any) -> None:
    """Ask once, and be told by an error 500 what is wrong with the script; no try is repeated."""
    package = {"openai": openai, "anthropic": anthropic}[sdk]
    with (
        ScriptedServer(script) as server,
        asker(server, sdk, max_retries=5) as ask,
        pytest.raises(package.InternalServerError, match=re.escape(message)),
    ):
        ask(**more)


def post(url: str, path: str, body: bytes, method: str = "POST") -> tuple[int, Any, bytes]:
    """A request as no SDK would send it."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request(method, path, body)
        reply = connection.getresponse()
        return reply.status, dict(reply.headers), reply.read()
    finally:
        connection.close()


# What a reply becomes


def said_by_chat(message: Any) -> tuple[Any, ...]:
    calls = message.tool_calls or []
    return (
        message.content or None,
        message.refusal or None,
        [(call.id, call.function.name, call.function.arguments) for call in calls],
        getattr(message, "reasoning_content", None) or None,
    )


def joined_chat(chunks: Any) -> tuple[Any, ...]:
    text, refusal, thinking, finish, usage = "", "", "", None, None
    calls: dict[int, list[str]] = {}
    for chunk in chunks:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            delta, finish = choice.delta, choice.finish_reason or finish
            text += delta.content or ""
            refusal += delta.refusal or ""
            thinking += getattr(delta, "reasoning_content", None) or ""
            for call in delta.tool_calls or []:
                entry = calls.setdefault(call.index, [call.id, call.function.name, ""])
                entry[2] += call.function.arguments or ""
    said = (text or None, refusal or None, [tuple(c) for c in calls.values()], thinking or None)
    return said, finish, usage


TEXTS = ["", " ", "\u2028\u0085\r\n", "\x00", "👩‍👩‍👧", "e\u0301", "data: [DONE]\n\n", '"\\']
LETTERS = st.text(max_size=30) | st.sampled_from(TEXTS)
SAID = LETTERS | st.just("half of a pair: \ud800")  # the SDK's own reader of arguments fails on it
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.none() | st.booleans() | NUMBERS | LETTERS | st.lists(LETTERS, max_size=2)
CALLS = st.builds(
    Call,
    st.sampled_from(["search", "a_b-9", "X" * 64]),
    st.dictionaries(LETTERS, VALUES, max_size=3),
)
REPLIES = st.builds(
    Reply,
    text=st.none() | SAID,
    calls=st.lists(CALLS, max_size=3),
    thinking=st.none() | SAID,
    finish=st.none() | st.sampled_from(["stop", "tool_calls", "length", "content_filter", "new"]),
    usage=st.none() | st.just(Tokens(input=9, output=4, reasoning=1, cache_read=2, cache_write=3)),
    refusal=st.none() | SAID,
)
SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=4)


class Scene:
    """One server and its clients for all examples of a law; each example sets the reply."""

    def __init__(self, server: ScriptedServer, chat: openai.OpenAI, claude: anthropic.Anthropic):
        self.server, self.chat, self.claude = server, chat, claude
        self.reply: Any = Reply("unset")


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    box: list[Scene] = []
    script = ScriptedServer(lambda _: box[0].reply, reasoning_field="reasoning_content")
    with script as server, openai_at(server) as chat, anthropic_at(server) as claude:
        box.append(Scene(server, chat, claude))
        yield box[0]


@given(reply=REPLIES, sizes=SIZES)
def test_a_chat_stream_says_what_the_plain_reply_says_however_it_is_cut(
    scene: Scene, reply: Reply, sizes: list[int]
) -> None:
    body = body_for("openai", stream_options={"include_usage": True})
    scene.reply = reply
    plain = scene.chat.chat.completions.create(**body_for("openai"))
    scene.reply = Drip(reply, sizes)

    said, finish, usage = joined_chat(scene.chat.chat.completions.create(**body, stream=True))

    calls = [(call.name, call.text) for call in reply.calls]
    assert [call[1:] for call in said[2]] == calls
    assert said[:2] == (reply.text or None, reply.refusal or None)
    assert said[3] == (reply.thinking or None)
    again = said_by_chat(plain.choices[0].message)
    assert [call[1:] for call in again[2]] == calls
    assert (*again[:2], again[3]) == (*said[:2], said[3])
    assert (finish, usage) == (plain.choices[0].finish_reason, plain.usage)


@given(reply=REPLIES, sizes=SIZES)
def test_a_messages_stream_says_what_the_plain_reply_says_however_it_is_cut(
    scene: Scene, reply: Reply, sizes: list[int]
) -> None:
    scene.reply = reply
    plain = scene.claude.messages.create(**body_for("anthropic"))
    scene.reply = Drip(reply, sizes)

    with scene.claude.messages.stream(**body_for("anthropic")) as stream:
        streamed = stream.get_final_message()

    def shown(message: Any) -> list[Any]:
        drop = {"id", "parsed_output"}
        return [
            {key: value for key, value in block.to_dict().items() if key not in drop}
            for block in message.content
        ]

    assert shown(streamed) == shown(plain)
    assert [b.input for b in plain.content if b.type == "tool_use"] == [
        json.loads(call.text) for call in reply.calls
    ]
    assert [b.text for b in plain.content if b.type == "text"] == (
        [] if reply.text is None else [reply.text]
    )
    assert (streamed.stop_reason, streamed.stop_details) == (plain.stop_reason, plain.stop_details)
    assert streamed.usage == plain.usage


WHOLE = Reply(
    "Kyoto, then.",
    calls=[Call("search", {"q": "京都"}), Call("add", {"a": 1, "b": 2.5})],
    thinking="They want a trip.",
    usage=Tokens(input=100, output=30, reasoning=7, cache_read=60, cache_write=10),
)


def test_openai_gets_text_parallel_calls_and_usage_in_its_own_shape() -> None:
    with ScriptedServer([WHOLE]) as server, openai_at(server) as client:
        completion = client.chat.completions.create(**body_for("openai"))

        assert completion.to_dict() == {
            "id": "chatcmpl-000001",
            "object": "chat.completion",
            "created": 1_790_000_000,
            "model": "gpt-4.1",
            "service_tier": "default",
            "system_fingerprint": "fp_scripted",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "logprobs": None,
                    "message": {
                        "role": "assistant",
                        "content": "Kyoto, then.",
                        "refusal": None,
                        "annotations": [],
                        "tool_calls": [
                            {
                                "id": "call_000001",
                                "type": "function",
                                "function": {"name": "search", "arguments": '{"q":"京都"}'},
                            },
                            {
                                "id": "call_000002",
                                "type": "function",
                                "function": {"name": "add", "arguments": '{"a":1,"b":2.5}'},
                            },
                        ],
                    },
                }
            ],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 30,
                "total_tokens": 130,
                "prompt_tokens_details": {
                    "cached_tokens": 60,
                    "cache_write_tokens": 10,
                    "audio_tokens": 0,
                },
                "completion_tokens_details": {
                    "reasoning_tokens": 7,
                    "audio_tokens": 0,
                    "accepted_prediction_tokens": 0,
                    "rejected_prediction_tokens": 0,
                },
            },
        }
        assert completion._request_id == "req_000001"


def test_anthropic_gets_thinking_text_calls_and_usage_in_its_own_shape() -> None:
    with ScriptedServer([WHOLE]) as server, anthropic_at(server) as client:
        message = client.messages.create(**body_for("anthropic"))

        assert message.to_dict() == {
            "id": "msg_000001",
            "type": "message",
            "role": "assistant",
            "model": "claude-haiku-4-5",
            "content": [
                {
                    "type": "thinking",
                    "thinking": "They want a trip.",
                    "signature": thinking_signature("They want a trip."),
                },
                {"type": "text", "text": "Kyoto, then."},
                {
                    "type": "tool_use",
                    "id": "toolu_000001",
                    "name": "search",
                    "input": {"q": "京都"},
                },
                {
                    "type": "tool_use",
                    "id": "toolu_000002",
                    "name": "add",
                    "input": {"a": 1, "b": 2.5},
                },
            ],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "stop_details": None,
            "usage": {
                "input_tokens": 30,
                "cache_creation_input_tokens": 10,
                "cache_read_input_tokens": 60,
                "output_tokens": 30,
                "output_tokens_details": {"thinking_tokens": 7},
                "service_tier": "standard",
            },
        }
        assert message._request_id == "req_000001"


def test_the_stream_helpers_of_both_sdks_end_in_the_whole_reply() -> None:
    with ScriptedServer([WHOLE, WHOLE], delta_chars=3) as server:
        with (
            openai_at(server) as chat,
            chat.chat.completions.stream(**body_for("openai")) as chunks,
        ):
            kinds = [event.type for event in chunks]
            completion = chunks.get_final_completion()
        with (
            anthropic_at(server) as claude,
            claude.messages.stream(**body_for("anthropic")) as events,
        ):
            texts = list(events.text_stream)
            message = events.get_final_message()

    calls = completion.choices[0].message.tool_calls or []
    assert [call.function.arguments for call in calls] == ['{"q":"京都"}', '{"a":1,"b":2.5}']
    assert "tool_calls.function.arguments.done" in kinds
    assert texts == ["Kyo", "to,", " th", "en."]
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]


async def test_async_clients_get_the_same_plain_and_streamed() -> None:
    with ScriptedServer(lambda _: WHOLE) as server:
        async with (
            openai.AsyncOpenAI(base_url=server.base_url("openai"), api_key="k") as chat,
            anthropic.AsyncAnthropic(base_url=server.base_url("anthropic"), api_key="k") as claude,
        ):
            plain, message = await asyncio.gather(
                chat.chat.completions.create(**body_for("openai")),
                claude.messages.create(**body_for("anthropic")),
            )
            stream: Any = await chat.chat.completions.create(**body_for("openai"), stream=True)
            chunks = [chunk async for chunk in stream]
            async with claude.messages.stream(**body_for("anthropic")) as events:
                final = await events.get_final_message()

    assert plain.choices[0].message.content == "Kyoto, then."
    assert joined_chat(chunks)[0][0] == "Kyoto, then."
    assert [b.type for b in message.content] == [b.type for b in final.content]


def test_usage_streams_only_when_it_is_asked_for() -> None:
    with ScriptedServer([WHOLE, WHOLE]) as server, openai_at(server) as client:
        silent = list(client.chat.completions.create(**body_for("openai"), stream=True))
        asked = body_for("openai", stream_options={"include_usage": True})
        counted = list(client.chat.completions.create(**asked, stream=True))

    assert [chunk.usage for chunk in silent] == [None] * len(silent)
    assert "usage" not in silent[0].to_dict()
    assert [chunk.usage for chunk in counted[:-1]] == [None] * (len(counted) - 1)
    assert counted[-1].choices == []
    assert counted[-1].usage is not None
    assert counted[-1].usage.total_tokens == 130


@pytest.mark.parametrize(
    ("reply", "chat_word", "messages_word"),
    [
        (Reply("x"), "stop", "end_turn"),
        (Reply(calls=[Call("f")]), "tool_calls", "tool_use"),
        (Reply("x", finish="length"), "length", "max_tokens"),
        (Reply(calls=[Call("f")], finish="length"), "length", "max_tokens"),
        (Reply("x", finish="content_filter"), "content_filter", "refusal"),
        (Reply("x", finish="pause"), "pause", "pause_turn"),
        (Reply(refusal="no"), "stop", "refusal"),
        (Reply("x", finish="brand_new"), "brand_new", "brand_new"),
    ],
)
def test_finish_is_said_in_the_providers_word(
    reply: Reply, chat_word: str, messages_word: str
) -> None:
    with (
        ScriptedServer([reply, reply]) as server,
        asker(server, "openai") as chat,
        asker(server, "anthropic") as claude,
    ):
        assert chat().choices[0].finish_reason == chat_word
        assert claude().stop_reason == messages_word


def test_a_refusal_has_its_own_place_at_each_provider() -> None:
    reply = Reply(refusal="I will not.")
    with (
        ScriptedServer([reply, reply]) as server,
        asker(server, "openai") as chat,
        asker(server, "anthropic") as claude,
    ):
        message = chat().choices[0].message
        assert (message.content, message.refusal) == (None, "I will not.")
        said = claude()
        assert (said.content, said.stop_details.explanation) == ([], "I will not.")


def test_malformed_arguments_reach_the_client_as_they_stand() -> None:
    reply = Reply(calls=[Call("search", '{"q": "kyo')])
    with (
        ScriptedServer([reply, reply]) as server,
        asker(server, "openai") as chat,
        anthropic_at(server) as claude,
    ):
        assert chat().choices[0].message.tool_calls[0].function.arguments == '{"q": "kyo'
        events: Any = claude.messages.create(**body_for("anthropic"), stream=True)
        deltas = [event.delta for event in events if event.type == "content_block_delta"]
        assert "".join(delta.partial_json for delta in deltas) == '{"q": "kyo'


@pytest.mark.parametrize("arguments", ["[1]", '{"q": "kyo'])
def test_a_plain_anthropic_reply_with_malformed_arguments_is_the_scripts_mistake(
    arguments: str,
) -> None:
    script = [Reply(calls=[Call("f", arguments)])]

    with pytest.raises(ValueError, match="script a RawBody"):
        ask_in_vain(script, "anthropic", "only a stream")


@pytest.mark.parametrize("sdk", BOTH)
def test_a_call_keeps_the_id_that_the_script_gives(sdk: Sdk) -> None:
    script = [Reply(calls=[Call("f", id="mine"), Call("f")])]
    with ScriptedServer(script) as server, asker(server, sdk) as ask:
        ids = re.findall(r'"id": ?"(mine|[a-z]+_\d+)"', ask().to_json())

    assert ids[-2:] == ["mine", {"openai": "call_000001", "anthropic": "toolu_000001"}[sdk]]


def test_arguments_that_are_not_json_are_refused_where_the_script_is_written() -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        Call("f", {"x": float("nan")})
    with pytest.raises(TypeError, match="not JSON serializable"):
        Call("f", {"x": object()})


def test_tokens_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(ValueError, match="input includes cache_read"):
        Tokens(input=5, output=1, cache_read=6)
    with pytest.raises(ValueError, match="output includes reasoning"):
        Tokens(input=5, output=1, reasoning=2)


def test_thinking_shows_in_chat_only_under_the_field_of_a_compatible_server() -> None:
    reply = Reply("x", thinking="hm")
    with ScriptedServer([reply]) as server, asker(server, "openai") as chat:
        assert chat().choices[0].message.model_extra == {}
    with (
        ScriptedServer([reply], reasoning_field="reasoning") as server,
        asker(server, "openai") as chat,
    ):
        assert chat().choices[0].message.reasoning == "hm"


def test_the_same_script_gives_the_same_bytes_in_every_run() -> None:
    def run() -> list[bytes]:
        with ScriptedServer(lambda _: WHOLE) as server:
            return [
                post(server.url, PATHS[sdk], json.dumps(body_for(sdk, stream=stream)).encode())[2]
                for sdk in BOTH
                for stream in (False, True)
            ]

    assert run() == run()


def test_a_second_server_gives_no_id_that_the_session_has_already() -> None:
    reply = Reply(calls=[Call("f"), Call("f")])
    messages = list(HI)
    for _ in range(3):
        with ScriptedServer([reply]) as server, asker(server, "anthropic") as ask:
            message = ask(messages=messages)
        calls = [block for block in message.content if block.type == "tool_use"]
        messages.append({"role": "assistant", "content": [block.to_dict() for block in calls]})
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": "ok"} for call in calls
        ]
        messages.append({"role": "user", "content": results})

    ids = re.findall(r'"id": "(toolu_\d+)"', json.dumps(messages))
    assert ids == [f"toolu_{number:06d}" for number in range(1, 7)]


# Agents


def test_an_agent_that_answers_every_call_is_served_to_the_end_by_openai() -> None:
    script = [
        Reply(calls=[Call("search", {"q": "kyoto"}), Call("search", {"q": "nara"})]),
        Reply("Half-way.", calls=[Call("search", {})]),
        Reply("Done."),
    ]
    messages: list[Any] = [{"role": "system", "content": "Plan."}, *HI]
    with ScriptedServer(script) as server, asker(server, "openai") as ask:
        while calls := (message := ask(messages=messages).choices[0].message).tool_calls:
            messages.append(message)
            messages += (
                {"role": "tool", "tool_call_id": call.id, "content": "found"} for call in calls
            )

        assert message.content == "Done."
        assert (server.remaining, server.refusals) == (0, [])
        assert [len(request.body["messages"]) for request in server.requests] == [2, 5, 7]


def test_an_agent_that_sends_thinking_back_is_served_to_the_end_by_anthropic() -> None:
    script = [
        Reply(thinking="First.", calls=[Call("search", {"q": "kyoto"}), Call("search", {})]),
        Reply("Half-way.", thinking="Second.", calls=[Call("search", {})]),
        Reply("Done."),
    ]
    thinking = {"type": "enabled", "budget_tokens": 1024}
    messages: list[Any] = list(HI)
    with ScriptedServer(script) as server, asker(server, "anthropic", timeout=5) as ask:
        while (
            message := ask(messages=messages, thinking=thinking, max_tokens=2000)
        ).stop_reason == "tool_use":
            messages.append({"role": "assistant", "content": message.content})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": "found"}
                for block in message.content
                if block.type == "tool_use"
            ]
            messages.append({"role": "user", "content": results})

        assert message.content[0].text == "Done."
        assert (server.remaining, server.refusals) == (0, [])


def test_a_script_for_each_api_follows_a_session_from_one_to_the_other() -> None:
    script = {"openai.chat": [Reply("from chat")], "anthropic.messages": [Reply("from messages")]}
    with (
        ScriptedServer(script) as server,
        asker(server, "openai") as chat,
        asker(server, "anthropic") as claude,
    ):
        assert claude().content[0].text == "from messages"
        assert chat().choices[0].message.content == "from chat"
        assert [request.api for request in server.requests] == ["anthropic.messages", "openai.chat"]


def test_a_function_answers_what_it_is_asked() -> None:
    def parrot(request: Request) -> Reply:
        return Reply(request.body["messages"][-1]["content"].upper())

    with ScriptedServer(parrot) as server:
        for sdk in BOTH:
            with asker(server, sdk) as ask:
                assert "HI" in ask().to_json()
        assert server.remaining == 0


def test_requests_are_kept_whole_but_for_their_secrets() -> None:
    with ScriptedServer(lambda _: Reply("x")) as server:
        for sdk in BOTH:
            with asker(server, sdk, default_headers={"Cookie": "c=1", "X-Trace": "7"}) as ask:
                ask()
        first, second = server.requests

    assert (first.number, first.method, first.path) == (1, "POST", "/v1/chat/completions")
    assert first.body == body_for("openai") == json.loads(first.raw)
    assert first.headers["authorization"] == first.headers["cookie"] == "<redacted>"
    assert second.headers["authorization"] == "<redacted>"
    assert (second.headers["x-trace"], "anthropic-version" in second.headers) == ("7", True)
    assert "sk-" not in repr(server.requests)


# Faults


@pytest.mark.parametrize("sdk", BOTH)
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (403, "PermissionDeniedError"),
        (404, "NotFoundError"),
        (409, "ConflictError"),
        (422, "UnprocessableEntityError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
        (529, "InternalServerError"),
    ],
)
def test_an_http_error_is_the_sdks_own_error(sdk: Sdk, status: int, error: str) -> None:
    package = {"openai": openai, "anthropic": anthropic}[sdk]
    with ScriptedServer([HttpError(status, "Not today.")]) as server, asker(server, sdk) as ask:
        with pytest.raises(getattr(package, error), match="Not today") as caught:
            ask()

        assert caught.value.status_code == status
        assert caught.value.request_id == "req_000001"


def test_each_provider_has_its_own_words_for_an_error() -> None:
    with (
        ScriptedServer(lambda _: HttpError(429)) as server,
        asker(server, "openai") as chat,
        asker(server, "anthropic") as claude,
    ):
        with pytest.raises(openai.RateLimitError) as first:
            chat()
        with pytest.raises(anthropic.RateLimitError) as second:
            claude()

    assert (first.value.type, first.value.code) == ("requests", "rate_limit_exceeded")
    assert second.value.body == {
        "type": "error",
        "error": {
            "type": "rate_limit_error",
            "message": "The script answers this request with an error 429.",
        },
        "request_id": "req_000002",
    }


def test_an_http_error_can_name_its_type_its_code_and_its_whole_body() -> None:
    quota = HttpError(429, "No money.", type="insufficient_quota", code="insufficient_quota")
    odd = HttpError(502, body="<html>Bad gateway</html>", headers={"server": "proxy"})
    plain = HttpError(418, body={"teapot": True})
    with ScriptedServer([quota, odd, plain]) as server, asker(server, "openai") as ask:
        with pytest.raises(openai.RateLimitError) as first:
            ask()
        with pytest.raises(openai.InternalServerError) as second:
            ask()
        with pytest.raises(openai.APIStatusError) as third:
            ask()

    assert (first.value.type, first.value.code) == ("insufficient_quota", "insufficient_quota")
    assert second.value.response.headers["server"] == "proxy"
    assert second.value.response.text == "<html>Bad gateway</html>"
    assert third.value.response.json() == {"teapot": True}


@pytest.mark.parametrize("sdk", BOTH)
def test_a_client_that_retries_takes_one_answer_for_each_try(sdk: Sdk) -> None:
    script = [
        HttpError(429, retry_after=0.001),
        HttpError(529, retry_after=0.001),
        Reply("at last"),
    ]
    with ScriptedServer(script) as server, asker(server, sdk, max_retries=2) as ask:
        assert "at last" in ask().to_json()
        assert [r.headers["x-stainless-retry-count"] for r in server.requests] == ["0", "1", "2"]


@pytest.mark.parametrize("sdk", BOTH)
def test_a_hangup_is_a_connection_error(sdk: Sdk) -> None:
    package = {"openai": openai, "anthropic": anthropic}[sdk]
    with ScriptedServer([Hangup(), Reply("x")]) as server, asker(server, sdk) as ask:
        with pytest.raises(package.APIConnectionError):
            ask()
        assert "x" in ask().to_json()


BROKEN = (openai.APIConnectionError, anthropic.APIConnectionError, httpx2.RemoteProtocolError)


@pytest.mark.parametrize("sdk", BOTH)
@pytest.mark.parametrize(
    "cut",
    [
        CutStream(WHOLE, after_events=0),
        CutStream(WHOLE, after_events=3),
        CutStream(WHOLE, after_bytes=300),
    ],
)
def test_a_cut_stream_breaks_while_it_is_read(sdk: Sdk, cut: CutStream) -> None:
    with ScriptedServer([cut]) as server, asker(server, sdk) as ask:
        seen = []
        with pytest.raises(BROKEN):
            seen.extend(ask(stream=True))

    assert len(seen) <= (9 if cut.after_events is None else cut.after_events)


@pytest.mark.parametrize("sdk", BOTH)
def test_a_clean_cut_says_nothing_and_only_the_stop_record_is_missing(sdk: Sdk) -> None:
    whole, cut = WHOLE, CutStream(WHOLE, after_events=4, clean=True)
    with ScriptedServer([whole, cut]) as server, asker(server, sdk) as ask:
        everything, rest = list(ask(stream=True)), list(ask(stream=True))

    def bare(events: list[Any]) -> list[Any]:
        return [re.sub(r"\d{6}", "", event.to_json()) for event in events]

    assert bare(rest) == bare(everything)[: len(rest)]
    assert len(rest) == {"openai": 4, "anthropic": 3}[sdk]  # Anthropic's fourth is a ping


@pytest.mark.parametrize("sdk", BOTH)
@pytest.mark.parametrize(
    "cut", [CutStream(WHOLE, after_bytes=20), CutStream(WHOLE, after_events=1)]
)
def test_a_plain_body_is_cut_too(sdk: Sdk, cut: CutStream) -> None:
    package = {"openai": openai, "anthropic": anthropic}[sdk]
    script = [cut, replace(cut, clean=True)]
    with ScriptedServer(script) as server, asker(server, sdk) as ask:
        with pytest.raises(package.APIConnectionError):
            ask()
        with pytest.raises((package.APIResponseValidationError, ValueError)):
            ask()


def test_a_cut_that_cuts_nothing_is_the_scripts_mistake() -> None:
    events, size = CutStream(Reply("x"), after_events=50), CutStream(Reply("x"), after_bytes=50_000)

    with pytest.raises(ValueError, match=r"in \d+ event"):
        ask_in_vain([events], "openai", "cuts nothing", stream=True)
    with pytest.raises(ValueError, match="cuts nothing"):
        ask_in_vain([size], "anthropic", "cuts nothing")
    with pytest.raises(ValueError, match="either after_bytes or after_events"):
        CutStream(Reply("x"))
    with pytest.raises(ValueError, match="either after_bytes or after_events"):
        CutStream(Reply("x"), after_bytes=1, after_events=1)


@pytest.mark.parametrize("sdk", BOTH)
def test_an_error_in_mid_stream_is_the_sdks_own_error(sdk: Sdk) -> None:
    package = {"openai": openai, "anthropic": anthropic}[sdk]
    fault = StreamError(WHOLE, after_events=2)
    with ScriptedServer([fault, fault]) as server, asker(server, sdk) as ask:
        seen = []
        with pytest.raises(package.APIError, match="Overloaded"):
            seen.extend(ask(stream=True))
        with pytest.raises(package.InternalServerError, match="Overloaded"):
            ask()

    assert len(seen) == 2


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_drip_arrives_in_just_these_pieces_even_inside_a_character(size: int) -> None:
    body = body_for("openai", stream=True)
    with (
        ScriptedServer([Drip(Reply("京都 👩‍👩‍👧"), size)]) as server,
        httpx2.stream("POST", server.url + PATHS["openai"], json=body) as reply,
    ):
        pieces = list(reply.iter_raw())

    assert {len(piece) for piece in pieces[:-1]} == {size}
    if size == 1:
        with pytest.raises(UnicodeDecodeError):
            [piece.decode() for piece in pieces]
    assert "京都 👩‍👩‍👧" in b"".join(pieces).decode()


@pytest.mark.parametrize("sizes", [0, [], [3, 0]])
def test_pieces_of_no_size_are_refused(sizes: Any) -> None:
    with pytest.raises(ValueError, match="1 byte or more"):
        Drip(Reply("x"), sizes)


def test_a_slow_drip_ends_with_the_server_and_not_with_its_gap() -> None:
    arrived = threading.Event()
    with ScriptedServer([Drip(Reply("x"), 5, gap=3600)]) as server, httpx2.Client() as client:

        def read() -> bytes:
            got = b""
            with client.stream(
                "POST", server.url + PATHS["openai"], json=body_for("openai", stream=True)
            ) as reply:
                for piece in reply.iter_raw():
                    got += piece
                    arrived.set()
            return got

        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read)
            assert arrived.wait(10)
            server.close()
            with pytest.raises(httpx2.RemoteProtocolError):
                reading.result(10)


def test_a_drip_with_a_gap_arrives_whole() -> None:
    script = [Drip(Reply("slow"), 50, gap=0.0001)] * 2
    with ScriptedServer(script) as server, asker(server, "anthropic") as ask:
        assert ask().content[0].text == "slow"
        assert "slow" in "".join(event.to_json() for event in ask(stream=True))


@pytest.mark.parametrize("sdk", BOTH)
def test_a_recorded_body_is_sent_as_it_stands(sdk: Sdk) -> None:
    path, plain = PATHS[sdk], json.dumps(body_for(sdk)).encode()
    streaming = json.dumps(body_for(sdk, stream=True)).encode()
    with ScriptedServer(lambda _: WHOLE) as server:
        recorded = post(server.url, path, plain)[2], post(server.url, path, streaming)[2]
    script = [
        RawBody(recorded[0]),
        RawBody(recorded[1].decode(), "text/event-stream"),
        CutStream(RawBody(recorded[1], "text/event-stream"), after_events=2, clean=True),
        RawBody({"any": "json"}, status=201, headers={"x-mine": "1"}),
    ]

    with ScriptedServer(script) as server:
        bodies = [post(server.url, path, plain) for _ in script]

    assert [body for _, _, body in bodies[:2]] == list(recorded)
    assert bodies[2][2] == b"".join(re.split(rb"(?<=\n\n)", recorded[1])[:2])
    assert (bodies[3][0], bodies[3][1]["x-mine"], bodies[3][2]) == (201, "1", b'{"any":"json"}')


def test_faults_wrap_one_another() -> None:
    fault = Drip(CutStream(Reply("Hello, you."), after_events=4, clean=True), [1, 9])
    with ScriptedServer([fault], delta_chars=4) as server, asker(server, "openai") as ask:
        assert joined_chat(ask(stream=True))[0][0] == "Hello, you."


# Mistakes of the test itself


@pytest.mark.parametrize("sdk", BOTH)
def test_a_script_that_has_run_out_says_so_at_once(sdk: Sdk) -> None:
    package = {"openai": openai, "anthropic": anthropic}[sdk]
    with ScriptedServer([Reply("x")] * 3) as server, asker(server, sdk, max_retries=5) as ask:
        for _ in range(3):
            ask()
        with pytest.raises(
            package.InternalServerError, match="the script had 3 replies, this is request 4"
        ):
            ask()
        assert len(server.requests) == 4


def test_an_assert_in_a_function_fails_the_test() -> None:
    def script(request: Request) -> Reply:
        assert request.body["messages"] == [], "no history expected"
        return Reply("x")

    with pytest.raises(AssertionError, match="no history expected"):
        ask_in_vain(script, "openai", "no history expected")


def test_what_a_function_raised_is_noted_on_the_error_that_it_caused() -> None:
    def run() -> None:
        with ScriptedServer(lambda _: 1 / 0) as server, asker(server, "openai") as ask:  # type: ignore[arg-type]
            ask()

    with pytest.raises(openai.InternalServerError) as caught:
        run()
    assert "ZeroDivisionError" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("script", "error", "message"),
    [
        (Reply("x"), TypeError, r"a list of answers, not one Reply: \[Reply"),
        ("hello", TypeError, "a list of answers, not one str"),
        ([Reply("x"), "hello"], TypeError, r"script\[1\] gives 'hello', which is neither a Reply"),
        ([Hangup], TypeError, r"script\[0\] gives <class"),
        ({"openai": [Reply("x")]}, ValueError, "no API openai: the server speaks openai.chat"),
    ],
)
def test_a_script_that_is_none_is_refused_where_it_is_written(
    script: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ScriptedServer(script)


def test_a_function_that_returns_no_answer_is_told() -> None:
    def run() -> None:
        with ScriptedServer(lambda _: "hello") as server:  # type: ignore[arg-type]
            status, _, body = post(
                server.url, PATHS["openai"], json.dumps(body_for("openai")).encode()
            )
            assert (status, b"gives 'hello'" in body) == (500, True)

    with pytest.raises(TypeError, match="the script's function gives 'hello'"):
        run()


def test_an_api_without_a_script_is_told() -> None:
    ask_in_vain({"openai.chat": []}, "anthropic", "no replies for anthropic.messages")


def test_several_choices_are_more_than_the_script_has() -> None:
    with pytest.raises(ValueError, match="several choices"):
        ask_in_vain([Reply("x")], "openai", "several choices", n=2)


def test_an_address_needs_a_server_that_was_started() -> None:
    server = ScriptedServer([])
    with pytest.raises(RuntimeError, match="no address yet"):
        _ = server.url
    with server:
        with pytest.raises(ValueError, match="no SDK 'gemini': the server speaks to openai"):
            server.base_url("gemini")  # type: ignore[arg-type]
        with pytest.raises(RuntimeError, match="serves once"):
            server.start()
    with pytest.raises(ValueError, match="1 character or more"):
        ScriptedServer([], delta_chars=0)


# What is no request at all


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("POST", "/v1/responses", 404, "the scripted server speaks POST /v1/chat/completions"),
        ("GET", "/", 404, "Invalid URL (GET /)"),
        ("GET", "/v1/messages", 405, "Not allowed to GET on /v1/messages."),
    ],
)
def test_an_unknown_path_or_method_is_refused(
    method: str, path: str, status: int, message: str
) -> None:
    with ScriptedServer([]) as server:
        found, headers, body = post(server.url, path, b"{}", method)

    assert (found, headers["content-type"]) == (status, "application/json")
    assert message in json.loads(body)["error"]["message"]


def test_an_unknown_path_is_refused_in_the_shape_of_the_client_that_asked() -> None:
    with ScriptedServer([]) as server:
        with anthropic_at(server) as claude, pytest.raises(anthropic.NotFoundError) as first:
            claude.messages.count_tokens(model="m", messages=HI)
        with openai_at(server) as chat, pytest.raises(openai.NotFoundError) as second:
            chat.responses.create(model="m", input="x")

        assert [request.api for request in server.requests] == [None, None]
    assert first.value.body["error"]["type"] == "not_found_error"  # type: ignore[index]
    assert second.value.type == "invalid_request_error"


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"a": NaN}', b'{"a": "\xff"}', b"[" * 100_000],
    ids=["empty", "open", "array", "nan", "latin-1", "deep"],
)
@pytest.mark.parametrize("sdk", BOTH)
def test_a_body_that_is_no_json_object_is_refused(sdk: Sdk, body: bytes) -> None:
    with ScriptedServer([Reply("x")], strict=False) as server:
        status, _, answer = post(server.url, PATHS[sdk], body)

        assert (server.requests[0].raw, server.requests[0].body) == (body, {})
    assert (status, json.loads(answer)["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize(
    "bytes_", [b"", b"\r\n\r\n", b"nonsense\r\n\r\n", b"POST / HTTP/1.1\r\nno colon\r\n\r\n"]
)
def test_what_is_no_http_ends_the_connection_and_nothing_else(bytes_: bytes) -> None:
    with ScriptedServer([Reply("x")]) as server:
        with socket.create_connection(("127.0.0.1", int(urlsplit(server.url).port or 0))) as raw:
            raw.settimeout(10)
            raw.sendall(bytes_)
            raw.shutdown(socket.SHUT_WR)
            assert raw.recv(100) == b""
        with asker(server, "openai") as ask:
            assert ask().choices[0].message.content == "x"
        assert len(server.requests) == 1


def test_a_client_that_waits_to_be_told_to_send_its_body_is_told() -> None:
    body = json.dumps(body_for("openai")).encode()
    with (
        ScriptedServer([Reply("x")]) as server,
        socket.create_connection(("127.0.0.1", int(urlsplit(server.url).port or 0))) as raw,
    ):
        raw.settimeout(10)
        head = f"POST {PATHS['openai']} HTTP/1.1\r\nExpect: 100-continue\r\n"
        raw.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
        assert raw.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        raw.sendall(body)
        assert raw.recv(10_000).startswith(b"HTTP/1.1 200 OK")


# Threads and sockets


def test_eight_threads_are_served_at_once() -> None:
    together = threading.Barrier(8, timeout=10)

    def script(request: Request) -> Reply:
        together.wait()
        return Reply(request.body["messages"][0]["content"])

    def ask(number: int) -> str:
        sdk = BOTH[number % 2]
        with asker(server, sdk) as create:
            messages = [{"role": "user", "content": f"thread {number}"}]
            return str(create(messages=messages).to_json())

    with ScriptedServer(script) as server, ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(ask, range(8)))

        assert all(f"thread {number}" in reply for number, reply in enumerate(replies))
        assert sorted(request.number for request in server.requests) == list(range(1, 9))


def test_closing_leaves_no_thread_and_no_socket_behind() -> None:
    before = set(threading.enumerate())
    with ScriptedServer(lambda _: Reply("x")) as server, ExitStack() as clients:
        for sdk in BOTH * 3:
            clients.enter_context(asker(server, sdk))()
        assert len(set(threading.enumerate()) - before) == 7
        port = int(urlsplit(server.url).port or 0)
        server.close()
        server.close()

        assert set(threading.enumerate()) <= before
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
    gc.collect()  # a socket that was not closed warns here, and a warning is an error


def test_a_client_that_leaves_in_mid_stream_does_no_harm() -> None:
    long = Reply("words " * 100_000)
    with ScriptedServer([long, Reply("x")]) as server:
        with socket.create_connection(("127.0.0.1", int(urlsplit(server.url).port or 0))) as raw:
            body = json.dumps(body_for("openai", stream=True)).encode()
            head = f"POST {PATHS['openai']} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
            raw.sendall(head.encode() + body)
            raw.recv(10)
        with asker(server, "openai") as ask:
            assert ask().choices[0].message.content == "x"


def test_a_function_that_never_returns_is_named_when_the_server_closes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("brute.testing.wire_http._CLOSE_SECONDS", 0.01)
    begun, release = threading.Event(), threading.Event()

    def script(_: Request) -> Reply:
        begun.set()
        release.wait(10)
        return Reply("late")

    server = ScriptedServer(script).start()
    body = json.dumps(body_for("openai")).encode()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(post, server.url, PATHS["openai"], body)
        assert begun.wait(10)
        port = urlsplit(server.url).port
        stuck = [thread for thread in threading.enumerate() if f"-{port}-" in thread.name]
        with pytest.raises(RuntimeError, match="a function of the script has not returned"):
            server.close()
        with pytest.raises((http.client.HTTPException, OSError)):
            asking.result(10)
    release.set()
    for thread in stuck:
        thread.join(10)


# What strict adds


def test_a_refused_request_takes_no_answer_and_is_listed() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    bad = [*HI, {"role": "assistant", "content": None, "tool_calls": [call]}]
    with ScriptedServer([Reply("x")]) as server, asker(server, "openai") as ask:
        with pytest.raises(openai.BadRequestError, match="must be followed by tool messages") as no:
            ask(messages=bad)
        assert ask().choices[0].message.content == "x"

        [refused] = server.refusals
        assert refused == Refused("C2", no.value.body["message"], "messages", request=1)  # type: ignore[index]
        assert (no.value.type, no.value.param) == ("invalid_request_error", "messages")
        assert no.value.response.headers["x-scripted-rule"] == "C2"


def test_a_lenient_server_takes_what_a_provider_would_not() -> None:
    with ScriptedServer(lambda _: Reply("x"), strict=False) as server:
        for sdk in BOTH:
            with asker(server, sdk) as ask:
                ask(messages=[{"role": "assistant", "content": None}])
        assert server.refusals == []


def test_reasoning_goes_back_to_the_compatible_server_that_shows_it() -> None:
    messages = [*HI, {"role": "assistant", "content": "x", "reasoning": "hm"}, *HI]
    body = body_for("openai", messages=messages)

    assert provider_refusal("openai.chat", body) is not None
    assert provider_refusal("openai.chat", body, reasoning_field="reasoning") is None
    script = ScriptedServer([Reply("x")], reasoning_field="reasoning")
    with script as server, asker(server, "openai") as ask:
        assert ask(messages=messages).choices[0].message.content == "x"


def test_a_history_from_elsewhere_keeps_its_signatures_where_that_is_asked_for() -> None:
    thinking = {"type": "thinking", "thinking": "x", "signature": "EqQBCgIYAhIM"}
    content = [thinking, {"type": "text", "text": "y"}]
    messages = [*HI, {"role": "assistant", "content": content}, *HI]
    body = body_for("anthropic", messages=messages)

    assert provider_refusal("anthropic.messages", body) is not None
    assert provider_refusal("anthropic.messages", body, foreign_thinking=True) is None
    script = ScriptedServer([Reply("x")], foreign_thinking=True)
    with script as server, asker(server, "anthropic") as ask:
        assert ask(messages=messages).content[0].text == "x"


# The package and its documentation


def test_the_server_needs_neither_hypothesis_nor_an_sdk() -> None:
    script = """
import sys
import brute.testing.server
from brute.testing import Call, CutStream, Reply, ScriptedServer, Tokens
heavy = {"hypothesis", "openai", "anthropic", "httpx2", "pydantic"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_public_name_loads_and_a_wrong_one_says_so() -> None:
    for name in brute.testing.__all__:
        assert getattr(brute.testing, name) is not None
    assert set(brute.testing.__all__) <= set(dir(brute.testing))
    with pytest.raises(AttributeError, match="has no attribute 'Replay'"):
        _ = brute.testing.Replay


def test_the_docstrings_run() -> None:
    assert doctest.testmod(server_module).failed == 0


@pytest.mark.parametrize(
    "block", re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
)
def test_every_example_of_the_reference_page_runs(block: str) -> None:
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(block, str(DOCS), "exec", dont_inherit=True), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    for test in tests:
        outcome = test()
        if asyncio.iscoroutine(outcome):
            asyncio.run(outcome)
