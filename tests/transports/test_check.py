"""`check` finds where a request breaks a rule, and says which, where, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from brute.transports import Anthropic, MessageTransport, OpenAI

JSONObject = dict[str, Any]

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USER = {"role": "user", "content": "hi"}


def chat(*messages: JSONObject, **more: Any) -> JSONObject:
    return {"model": "gpt-5.4", "messages": [*messages], **more}


def asks(*calls: JSONObject, **more: Any) -> JSONObject:
    return {"role": "assistant", "content": None, "tool_calls": [*calls], **more}


def tells(id: str, content: Any = "x", **more: Any) -> JSONObject:
    return {"role": "tool", "tool_call_id": id, "content": content, **more}


def function(**changes: Any) -> JSONObject:
    return {**CALL, "function": {**CALL["function"], **changes}}  # type: ignore[dict-item]


def user(**block: Any) -> JSONObject:
    return {"role": "user", "content": [block]}


CHAT: list[tuple[str, str, JSONObject]] = [
    ("U1", "/messages/0/content", chat({"role": "user", "content": "a\ud800"})),
    (
        "U1",
        "/messages/0/tool_calls/0/function/arguments",
        chat(asks(function(arguments='{"a": "\\ud800"}')), tells("c1")),
    ),
    ("U2", "/temperature", chat(USER, temperature=float("nan"))),
    ("C0", "/messages", chat()),
    ("C1", "/messages/0/role", chat({"role": "model", "content": "x"})),
    ("C1", "/messages/0/parts", chat({**USER, "parts": []})),
    ("C2", "/messages/0/tool_calls/0", chat(asks(CALL))),
    ("C2", "/messages/0/tool_calls/0", chat(asks(CALL), USER, tells("c1"))),
    ("C3", "/messages/1", chat(USER, tells("c1"))),
    ("C3", "/messages/2", chat(asks(CALL), tells("c1"), tells("c1"))),
    ("C4", "/messages/0/content", chat({"role": "assistant", "content": None})),
    ("C5", "/messages/0/tool_calls", chat({**asks(), "content": "x"})),
    ("C6", "/messages/0/tool_calls/1/id", chat(asks(CALL, CALL), tells("c1"), tells("c1"))),
    (
        "C7",
        "/messages/0/tool_calls/0/id",
        chat(asks({**CALL, "id": "x" * 65}), tells("x" * 65)),
    ),
    ("C8", "/messages/0/name", chat({**USER, "name": "a b"})),
    ("C10", "/messages/1/content/0", chat(asks(CALL), tells("c1", [{"type": "image_url"}]))),
    (
        "C11",
        "/messages/0/tool_calls/0/function/name",
        chat(asks(function(name="a b")), tells("c1")),
    ),
    ("C11", "/tools/0/function/name", chat(USER, tools=[function(name="a.b")])),
    (
        "C12",
        "/messages/0/tool_calls/0/function/arguments",
        chat(asks(function(arguments="[1]")), tells("c1")),
    ),
    (
        "C12a",
        "/messages/0/tool_calls/0/function/arguments",
        chat(asks(function(arguments={"a": 1})), tells("c1")),
    ),
    ("C13", "/messages/0/content", chat({"role": "user", "content": []})),
    ("C14", "/messages/0/content/0/image_url", chat(user(type="image_url", image_url="x.png"))),
    ("C15", "/messages/0/content/0/file", chat(user(type="file", file={"filename": "a"}))),
    (
        "C16",
        "/messages/0/content/0/input_audio/format",
        chat(user(type="input_audio", input_audio={"data": "", "format": "ogg"})),
    ),
    (
        "C17",
        "/messages/0/audio",
        chat({"role": "assistant", "audio": {"id": "a", "transcript": "b"}}),
    ),
]

USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
TEXT = {"type": "text", "text": "hi"}
MARKED = {**TEXT, "cache_control": {"type": "ephemeral"}}
HOSTED = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
THOUGHT = {"type": "thinking", "thinking": "t", "signature": "s"}


def claude(*messages: JSONObject, model: str = "claude-sonnet-4-5", **more: Any) -> JSONObject:
    return {"model": model, "max_tokens": 9, "messages": [*messages], **more}


def says(role: str, *blocks: JSONObject) -> JSONObject:
    return {"role": role, "content": [*blocks]}


ASKED = says("user", TEXT)

ANTHROPIC: list[tuple[str, str, JSONObject]] = [
    ("U1", "/messages/0/content/0/text", claude(says("user", {**TEXT, "text": "\udfff"}))),
    ("U2", "/top_p", claude(ASKED, top_p=float("inf"))),
    ("A1", "/messages", claude()),
    ("A1b", "/max_tokens", {"model": "m", "messages": [ASKED]}),
    ("A2", "/messages/0", claude(says("assistant", TEXT), ASKED)),
    ("A3", "/messages/1/content", claude(ASKED, says("assistant"), ASKED)),
    ("A4", "/messages/0/content/1", claude(says("user", TEXT, {**TEXT, "text": " "}))),
    ("A4", "/system/0", claude(ASKED, system=[{**TEXT, "text": ""}])),
    ("A5", "/messages/1", claude(ASKED, says("assistant", TEXT), model="claude-opus-4-6")),
    ("A5b", "/messages/1/content/0", claude(ASKED, says("assistant", {**TEXT, "text": "a "}))),
    ("A6", "/messages/1", claude(ASKED, says("system", TEXT))),
    ("A7", "/messages/1", claude(ASKED, says("system", TEXT), ASKED, model="claude-opus-4-8")),
    ("A8", "/messages/0/content/1", claude(says("user", TEXT, THOUGHT))),
    ("A9", "/messages/1/content/0", claude(ASKED, says("assistant", USE), ASKED)),
    ("A10", "/messages/0/content/0", claude(says("user", RESULT))),
    (
        "A11",
        "/messages/2/content/1",
        claude(ASKED, says("assistant", USE), says("user", RESULT, RESULT)),
    ),
    (
        "A12",
        "/messages/2/content/1",
        claude(ASKED, says("assistant", USE), says("user", TEXT, RESULT)),
    ),
    (
        "A13",
        "/messages/1/content/0/id",
        claude(ASKED, says("assistant", {**USE, "id": "a:b"}), says("user", RESULT)),
    ),
    (
        "A14",
        "/messages/3/content/0/id",
        claude(ASKED, *[says("assistant", USE), says("user", RESULT)] * 2),
    ),
    (
        "A14a",
        "/messages/1/content/1/id",
        claude(ASKED, says("assistant", USE, USE), says("user", RESULT)),
    ),
    (
        "A15",
        "/messages/1/content/0/input",
        claude(ASKED, says("assistant", {**USE, "input": "{}"}), says("user", RESULT)),
    ),
    ("A16", "/tools/0/name", claude(ASKED, tools=[{"name": "a b", "input_schema": {}}])),
    (
        "A17",
        "/messages/2/content/0",
        claude(
            ASKED,
            says("assistant", USE),
            says("user", {**RESULT, "content": "", "is_error": True}),
        ),
    ),
    (
        "A18",
        "/messages/2/content/0/content/0",
        claude(ASKED, says("assistant", USE), says("user", {**RESULT, "content": [USE]})),
    ),
    ("A19", "/messages/1/content/0", claude(ASKED, says("assistant", HOSTED, TEXT), ASKED)),
    ("A20", "/messages/0/content/4/cache_control", claude(says("user", *[MARKED] * 5))),
    (
        "A21",
        "/messages/1/content/0/cache_control",
        claude(ASKED, says("assistant", {**THOUGHT, "cache_control": {}}, TEXT), ASKED),
    ),
    (
        "A22",
        "/messages/0/content/0/source/media_type",
        claude(
            user(
                type="image",
                source={"type": "base64", "media_type": "image/png", "data": "/9j/4A=="},
            )
        ),
    ),
    (
        "A23",
        "/messages/1/content/0",
        claude(ASKED, says("assistant", USE), says("user", RESULT), thinking={"type": "enabled"}),
    ),
    ("A24", "/messages/1/content/0", claude(ASKED, says("assistant", THOUGHT, TEXT))),
    (
        "A25",
        "/messages/1/content/1",
        claude(ASKED, says("assistant", USE, TEXT), says("user", RESULT)),
    ),
    (
        "A26",
        "/messages/1/content/0",
        claude(ASKED, says("assistant", {"type": "thinking", "thinking": "t"}, TEXT), ASKED),
    ),
    ("A27", "/messages/0/content/0/parsed", claude(says("user", {**TEXT, "parsed": 1}))),
]

CASES = [(OpenAI, *case) for case in CHAT] + [(Anthropic, *case) for case in ANTHROPIC]


@pytest.mark.parametrize(
    ("transport", "rule", "pointer", "request_"),
    CASES,
    ids=[f"{c[1]}-{n}" for n, c in enumerate(CASES)],
)
def test_a_broken_rule_is_found_where_it_is_broken(
    transport: type[MessageTransport], rule: str, pointer: str, request_: JSONObject
) -> None:
    found = {(v.rule, v.pointer): v for v in transport.check(request_)}

    assert (rule, pointer) in found
    violation = found[rule, pointer]
    assert violation.found
    assert violation.now
    assert str(violation).startswith(f"{pointer}: ")


def test_every_rule_of_the_book_has_a_case() -> None:
    for transport, cases in ((OpenAI, CHAT), (Anthropic, ANTHROPIC)):
        book = [rule.id for rule in transport.rules.check]
        assert len(set(book)) == len(book)
        assert set(book) == {rule for rule, _, _ in cases}


def test_a_list_of_messages_is_checked_like_a_request() -> None:
    assert [v.rule for v in OpenAI.check([tells("c1")])] == ["C3"]
    assert Anthropic.check([ASKED]) == []


def test_a_request_that_is_nonsense_raises_nothing() -> None:
    nonsense: list[JSONObject] = [
        {},
        {"messages": "x"},
        {"messages": [1, None, {}]},
        {"messages": [{"content": 1}]},
    ]
    for odd in nonsense:
        for transport in (OpenAI, Anthropic):
            assert transport.check(odd)
