"""The laws that hold for every transport: round trip, validity, stability, ids, leaks, merging."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from brute.events.messages import (
    Hosted,
    Media,
    Message,
    Native,
    Origin,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from brute.testing import strategies as stored
from brute.testing import wire_chat_rules, wire_messages_rules
from brute.testing.wire_script import Settings
from brute.transports import Anthropic, MessageTransport, OpenAI
from brute.transports.base import NotSendable
from tests.transports.wires import (
    CHAT_MESSAGES,
    JSONObject,
    chat_replies,
    messages_blocks,
    messages_replies,
)

Lists = st.SearchStrategy[list[Message]]

REFUSALS = {OpenAI: wire_chat_rules.refusal, Anthropic: wire_messages_rules.refusal}
MODELS: dict[type[MessageTransport], list[str]] = {
    OpenAI: ["gpt-5.4"],
    Anthropic: ["claude-sonnet-4-5", "claude-opus-4-8", "claude-sonnet-5"],
}
APIS = [OpenAI.api, Anthropic.api]
each_transport = pytest.mark.parametrize("transport", [OpenAI, Anthropic])


def _ours(message: Message) -> Message:
    """The message as if it was never sent or received: without origin and private members."""
    kept = {k: v for k, v in (message.extras or {}).items() if k not in APIS}
    return replace(message, origin=None, extras=kept or None)


OURS: Lists = st.lists(stored.messages(foreign=True).map(_ours), max_size=5)
"""Anything at all, said by nobody's API."""
TALKS: Lists = stored.conversations().map(lambda talk: [_ours(m) for m in talk])


@st.composite
def adopted(draw: st.DrawFn) -> list[Message]:
    """Anything at all, some of it issued by one of our APIs: a history in any state."""
    messages = draw(st.lists(stored.messages(foreign=True), max_size=5) | stored.conversations())
    api = draw(st.sampled_from(APIS))
    return [replace(m, origin=Origin(api=api)) if draw(st.booleans()) else m for m in messages]


def wire(transport: type[MessageTransport], messages: list[Message], **options: Any) -> JSONObject:
    return transport.body(transport.request(messages, **options))


# -- 1: round trip -----------------------------------------------------------------------------


@each_transport
@given(messages=OURS | TALKS)
def test_what_is_dumped_is_loaded_again_as_normal_says(
    transport: type[MessageTransport], messages: list[Message]
) -> None:
    dumped = transport.dump_all(messages)

    loaded = transport.load_all(dumped)

    assert loaded == transport.normal(messages)
    assert transport.dump_all(loaded) == dumped
    assert transport.normal(loaded) == loaded


@each_transport
@given(messages=OURS | TALKS)
def test_a_list_that_loses_nothing_keeps_its_words_calls_and_order(
    transport: type[MessageTransport], messages: list[Message]
) -> None:
    if transport.losses(messages):
        return

    normal = transport.normal(messages)

    assert _said(messages) == _said(normal)


def _said(messages: list[Message]) -> list[tuple[str, ...]]:
    out: list[tuple[str, ...]] = []
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, Text) and part.text:
            out.append(("text", part.text))
        elif isinstance(part, ToolCall):
            out.append(("call", str(part.id), part.name))
        elif isinstance(part, ToolResult):
            out.append(("result", str(part.call_id)))
        elif isinstance(part, Media):
            out.append(("media", str(part.data or part.url or part.file_id)))
    return out


def test_the_system_text_of_a_body_comes_back_and_goes_where_it_was() -> None:
    blocks = [
        {"type": "text", "text": "You plan.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Be brief."},
    ]
    for system in ("You plan.", blocks, blocks[1:]):
        body = {"system": system, "messages": [{"role": "user", "content": "hi"}]}

        messages = Anthropic.load_all(body)

        assert messages[0].role == "system"
        assert Anthropic.dump_all(messages) == body["messages"]
        request = Anthropic.request(messages, model="claude-opus-4-8", max_tokens=5)
        assert request["system"] == system
        assert request["messages"] == body["messages"]


# -- 2: valid ----------------------------------------------------------------------------------


@each_transport
@given(data=st.data(), messages=OURS | TALKS)
def test_whatever_we_say_the_provider_takes_it(
    transport: type[MessageTransport], data: st.DataObject, messages: list[Message]
) -> None:
    if not messages:
        return
    body = wire(transport, messages, model=data.draw(st.sampled_from(MODELS[transport])))

    raw = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()

    assert REFUSALS[transport](body, raw, Settings()) is None  # the scripted provider's own rules
    broken = {violation.rule for violation in transport.check(body)}
    assert broken <= {"C12"}  # OpenAI takes argument text that is no JSON, and gets it as it was


