"""The providers' rule books: what they refuse, what they take, and that no body is too odd."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import ContentBlockParam, message_create_params
from anthropic.types.beta import BetaContentBlockParam, BetaMessageParam
from anthropic.types.beta import message_create_params as beta_create_params
from hypothesis import given
from hypothesis import strategies as st
from openai.types import chat
from openai.types.chat import ChatCompletionMessageParam, completion_create_params

from brute.testing import provider_refusal, wire_chat_rules, wire_messages_rules
from brute.testing.wire_script import thinking_signature

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "scripted-server.md"
HI: Any = [{"role": "user", "content": "hi"}]
BASE: dict[str, dict[str, Any]] = {
    "openai.chat": {"model": "gpt-4.1", "messages": HI},
    "anthropic.messages": {"model": "claude-haiku-4-5", "max_tokens": 100, "messages": HI},
}


# What the providers refuse


def call(id: str, arguments: Any = "{}") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}


def use(id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "f", "input": {}, **more}


def result(id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": "ok", **more}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def said(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def tool(id: str, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def thought(words: str, signature: str | None = None) -> dict[str, Any]:
    signature = thinking_signature(words) if signature is None else signature
    return {"type": "thinking", "thinking": words, "signature": signature}


MARK = {"cache_control": {"type": "ephemeral"}}
OPUS = "claude-opus-4-8"
ENABLED = {"type": "enabled", "budget_tokens": 1024}
SEARCHED = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
CUSTOM = {"name": "f", "input_schema": {"type": "object"}}

ANTHROPIC_REFUSES: list[tuple[str, dict[str, Any], str]] = [
    ("A1", {"messages": []}, "messages: at least one message is required"),
    ("A1", {"messages": "hi"}, "messages: Input should be a valid list"),
    ("A1", {"max_tokens": 0}, "max_tokens: Input should be greater than or equal to 1"),
    ("A1", {"model": None}, "model: Input should be a valid string"),
    ("A1", {"messages": ["hi"]}, "messages.0: Input does not match the expected shape"),
    ("U6", {"max_token": 5}, "max_token: Extra inputs are not permitted"),
    ("U6", {"messages": [{**user("x"), "name": "a"}]}, "messages.0.name: Extra inputs"),
    ("U6", {"messages": [user([text("x", foo=1)])]}, "messages.0.content.0.text.foo: Extra"),
    ("U6", {"messages": [*HI, said([{**thought("x"), **MARK}])]}, "thinking.cache_control: Extra"),
    ("U1", {"messages": [user("\ud800")]}, "no low surrogate in string"),
    ("U1", {"messages": HI, "metadata": {"\udc00": "x"}}, "no low surrogate in string"),
    ("A2", {"messages": [said("x"), *HI]}, 'first message must use the "user" role'),
    ("A3", {"messages": [user("")]}, "messages.0: all messages must have non-empty content"),
    ("A3", {"messages": [*HI, said([]), user("x")]}, "messages.1: all messages must have"),
    ("A3", {"messages": [{"role": "user"}]}, "messages.0.content: Field required"),
    ("A3", {"messages": [user(None)]}, "messages.0.content: Input should be a valid list"),
    ("A4", {"messages": [user([text("")])]}, "messages: text content blocks must be non-empty"),
    ("A4", {"messages": [user(" \n")]}, "messages: text content blocks must contain non-white"),
    ("A4", {"system": [text("")]}, "system: text content blocks must be non-empty"),
    (
        "A4",
        {"messages": [*HI, said([use("a")]), user([result("a", content=[text("")])])]},
        "text content blocks must be non-empty",
    ),
    ("A5", {"model": OPUS, "messages": [*HI, said("x")]}, "does not support assistant message pre"),
    ("A5", {"model": "claude-sonnet-5", "messages": [*HI, said("x")]}, "must end with a user"),
    ("A5b", {"messages": [*HI, said("x ")]}, "cannot end with trailing whitespace"),
    ("A6", {"messages": [{"role": "system", "content": "x"}]}, 'Unexpected role "system"'),
    ("A6", {"system": {"text": "x"}}, "system: Input should be a valid list"),
    ("A6", {"system": ["x"]}, "system.0.type: Input should be 'text'"),
    (
        "A7",
        {"model": OPUS, "messages": [*HI, {"role": "system", "content": "x"}, *HI]},
        "messages.1: a `system` message must directly follow a `user` message",
    ),
    (
        "A7",
        {
            "model": OPUS,
            "messages": [
                *HI,
                said([use("a")]),
                {"role": "system", "content": "x"},
                user([result("a")]),
            ],
        },
        "messages.2: a `system` message must directly follow",
    ),
    ("A8", {"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role: Input should be"),
    ("A8", {"messages": [user([use("a")])]}, "`tool_use` blocks can only be in `assistant` mess"),
    ("A8", {"messages": [*HI, said([result("a")])]}, "`tool_result` blocks can only be in `user`"),
    (
        "A9",
        {"messages": [*HI, said([use("a"), use("b")]), user([result("a")])]},
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b.",
    ),
    ("A9", {"messages": [*HI, said([use("a")])]}, "immediately after: a."),
    ("A9", {"messages": [*HI, said([use("a")]), user("never mind")]}, "immediately after: a."),
    (
        "A9",
        {"messages": [*HI, said([use("a")]), user([text("first"), result("a")])]},
        "immediately after: a.",
    ),
    (
        "A9",
        {"messages": [*HI, said([use("a"), text("then")]), user([result("a")])]},
        "immediately after: a.",
    ),
    ("A10", {"messages": [user([result("a")])]}, "unexpected `tool_use_id` found in `tool_result`"),
    (
        "A10",
        {
            "messages": [
                *HI,
                said([use("a")]),
                user([result("a")]),
                said("x"),
                user([result("a")]),
            ]
        },
        "messages.4.content.0: unexpected `tool_use_id`",
    ),
    (
        "A11",
        {"messages": [*HI, said([use("a")]), user([result("a"), result("a")])]},
        "messages.2.content.1: each tool_use must have a single result",
    ),
    (
        "A13",
        {"messages": [*HI, said([use("a.b")]), user([result("a.b")])]},
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    (
        "A14",
        {"messages": [*HI, said([use("a"), use("a")]), user([result("a")])]},
        "`tool_use` ids must be unique",
    ),
    (
        "A15",
        {"messages": [*HI, said([use("a", input="{}")]), user([result("a")])]},
        "tool_use.input: Input should be a valid dictionary",
    ),
    ("A16", {"tools": [{**CUSTOM, "name": "a b"}]}, "tools.0.custom.name: String should match"),
    ("A16", {"tools": [CUSTOM, CUSTOM]}, "tools: Tool names must be unique."),
    ("A16", {"tools": [{"name": "f"}]}, "tools.0.custom.input_schema: Field required"),
    ("A16", {"tools": [{**CUSTOM, "input_schema": {}}]}, "type: Input should be 'object'"),
    (
        "A16",
        {"messages": [*HI, said([use("a", name="x.y")]), user([result("a")])]},
        "tool_use.name: String should match pattern",
    ),
    (
        "A17",
        {"messages": [*HI, said([use("a")]), user([result("a", content="", is_error=True)])]},
        "content cannot be empty if `is_error` is true",
    ),
    (
        "A18",
        {"messages": [*HI, said([use("a")]), user([result("a", content=[{"type": "json"}])])]},
        "Input tag 'json' found using 'type'",
    ),
    (
        "A18",
        {"messages": [*HI, said([use("a")]), user([result("a", content={"x": 1})])]},
        "tool_result.content: Input should be a valid list",
    ),
    ("A18", {"messages": [user([{"type": "hologram"}])]}, "Input tag 'hologram' found using"),
    ("A18", {"messages": [user([{"text": "x"}])]}, "messages.0.content.0.type: Field required"),
    ("A18", {"messages": [user([{"type": "text"}])]}, "content.0.text.text: Field required"),
    ("A18", {"messages": [user([text(5)])]}, "text.text: Input should be a valid string"),  # type: ignore[arg-type]
    ("A19", {"messages": [*HI, said([SEARCH, text("x")]), *HI]}, "server tool use with id `s1`"),
    ("A19", {"messages": [*HI, said([SEARCHED, text("x")]), *HI]}, "no server tool use with id"),
    (
        "A20",
        {"messages": [user([text(str(number), **MARK) for number in range(5)])]},
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    (
        "A23",
        {
            "thinking": ENABLED,
            "max_tokens": 2000,
            "messages": [*HI, said([use("a")]), user([result("a")])],
        },
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found",
    ),
    ("A24", {"messages": [*HI, said([thought("x"), text("y")])]}, "When thinking is disabled"),
    (
        "A25",
        {"messages": [*HI, said([thought("x", "EqQBCgIYAhIM"), text("y")]), *HI]},
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    (
        "A25",
        {"messages": [*HI, said([thought("x", thinking_signature("z")), text("y")]), *HI]},
        "cannot be modified",
    ),
    (
        "A25",
        {"messages": [*HI, said([{"type": "redacted_thinking", "data": "Em"}, text("y")]), *HI]},
        "Invalid `data` in `redacted_thinking` block",
    ),
]

CALLED = said(None, tool_calls=[call("a"), call("b")])

OPENAI_REFUSES: list[tuple[str, dict[str, Any], str]] = [
    ("C0", {"messages": []}, "Invalid 'messages': empty array."),
    ("C0", {"messages": {}}, "Invalid type for 'messages': expected an array of objects, but got"),
    ("C0", {"model": None}, "you must provide a model parameter"),
    ("C0", {"stream_options": {}}, "only allowed when 'stream' is enabled"),
    ("U6", {"max_token": 5}, "Unrecognized request argument supplied: max_token"),
    ("U6", {"messages": [said("x", reasoning_content="y")]}, "'messages[0].reasoning_content'"),
    ("U6", {"messages": [*HI, said("x", parsed=None)]}, "Unknown parameter: 'messages[1].parsed'."),
    ("U6", {"messages": [said(None, tool_calls=[{**call("a"), "index": 0}]), tool("a")]}, "index"),
    (
        "U6",
        {
            "messages": [
                said(
                    None,
                    tool_calls=[
                        {
                            "id": "a",
                            "type": "function",
                            "function": {"name": "f", "arguments": "{}", "parsed_arguments": {}},
                        }
                    ],
                ),
                tool("a"),
            ]
        },
        "'messages[0].tool_calls[0].function.parsed_arguments'",
    ),
    ("U1", {"messages": [user("\udfff")]}, "could not parse the JSON body"),
    ("C1", {"messages": [{"role": "model", "content": "x"}]}, "Invalid value: 'model'. Supported"),
    (
        "C1",
        {"messages": ["hi"]},
        "Invalid type for 'messages[0]': expected an object, but got a st",
    ),
    (
        "C2",
        {"messages": [*HI, CALLED, tool("a")]},
        "The following tool_call_ids did not have response messages: b",
    ),
    ("C2", {"messages": [*HI, CALLED, *HI, tool("a"), tool("b")]}, "response messages: a, b"),
    ("C2", {"messages": [*HI, CALLED]}, "must be followed by tool messages"),
    ("C3", {"messages": [*HI, tool("a")]}, "must be a response to a preceeding message"),
    ("C3", {"messages": [CALLED, tool("a"), tool("b"), tool("a")]}, "must be a response to"),
    ("C3", {"messages": [CALLED, {"role": "tool", "content": "x"}]}, "'messages[1].tool_call_id'"),
    ("C4", {"messages": [*HI, said(None)]}, "Invalid value for 'content': expected a string, got"),
    ("C4", {"messages": [{"role": "assistant"}]}, "Missing required parameter: 'messages[0].cont"),
    ("C5", {"messages": [said("x", tool_calls=[])]}, "Invalid 'messages[0].tool_calls': empty arr"),
    ("C5", {"messages": [said("x", tool_calls={})]}, "expected an array of objects, but got an ob"),
    ("C5", {"messages": [said("x", tool_calls=["f"])]}, "expected an object, but got a string"),
    ("C5", {"messages": [said("x", tool_calls=[{"id": "a"}])]}, "'messages[0].tool_calls[0].type'"),
    ("C5", {"messages": [said("x", tool_calls=[{"id": "a", "type": "z"}])]}, "Invalid value: 'z'"),
    (
        "C5",
        {"messages": [said("x", tool_calls=[{"id": "a", "type": "function"}])]},
        "Missing required parameter: 'messages[0].tool_calls[0].function'",
    ),
    (
        "C6",
        {"messages": [said(None, tool_calls=[call("a"), call("a")]), tool("a"), tool("a")]},
        "duplicate value for 'id': 'a'",
    ),
    (
        "C7",
        {"messages": [said(None, tool_calls=[call("a" * 65)]), tool("a" * 65)]},
        "Expected a string with maximum length 64, but got a string with length 65 instead.",
    ),
    ("C7", {"messages": [said(None, tool_calls=[call("")]), tool("")]}, "empty string. Expected"),
    ("C8", {"messages": [{**user("x"), "name": "a b"}]}, "'messages[0].name': string does not mat"),
    (
        "C10",
        {"messages": [CALLED, tool("a", [{"type": "image_url"}])]},
        "Supported values are: 'te",
    ),
    ("C10", {"messages": [user([{"text": "x"}])]}, "'messages[0].content[0].type'"),
    ("C10", {"messages": [user([{"type": "text"}])]}, "'messages[0].content[0].text'"),
    ("C10", {"messages": [user([text(5)])]}, "expected a string, but got an integer instead"),  # type: ignore[arg-type]
    (
        "C10",
        {"messages": [user(5)]},
        "expected a string or an array of objects, but got an integer",
    ),
    ("C11", {"tools": []}, "Invalid 'tools': empty array"),
    (
        "C11",
        {"tools": {}},
        "Invalid type for 'tools': expected an array of objects, but got an obj",
    ),
    ("C11", {"tools": [{"name": "f"}]}, "Missing required parameter: 'tools[0].type'."),
    ("C11", {"tools": [{"type": "function"}]}, "Missing required parameter: 'tools[0].function'."),
    ("C11", {"tools": [{"type": "function", "function": {}}]}, "'tools[0].function.name'"),
    (
        "C11",
        {"tools": [{"type": "function", "function": {"name": "a.b"}}]},
        "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    ),
    ("C11", {"tools": [{"type": "function", "function": {"name": "a" * 65}}]}, "too long"),
    (
        "C12",
        {"messages": [said(None, tool_calls=[call("a", {})]), tool("a")]},
        "'messages[0].tool_calls[0].function.arguments': expected a string, but got an object",
    ),
    (
        "C12",
        {
            "messages": [
                said(None, tool_calls=[{"id": "a", "type": "custom", "custom": {"name": "f"}}]),
                tool("a"),
            ]
        },
        "Missing required parameter: 'messages[0].tool_calls[0].custom.input'.",
    ),
    ("C13", {"messages": [user(None)]}, "Invalid value for 'content': expected a string, got null"),
    ("C13", {"messages": [user([])]}, "Invalid 'messages[0].content': empty array"),
    ("C13", {"messages": [CALLED, tool("a", None)]}, "expected a string, got null"),
]

REFUSED = [("anthropic.messages", *row) for row in ANTHROPIC_REFUSES]
REFUSED += [("openai.chat", *row) for row in OPENAI_REFUSES]


@pytest.mark.parametrize(
    ("api", "rule", "change", "message"), REFUSED, ids=[f"{row[0]}-{row[1]}" for row in REFUSED]
)
def test_a_request_that_the_provider_refuses_is_refused_in_its_words(
    api: str, rule: str, change: dict[str, Any], message: str
) -> None:
    found = provider_refusal(api, BASE[api] | change)

    assert found is not None
    assert (found.rule, message in found.message) == (rule, True), found


ANTHROPIC_TAKES: list[dict[str, Any]] = [
    {},
    {"system": "", "messages": [*HI, *HI, said("x"), said("y"), *HI]},
    {"messages": [*HI, said("x")]},
    {"messages": [*HI, said("")]},
    {"messages": [*HI, said([use("a"), use("b")]), user([result("b"), result("a"), text("x")])]},
    {"messages": [*HI, said([use("a"), use("b")]), user([result("a")]), user([result("b")])]},
    {"messages": [*HI, said([use("a")]), user([{"type": "tool_result", "tool_use_id": "a"}])]},
    {"messages": [*HI, said([use("a")]), user([result("a", content=[], is_error=False)])]},
    {"messages": [*HI, said([use("a", cache_control=None)]), user([result("a")]), said("x"), *HI]},
    {"messages": [*HI, said([SEARCH, SEARCHED, text("x")]), *HI]},
    {"model": OPUS, "messages": [*HI, said([text("Looking."), SEARCH])]},
    {"model": OPUS, "messages": [*HI, {"role": "system", "content": "x"}]},
    {"model": OPUS, "messages": [*HI, {"role": "system", "content": "x"}, said("y"), *HI]},
    {"messages": [*HI, said([thought("x"), text("y")]), *HI]},
    {"messages": [*HI, said([text("x", citations=None)]), *HI], "system": [text("x", **MARK)]},
    {
        "thinking": ENABLED,
        "max_tokens": 2000,
        "messages": [*HI, said([use("a")]), user([result("a")]), said("x"), *HI],
    },
    {"tools": [CUSTOM, {"type": "web_search_20250305", "name": "web_search"}]},
]

OPENAI_TAKES: list[dict[str, Any]] = [
    {},
    {"messages": [said("x"), *HI, *HI, {"role": "system", "content": "late"}, said("y")]},
    {"messages": [*HI, CALLED, tool("b"), tool("a"), *HI]},
    {"messages": [*HI, {"role": "assistant", "tool_calls": [call("a")]}, tool("a", [text("x")])]},
    {"messages": [*HI, said("", tool_calls=[call("a")]), {**tool("a"), "name": "f"}]},
    {"messages": [*HI, said([text("x")], annotations=[], refusal=None)]},
    {"messages": [*HI, said(None, refusal="no"), said("")]},
    {"messages": [*HI, said([], tool_calls=[call("a", "not json")]), tool("a")]},
    {
        "messages": [
            said(None, tool_calls=[call("a" * 64)]),
            tool("a" * 64),
            CALLED,
            tool("a"),
            tool("b"),
        ]
    },
    {"messages": [user([text("x"), {"type": "image_url", "image_url": {"url": "data:,"}}])]},
    {
        "messages": [
            said(
                None,
                tool_calls=[{"id": "a", "type": "custom", "custom": {"name": "f", "input": ""}}],
            ),
            tool("a"),
        ]
    },
    {"stream": True, "stream_options": {"include_usage": True}},
]

TAKEN = [("anthropic.messages", row) for row in ANTHROPIC_TAKES]
TAKEN += [("openai.chat", row) for row in OPENAI_TAKES]


@pytest.mark.parametrize(("api", "change"), TAKEN)
def test_a_request_that_the_provider_takes_is_taken(api: str, change: dict[str, Any]) -> None:
    assert provider_refusal(api, BASE[api] | change) is None


@pytest.mark.parametrize(
    ("api", "key", "rule"),
    [
        ("anthropic.messages", "model", "A1"),
        ("anthropic.messages", "max_tokens", "A1"),
        ("anthropic.messages", "messages", "A1"),
        ("openai.chat", "model", "C0"),
        ("openai.chat", "messages", "C0"),
    ],
)
def test_a_request_without_what_every_request_has_is_told_what_is_missing(
    api: str, key: str, rule: str
) -> None:
    body = {name: value for name, value in BASE[api].items() if name != key}

    found = provider_refusal(api, body)

    assert found is not None
    assert (found.rule, key in found.message) == (rule, True)


def test_nan_in_a_body_is_refused_before_any_rule() -> None:
    found = provider_refusal("openai.chat", {"model": "m", "temperature": float("nan")})

    assert found is not None
    assert found.rule == "U2"


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "text", "user"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "role", "content", "text", "id", "tool_use_id", "x"]), inner
        )
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if not isinstance(value, dict | list):
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from places(inner, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(copy[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("api", ["openai.chat", "anthropic.messages"])
@given(data=st.data())
def test_no_body_is_too_odd_to_be_judged(api: str, data: st.DataObject) -> None:
    rows = [change for taken, change in TAKEN if taken == api]
    rows += [change for refused, _, change, _ in REFUSED if refused == api]
    body = BASE[api] | data.draw(st.sampled_from(rows))
    path = data.draw(st.sampled_from([p for p in places(body) if p]))

    found = provider_refusal(api, replaced(body, path, data.draw(ANY_JSON)))

    assert found is None or found.message


# The tables against the SDKs' types: an upgrade that knows more fails here


def typed_dicts(union: Any) -> list[Any]:
    """The TypedDicts of a union, however it is nested."""
    found: list[Any] = []
    for one in typing.get_args(union):
        found += [one] if hasattr(one, "__required_keys__") else typed_dicts(one)
    return found


def test_the_blocks_are_those_of_the_anthropic_sdk() -> None:
    known: dict[str, set[str]] = {}
    for block in [*typed_dicts(ContentBlockParam), *typed_dicts(BetaContentBlockParam)]:
        hints = typing.get_type_hints(block)
        [tag] = typing.get_args(hints.pop("type"))
        known[tag] = known.get(tag, set()) | set(hints)

    ours = {
        tag: shape.required | shape.optional for tag, shape in wire_messages_rules.BLOCKS.items()
    }
    assert {tag: set(keys) - {"type"} for tag, keys in ours.items()} == known


def test_the_message_keys_are_those_of_the_sdks() -> None:
    claude = {
        typing.get_args(hints["role"]): set(hints)
        for hints in map(typing.get_type_hints, typed_dicts(BetaMessageParam))
    }
    chat_keys = {
        typing.get_args(hints["role"])[0]: set(hints)
        for hints in map(typing.get_type_hints, typed_dicts(ChatCompletionMessageParam))
    }

    for roles, keys in claude.items():
        assert all(wire_messages_rules.MESSAGE_KEYS[role] == keys for role in roles)
    ours = {role: set(keys) for role, keys in wire_chat_rules.KEYS.items()}
    ours["assistant"].remove("annotations")
    ours["tool"].remove("name")
    assert ours == chat_keys
    assert {"name", "arguments"} == set(
        typing.get_type_hints(chat.chat_completion_message_function_tool_call_param.Function)
    )


def test_the_parameters_are_those_of_the_sdks() -> None:
    claude = set(typing.get_type_hints(message_create_params.MessageCreateParamsBase))
    claude |= set(typing.get_type_hints(beta_create_params.MessageCreateParamsBase))
    openai_keys = set(typing.get_type_hints(completion_create_params.CompletionCreateParamsBase))

    assert openai_keys | {"stream"} == wire_chat_rules.TOP_LEVEL
    older = {"stream", "temperature", "top_k", "top_p", "output_format"}
    assert claude | older == wire_messages_rules.TOP_LEVEL


def test_the_reference_page_lists_every_rule() -> None:
    listed = set(
        re.findall(r"^\| `([A-Z]\d+b?)` \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    )

    assert {row[1] for row in REFUSED} | {"U2"} == listed
