"""Bodies and files of messages that others wrote become sessions, or a clear error."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

import brute
from brute.exchange import MAX_LINE, Imported, ImportFailure, import_file
from brute.testing import st
from brute.transports import Anthropic, OpenAI
from tests.brute.cli.sample import BODY, MESSAGES

CLAUDE: dict[str, Any] = {
    "model": "claude-opus-4-8",
    "max_tokens": 1_000,
    "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
    "thinking": {"type": "enabled", "budget_tokens": 500},
    "messages": [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Look.", "signature": "sig=="},
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Uji"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"},
                {"type": "text", "text": "So?"},
            ],
        },
    ],
    "tools": [
        {"name": "weather", "input_schema": {"type": "object", "properties": {}}},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    ],
}


def imported(log: brute.Log, data: bytes | str | object, **how: Any) -> Imported:
    if not isinstance(data, (bytes, str)):
        data = json.dumps(data)
    raw = data.encode() if isinstance(data, str) else data
    return import_file(log, io.BytesIO(raw), name="body.json", **how)


def lines_of(messages: list[Any]) -> str:
    return "".join(json.dumps(message) + "\n" for message in messages)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("body", "transport", "source"),
    [(BODY, OpenAI, "openai"), (CLAUDE, Anthropic, "anthropic")],
    ids=["openai", "anthropic"],
)
def test_a_body_becomes_a_session_whose_next_request_is_that_body(
    log: brute.Log, body: dict[str, Any], transport: Any, source: str, indent: int | None
) -> None:
    done = imported(log, json.dumps(body, indent=indent))

    assert (done.source, done.notes) == (source, ())
    assert transport.body(transport.request(log.session(done.session))) == body


def test_how_a_reply_was_to_travel_is_not_kept(log: brute.Log) -> None:
    streamed = {**BODY, "stream": True, "stream_options": {"include_usage": True}}

    done = imported(log, streamed)

    assert OpenAI.body(OpenAI.request(log.session(done.session))) == BODY


def test_an_imported_session_says_where_it_comes_from(log: brute.Log) -> None:
    done = imported(log, CLAUDE, id="c")

    (info,) = log.sessions()
    assert (done.session, info.id, info.link) == ("c", "c", "import")
    assert log.session("c").timeline.rows[0].text == "import of anthropic.messages"


def test_an_imported_session_goes_on(log: brute.Log) -> None:
    unanswered = {**BODY, "messages": BODY["messages"][:-1]}
    session = log.session(imported(log, unanswered).session)

    def order(id: int) -> str:
        return f"order {id} is shipped"

    (call,) = session.calls.open
    session.call(call, order)

    assert session.messages[-1].content == "order 7 is shipped"


@pytest.mark.parametrize("data", [lines_of(MESSAGES), json.dumps(MESSAGES)])
def test_messages_may_be_lines_or_a_list(log: brute.Log, data: str) -> None:
    done = imported(log, data)

    said = [(m.role, m.content) for m in log.session(done.session).messages]
    assert done.source == "messages"
    assert said == [("user", "Hello"), ("assistant", "Hello! What can I do?")]


def test_a_byte_order_mark_is_no_trouble(log: brute.Log) -> None:
    lines = b"\xef\xbb\xbf" + lines_of(MESSAGES).encode()

    assert imported(log, lines).source == "messages"


def test_lines_of_anthropic_messages_are_known_by_their_blocks(log: brute.Log) -> None:
    done = imported(log, lines_of(CLAUDE["messages"]))

    session = log.session(done.session)
    assert Anthropic.request(session)["messages"] == CLAUDE["messages"]


@pytest.mark.parametrize(
    ("body", "format"),
    [
        ({"model": "claude-opus-4-8"}, "anthropic"),
        ({"model": "gpt-5"}, "openai"),
        ({}, "openai"),
        ({"model": "anthropic/claude-opus-4-8", "n": 1}, "openai"),
        ({"model": "my-model", "system": "Be kind."}, "anthropic"),
        ({"model": "my-model", "top_k": 3}, "anthropic"),
        ({"model": "claude-opus-4-8", "response_format": {"type": "json_object"}}, "openai"),
    ],
)
def test_a_body_that_could_be_either_is_told_by_its_settings(
    log: brute.Log, body: dict[str, Any], format: str
) -> None:
    done = imported(log, {**body, "messages": [{"role": "user", "content": "Hello"}]})

    assert done.source == format


def test_an_unpaired_history_is_kept_as_it_is(log: brute.Log) -> None:
    messages = [
        {"role": "user", "content": "Hello"},
        {"role": "tool", "tool_call_id": "call_of_nobody", "content": "42"},
        BODY["messages"][2],
        {"role": "user", "content": "Never mind."},
    ]

    done = imported(log, {"model": "gpt-5", "messages": messages})

    session = log.session(done.session)
    assert session.messages == OpenAI.load_all(messages)
    assert len(done.notes) >= 2, "both repairs of a request are told"
    assert all(note.startswith("a request made of it is mended") for note in done.notes)


def test_what_a_body_says_that_cannot_be_kept_is_told(log: brute.Log) -> None:
    tool = {**BODY["tools"][0], "cache_control": {"type": "ephemeral"}}

    done = imported(log, {**BODY, "tools": [tool]})

    assert done.notes == ("/tools/0/cache_control could not be kept as it stands",)


def test_an_id_that_is_taken_is_refused(log: brute.Log) -> None:
    log.start(id="b")

    with pytest.raises(brute.UsageError, match="there is a session 'b' already"):
        imported(log, BODY, id="b")


@given(said=st.conversations(text=st.nasty_text()))
def test_any_conversation_is_imported_as_it_was_sent(said: list[brute.Message]) -> None:
    body = OpenAI.body(OpenAI.request(said, model="gpt-5"))

    with brute.open(":memory:") as log:
        done = imported(log, {**body}, source="openai")

        assert OpenAI.body(OpenAI.request(log.session(done.session))) == body


# -- what cannot be imported -----------------------------------------------------------------------

BROKEN: Mapping[str, tuple[bytes, str]] = {
    "empty": (b"", r"body\.json: the file is empty"),
    "blank": (b"\n \n", r"body\.json: the file is empty"),
    "binary": (b"\x89PNG\r\n\x1a\n\0\0", r"line 1: the byte 0x89 begins no character of UTF-8"),
    "zeros": (b"\0\0\0\0", r"line 1, column 1: this is not JSON: .*, found '\\x00'"),
    "text": (b"Hello there\n", r"line 1, column 1: this is not JSON: .*, found 'H'"),
    "a cut body": (
        b'{"model": "x",\n "messages": [',
        r"line 2, column 15: this is not JSON: .*, found the end",
    ),
    "a comma": (
        b'{"role":"user","content":"a"}\n{"role":"user","content":"b",}\n',
        r"line 2, column \d+: this is not JSON: .*, found ['},]",
    ),
    "no role": (
        b'{"role":"user","content":"a"}\n{"content":"b"}\n',
        r'line 2: this is no message: \{"content":"b"\}',
    ),
    "two bodies": (
        b'{"messages":[]}\n{"messages":[]}\n',
        r'line 2: something else stands behind the first value: \{"messages":\[\]\}',
    ),
    "a number": (b"7", r"line 1: this is JSON and no history: 7; wanted is"),
    "an object": (b'{"a":1,"b":2}', r"an object with the keys a, b is no history; wanted is"),
    "gemini": (b'{"contents":[]}', r"it looks like a body of Gemini's generateContent"),
    "responses": (b'{"model":"x","input":"hi"}', r"it looks like a body of OpenAI's Responses"),
    "a reply": (b'{"id":"c","choices":[]}', r"it looks like a reply of Chat Completions"),
    "no messages": (b'{"messages":["hi"]}', r"/messages/0: this is no message with a role"),
    "a list of texts": (b'["hi"]', r"/0: this is no message with a role"),
    "not a number": (b'{"messages":[],"top_p":NaN}', r"line 1, column 24: this is not JSON"),
    "too large a number": (
        b'{"messages":[],\n"n":1e400}',
        r"line 2, column 5: this is not JSON that can be kept: the number 1e400",
    ),
    "too deep": (
        b'{"messages":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        r"not JSON that can be kept: nested more than 10,000 deep",
    ),
}


@pytest.mark.parametrize(("data", "says"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_history_is_refused_with_its_place(
    log: brute.Log, data: bytes, says: str
) -> None:
    with pytest.raises(ImportFailure, match=says) as caught:
        imported(log, data)

    assert str(caught.value).endswith("Nothing was imported")
    assert log.sessions() == []


@given(data=some.binary(max_size=60) | some.text(max_size=60).map(str.encode))
def test_no_file_whatsoever_raises_anything_but_ours(data: bytes) -> None:
    with brute.open(":memory:") as log, pytest.raises(brute.BruteError):
        imported(log, data)


@given(cut=some.integers(0, 600), junk=some.binary(max_size=3))
def test_no_damaged_body_raises_anything_but_ours(cut: int, junk: bytes) -> None:
    data = json.dumps(BODY).encode()
    with brute.open(":memory:") as log:
        try:
            imported(log, data[:cut] + junk + data[cut + len(junk) :])
        except brute.BruteError:
            assert log.sessions() == []


class Endless(io.RawIOBase):
    """A file of one line of that many bytes, which holds none of them."""

    def __init__(self, size: int) -> None:
        self.left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = min(self.left, len(buffer))
        buffer[:count] = b"[" * count
        self.left -= count
        return count


def test_a_line_of_200_megabytes_is_refused_before_it_is_read(log: brute.Log) -> None:
    endless = Endless(200_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(ImportFailure, match=r"longer than 67,108,864 bytes"):
            import_file(log, io.BufferedReader(endless), name="body.json")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert endless.left > 100_000_000
    assert peak < 4 * MAX_LINE


def test_a_long_document_of_short_lines_is_refused_too(log: brute.Log) -> None:
    document = b"[\n" + b"1,\n" * (MAX_LINE // 3) + b"1]"

    with pytest.raises(ImportFailure, match=r"the document is longer than 67,108,864 bytes"):
        imported(log, document)