@each_transport
@given(data=st.data(), messages=adopted())
def test_an_adopted_history_in_any_state_keeps_the_hard_rules(
    transport: type[MessageTransport], data: st.DataObject, messages: list[Message]
) -> None:
    if not messages:
        return
    body = wire(transport, messages, model=data.draw(st.sampled_from(MODELS[transport])))

    json.dumps(body, ensure_ascii=False, allow_nan=False).encode()

    assert [v for v in transport.check(body) if v.grade == "hard"] == []


@each_transport
@given(messages=OURS | TALKS | adopted())
def test_strict_raises_where_the_default_repairs_and_only_there(
    transport: type[MessageTransport], messages: list[Message]
) -> None:
    losses = transport.losses(messages)

    if losses:
        with pytest.raises(NotSendable) as raised:
            transport.dump_all(messages, strict=True)
        assert raised.value.losses == losses
        assert str(losses[0]) in str(raised.value)
    else:
        assert transport.dump_all(messages, strict=True) == transport.dump_all(messages)


# -- 3: deterministic and stable -----------------------------------------------------------------


@each_transport
@given(messages=OURS | TALKS | adopted(), model=st.booleans(), data=st.data())
def test_what_an_answered_assistant_message_became_never_changes_again(
    transport: type[MessageTransport], messages: list[Message], model: bool, data: st.DataObject
) -> None:
    options = {"model": MODELS[transport][-1]} if model else {}
    size = data.draw(st.integers(0, len(messages)))
    before, after = (transport.dump_all(m, **options) for m in (messages[:size], messages))

    answered = _last_answered(messages[:size])

    if answered is not None:
        upto = transport.dump_all([*messages[: answered + 1], Message.user("x")], **options)
        kept = sum(1 for m in upto if m["role"] == "assistant")
        assert _upto_assistant(before, kept) == _upto_assistant(after, kept)


def _last_answered(messages: Sequence[Message]) -> int | None:
    """Index of the last assistant message that something other than results came after."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role != "assistant":
            continue
        later = [p for m in messages[index + 1 :] for p in m.parts]
        results = [p.call_id for p in later if isinstance(p, ToolResult)]
        calls = [p.id for p in message.parts if isinstance(p, ToolCall)]
        if later and sorted(map(str, calls)) == sorted(map(str, results)):
            return index
    return None


def _upto_assistant(wired: list[JSONObject], count: int) -> list[JSONObject]:
    """The wire's messages up to and including the assistant's message number `count`."""
    out: list[JSONObject] = []
    for message in wired:
        if count == 0:
            break
        out.append(message)
        count -= message["role"] == "assistant"
    return out


@each_transport
def test_a_hole_that_a_later_reply_closed_stays_closed(transport: type[MessageTransport]) -> None:
    call = ToolCall.of("f", {}, id="call_1")
    talk = [
        Message.user("go"),
        Message.assistant(call),
        Message.user("never mind"),
        Message.assistant("Fine."),
    ]
    closed = transport.dump_all(talk)

    late = transport.dump_all([*talk, Message.tool(call, "42")])

    assert late[: len(closed)] == closed
    assert late[-1]["role"] == "user"
    assert "42" in json.dumps(late[-1])


def test_the_same_list_gives_the_same_bytes_in_any_process() -> None:
    program = """
import json
from brute.events.messages import *
from brute.transports import Anthropic, OpenAI
call = ToolCall(id="call|x.1:é" + "y" * 80, name="read file!", raw='{"z": 1, "a": {"y":2,"b":3}}')
talk = [Message.user("go"), Message.assistant(call, call), Message.tool(call, "x")]
print(json.dumps([Anthropic.dump_all(talk), OpenAI.dump_all(talk)]))
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed, zone in (("0", "UTC"), ("1", "Asia/Tokyo"))
    }

    assert len(outputs) == 1


# -- 4: ids --------------------------------------------------------------------------------------

IDS = st.sampled_from(["a:0", "a.0", "a_0", "", "x" * 64, "x" * 65, "x" * 80, "call|é"])


@each_transport
@given(ids=st.lists(IDS | st.text(max_size=5), min_size=1, max_size=6, unique=True))
def test_two_ids_never_become_one_and_one_that_fits_stays(
    transport: type[MessageTransport], ids: list[str]
) -> None:
    twice = ids + _on_the_wire(transport, ids)  # what a renamed one became, as an id of its own
    ids = list(dict.fromkeys(twice))

    wired = _on_the_wire(transport, ids)

    assert len(set(wired)) == len(ids)
    fitting = [i for i in ids if transport.rules.own_ids.fits(i)]
    assert [i for i in fitting if i in wired] == fitting
    assert wired == _on_the_wire(transport, ids)


def _on_the_wire(transport: type[MessageTransport], ids: list[str]) -> list[str]:
    """The ids of calls on the wire, each in a message of its own, both halves alike."""
    talk = [
        m
        for word in ids
        for m in (Message.assistant(ToolCall(id=word, name="f")), Message.tool(word, "x"))
    ]
    wired = transport.dump_all(talk)
    calls = [i for m in wired for i in _ids(m, "id")]
    assert calls == [i for m in wired for i in _ids(m, "tool_use_id", "tool_call_id")]
    return calls


def _ids(message: JSONObject, *keys: str) -> list[str]:
    content = message["content"] if isinstance(message["content"], list) else []
    holders = [message, *content, *message.get("tool_calls", [])]
    return [h[key] for h in holders for key in keys if key in h]


# -- 5: same provider, nothing lost ----------------------------------------------------------------


@given(body=chat_replies())
def test_a_chat_reply_goes_back_as_it_came(body: JSONObject) -> None:
    message = body["choices"][0]["message"]

    [wrapped] = OpenAI.wrap_each(body)
    answers = [Message.tool(call, "x") for call in wrapped.tool_calls]
    dumped = OpenAI.dump_all([Message.user("a"), wrapped, *answers])

    assert "$raw" not in wrapped.extra(OpenAI.api)
    assert wrapped.origin is not None
    assert wrapped.origin.model == body["model"]
    expected = {k: v for k, v in message.items() if v is not None or k == "content"}
    if not expected.keys() - {"role", "content"} and expected["content"] is None:
        assert len(dumped) == 1  # a reply that says nothing is not said
    else:
        assert dumped[1] == expected


@given(body=messages_replies())
def test_an_anthropic_reply_goes_back_block_by_block(body: JSONObject) -> None:
    calls = [b for b in body["content"] if b["type"] == "tool_use"]

    [wrapped] = Anthropic.wrap_each(body)
    answers = [Message.tool(call, "x") for call in wrapped.tool_calls]
    dumped = Anthropic.dump_all([Message.user("a"), wrapped, *answers])

    assert [c.id for c in wrapped.tool_calls] == [c["id"] for c in calls]
    if body["content"] and not any(c.cut for c in wrapped.tool_calls):
        assert dumped[1] == {"role": "assistant", "content": body["content"]}


@given(messages=st.lists(CHAT_MESSAGES, max_size=4))
def test_an_accepted_chat_history_is_loaded_and_dumped_unchanged(
    messages: list[JSONObject],
) -> None:
    history: list[JSONObject] = []
    for message in messages:
        if message["content"] is None and len(message) == 2:
            continue
        calls = message.get("tool_calls", [])
        history += [{"role": "user", "content": "go"}, message]
        history += ({"role": "tool", "tool_call_id": c["id"], "content": "x"} for c in calls)

    assert OpenAI.dump_all(OpenAI.load_all(history)) == history


@given(contents=st.lists(messages_blocks().filter(bool), max_size=3))
def test_an_accepted_anthropic_history_is_loaded_and_dumped_unchanged(
    contents: list[list[JSONObject]],
) -> None:
    history: list[JSONObject] = []
    for turn, content in enumerate(contents):
        blocks = [
            {**b, "id": f"{b['id']}_{turn}"} if b["type"] == "tool_use" else b for b in content
        ]
        history += [{"role": "user", "content": "go"}, {"role": "assistant", "content": blocks}]
        results = [
            {"type": "tool_result", "tool_use_id": b["id"], "content": "x"}
            for b in blocks
            if b["type"] == "tool_use"
        ]
        if results:
            history.append({"role": "user", "content": results})

    assert Anthropic.dump_all(Anthropic.load_all(history)) == history


def _renumbered(block: JSONObject, turn: int) -> JSONObject:
    return {"id": f"{block['id']}_{turn}"} if block["type"] == "tool_use" else {}


# -- 6: foreign provider, nothing leaked ---------------------------------------------------------

CANARY = "CANARY"


def _private(api: str) -> list[Any]:
    """Parts that only the API that issued them may see again."""
    private: dict[str, Any] = {api: {"secret": CANARY}}
    return [
        Reasoning(text="t", signature=CANARY, extras=private),
        Reasoning(kind="encrypted", data=CANARY),
        Reasoning(text=CANARY, kind="summary"),
        Hosted(id=CANARY, tool="web_search", input={"q": CANARY}),
        Hosted(id=CANARY, tool="web_search", output=[{"encrypted_content": CANARY}]),
        Native(api=api, kind="compaction", block={"type": "compaction", "content": CANARY}),
        Text(text="hi", extras=private),
        ToolCall(id="call_1", name="f", extras=private),
    ]


@each_transport
@given(data=st.data(), api=st.sampled_from([*APIS, "gemini", "openai.responses"]))
def test_nothing_private_reaches_another_api(
    transport: type[MessageTransport], data: st.DataObject, api: str
) -> None:
    if api == transport.api:
        return
    parts = data.draw(st.lists(st.sampled_from(_private(api)), max_size=6))
    origin = Origin(api=api, provider="x", model="m")
    extras = {api: {"a": CANARY}}
    said = Message(role="assistant", parts=tuple(parts), origin=origin, extras=extras)

    body = wire(transport, [Message.user("go"), said], model=MODELS[transport][0])

    assert CANARY not in json.dumps(body)


def test_reasoning_goes_back_to_its_own_model_only() -> None:
    origin = Origin(api=Anthropic.api, provider="anthropic", model="claude-opus-4-8-20260101")
    thought = Reasoning(text="t", signature="c2ln")
    reply = Message(role="assistant", parts=(thought, Text(text="hello")), origin=origin)
    talk = [Message.user("x"), reply, Message.user("y")]

    def kinds(**options: Any) -> list[str]:
        return [block["type"] for block in Anthropic.dump_all(talk, **options)[1]["content"]]

    assert kinds(model="claude-opus-4-8") == ["thinking", "text"]
    assert kinds(model="us.anthropic.claude-opus-4-8-v1:0") == ["thinking", "text"]
    assert kinds(model="my-own-name-for-it") == ["thinking", "text"]
    assert kinds() == ["thinking", "text"]
    assert kinds(model="claude-sonnet-5") == ["text"]
    assert kinds(model="MiniMax-M3") == ["text"]
    assert kinds(platform="bedrock") == ["thinking", "text"]


def test_what_a_gateway_said_of_its_own_does_not_reach_another_maker() -> None:
    reply = {
        "model": "deepseek-v4",
        "choices": [
            {
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "CANARY",
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "f", "arguments": "{}"},
                            "extra_content": {"google": {"thought_signature": "CANARY"}},
                        }
                    ],
                },
            }
        ],
    }
    talk = [*OpenAI.wrap_each(reply), Message.tool("call_1", "x")]

    assert "CANARY" in json.dumps(OpenAI.dump_all(talk, model="deepseek-v4"))
    assert "CANARY" in json.dumps(OpenAI.dump_all(talk, model="my-deployment"))
    assert "CANARY" not in json.dumps(OpenAI.dump_all(talk, model="gpt-5.4"))


# -- 8: merge first, repair second ---------------------------------------------------------------


@each_transport
def test_parallel_calls_that_were_split_over_messages_are_one_turn_again(
    transport: type[MessageTransport],
) -> None:
    calls = [ToolCall.of("f", {"n": n}, id=f"call_{n}") for n in (1, 2)]
    together = [Message.user("go"), Message.assistant(*calls), Message.tool(calls[0], "1")]
    split = [Message.user("go"), Message.assistant(calls[0]), Message.assistant(calls[1])]

    results = [Message.tool(calls[0], "1"), Message.tool(calls[1], "2")]

    assert transport.dump_all([*split, *results]) == transport.dump_all(
        [*together, Message.tool(calls[1], "2")]
    )
    assert transport.losses([*split, *results]) == transport.losses([*together, results[1]])


@each_transport
def test_two_replies_that_were_received_whole_stay_two_and_the_first_is_closed(
    transport: type[MessageTransport],
) -> None:
    origin = Origin(api=transport.api, model=MODELS[transport][0])
    calls = [ToolCall.of("f", {"n": n}, id=f"call_{n}") for n in (1, 2)]
    replies = [Message(role="assistant", parts=(call,), origin=origin) for call in calls]

    before = transport.dump_all([Message.user("go"), replies[0]])
    after = transport.dump_all([Message.user("go"), *replies, Message.tool(calls[1], "2")])

    assert after[: len(before)] == before
    assert [m["role"] for m in after].count("assistant") == 2


@each_transport
@given(messages=adopted())
def test_messages_are_never_changed(
    transport: type[MessageTransport], messages: list[Message]
) -> None:
    kept = repr(messages)

    dumped = transport.dump_all(messages)
    transport.check(dumped)

    assert repr(messages) == kept
