"""What the codec accepts comes back equal; what it does not know is kept as it is."""

from __future__ import annotations

import asyncio
import collections
import copy
import datetime
import decimal
import enum
import json
import pickle
import subprocess
import sys
import threading
import uuid
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as hst
from msgspec import UNSET, Raw

from brute.events import events as e
from brute.events.codec import decode, decode_loosely, encode
from brute.events.entries import Entry, Record
from brute.events.errors import CorruptStore, EncodingError
from brute.events.jsontext import DEEPEST, dumps, loads, same
from brute.events.messages import (
    Citation,
    Foreign,
    Hosted,
    Json,
    Media,
    Message,
    Native,
    Origin,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from brute.testing import st
from tests.events import json_trees
from tests.rooms import ROOT


def recorded(event: Any, **envelope: Any) -> Record:
    return Record(at=1_750_000_000_000, event=event, **envelope)


def said(*parts: Any, **more: Any) -> Record:
    return recorded(e.PromptAppended(message=Message(role="assistant", parts=parts, **more)))


def read(state: bytes | str) -> tuple[Record, bytes | None]:
    state = state.encode() if isinstance(state, str) else state
    return decode(json.loads(state)["event"].get("type", ""), state)


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


# -- round trip ----------------------------------------------------------------------------------


@given(st.records(foreign=True))
def test_every_record_comes_back_as_it_was(record: Record) -> None:
    state = encode(record)

    back, raw = decode(e.tag_of(record.event), state)

    assert back == record
    assert encode(back) == state
    assert raw in (None, state)


@given(st.records())
def test_the_slow_walk_agrees_with_the_strict_decode_on_all_that_is_known(record: Record) -> None:
    tag, state = e.tag_of(record.event), encode(record)

    assert decode_loosely(tag, state) == decode(tag, state) == (record, None)


@given(st.records(foreign=True))
def test_a_record_is_one_line_of_json_for_any_reader(record: Record) -> None:
    state = encode(record)

    assert b"\n" not in state
    assert json.loads(state)["event"]["type"]


EXACT: list[Any] = [
    *(0, 1, -1, 1.0, -0.0, 0.1, True, False, None, 2**53 + 1, 2**63, 2**64, -(2**70), 10**4299),
    *(1e16, 1e22, 1.7976931348623157e308, 5e-324, 1e-7),
    *("", "\x00", "\x1a", "\x1a001a", "\x7f", "~", "\ud800", "\udfffa", "\ud83d\ude00", "😀\x1a"),
    *({}, [], [[], {}], {"": {"": None}}, {"~": {"x": 1}}, {"type": "text", "escaped": True}),
    *({"\ud800": ["\udc00", {"\x1a": "\x1a"}]}, [1, 1.0, True, "1", None]),
]


@pytest.mark.parametrize("value", EXACT, ids=lambda v: ascii(v)[:40])
def test_any_json_value_comes_back_to_the_last_bit(value: Any) -> None:
    for record in (
        recorded(e.ValueRecorded(name="v", value=value)),
        recorded(e.StreamChunked(frames=(value, value))),
        said(Json(value=value), Native(api="a", kind="k", block=value)),
        said(Hosted(tool="t", input=value, output=[value])),
        said(Text(text="a", extras={"openai.chat": {"k": value}})),
    ):
        back, raw = read(encode(record))

        assert repr(back) == repr(record)
        assert raw is None


@pytest.mark.parametrize("text", ["\ud800", "\ud83d\ude00", "\x1a", "a\x1ad83d", "\udc00\x1a"])
def test_a_text_that_utf8_has_no_bytes_for_comes_back_from_every_place(text: str) -> None:
    origin = Origin(api=text, model=text)
    parts = (
        Text(text=text, citations=(Citation(kind=text, quote=text),), extras={text: {text: text}}),
        ToolCall(id=text, name=text, raw=text, namespace=text),
        ToolResult(call_id=text, content=(Text(text=text), Json(value={text: [text]}))),
        Reasoning(text=text, signature=text),
        Native(api=text, kind=text, block={text: {text: text}}),
    )
    record = recorded(
        e.ReplyReceived(
            message=Message(role="assistant", parts=parts, name=text, origin=origin),
            finish_raw=text,
        ),
        run=text,
        lane=text,
        append_id=text,
        place=text,
    )

    back, raw = read(encode(record))

    assert (back, raw) == (record, None)


@pytest.mark.parametrize("levels", [900, 1_000, 5_000, DEEPEST - 1])
@pytest.mark.parametrize("key", ["a", "\ud800"])
def test_a_value_nested_thousands_deep_comes_back(levels: int, key: str) -> None:
    value = nested(levels)
    for record in (
        recorded(e.ValueRecorded(name="v", value={key: value})),
        said(Json(value=[value]), Text(text=key, extras={"a": {key: nested(levels - 1)}})),
    ):
        state = encode(record)

        back, raw = read_deep(record, state)

        assert same(back, record)
        assert encode(back) == state
        assert raw is None


def read_deep(record: Record, state: bytes) -> tuple[Record, bytes | None]:
    return decode(e.tag_of(record.event), state)


def test_deep_values_leave_the_interpreter_as_it_was_also_in_threads() -> None:
    limit, size = sys.getrecursionlimit(), threading.stack_size()
    record = recorded(e.ValueRecorded(name="v", value=nested(3_000)))
    wrong: list[str] = []

    def work() -> None:
        for _ in range(3):
            if not same(read_deep(record, encode(record))[0], record):
                wrong.append("changed")
            if sys.getrecursionlimit() != limit:
                wrong.append("limit")

    async def gather() -> None:
        await asyncio.gather(*(asyncio.to_thread(work) for _ in range(4)))

    asyncio.run(gather())

    assert wrong == []
    assert (sys.getrecursionlimit(), threading.stack_size()) == (limit, size)


def test_nesting_beyond_all_measure_is_a_clear_error_and_no_crash() -> None:
    script = """
from brute.events.codec import encode, decode
from brute.events.entries import Record
from brute.events.errors import CorruptStore, EncodingError
from brute.events.events import ValueRecorded
from brute.events.messages import ToolCall
value = 1
for _ in range(100_000):
    value = [value]
try:
    encode(Record(at=1, event=ValueRecorded(name="v", value=value)))
except EncodingError as error:
    print(error)
text = "[" * 100_000 + "]" * 100_000
print(ToolCall(name="f", raw='{"a":' + text + "}").malformed)
try:
    decode("value.recorded", ('{"at":1,"event":{"type":"value.recorded","name":"v","value":'
        + text + "}}").encode())
except CorruptStore as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("/event/value: what is nested more than 10,000 deep")
    assert lines[1] == "the arguments are not JSON: nested more than 10,000 deep"
    assert "the stored bytes are not a record (nested more than" in lines[2]


def test_the_bytes_of_a_media_part_come_back() -> None:
    record = said(Media(kind="image", media_type="image/png", data=bytes(range(256)) * 10))

    assert read(encode(record)) == (record, None)


# -- refused -------------------------------------------------------------------------------------


@dataclass
class Point:
    x: int = 1


class Colour(enum.Enum):
    RED = "red"


Pair = collections.namedtuple("Pair", "a b")

NO_JSON = [
    float("nan"),
    float("inf"),
    float("-inf"),
    {1, 2},
    frozenset({1}),
    (1, 2),
    Pair(1, 2),
    {1: 2},
    {1.5: 2},
    {None: 2},
    {True: 2},
    datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    datetime.date(2026, 1, 1),
    datetime.timedelta(1),
    uuid.UUID(int=1),
    decimal.Decimal("1.5"),
    b"abc",
    bytearray(b"abc"),
    Point(),
    Colour.RED,
    Text(text="a"),
    Raw(b"1"),
    UNSET,
    object(),
    len,
    10**4300,
]


@pytest.mark.parametrize("value", NO_JSON, ids=lambda v: type(v).__name__)
def test_what_json_has_no_word_for_is_refused_with_its_place(value: Any) -> None:
    hidden = {"a~/": [None, {"null": None}, value]}
    for record, place in (
        (recorded(e.ValueRecorded(name="v", value=hidden)), "/event/value/a~0~1/2"),
        (recorded(e.EffectCalled(name="f", args=[hidden])), "/event/args/0/a~0~1/2"),
        (recorded(e.EffectReturned(value=hidden)), "/event/value/a~0~1/2"),
        (recorded(e.TurnStarted(parameters=hidden)), "/event/parameters/a~0~1/2"),
        (recorded(e.StreamChunked(frames=("a", hidden))), "/event/frames/1/a~0~1/2"),
        (
            recorded(e.TurnStarted(tools=(e.ToolSpec(name="f", schema=hidden),))),
            "/event/tools/0/schema/a~0~1/2",
        ),
        (said(Text(text="a"), Json(value=hidden)), "/event/message/parts/1/value/a~0~1/2"),
        (said(Hosted(tool="t", input=hidden)), "/event/message/parts/0/input/a~0~1/2"),
        (
            said(Text(text="\ud800", extras={"a": hidden})),
            "/event/message/parts/0/extras/a/a~0~1/2",
        ),
    ):
        with pytest.raises(EncodingError) as caught:
            encode(record)

        assert caught.value.pointer.startswith(place)
        assert str(caught.value).startswith(caught.value.pointer)


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = [None]
    value.append({"again": value})

    with pytest.raises(EncodingError, match=r"/event/value: what is nested .* or holds itself"):
        encode(recorded(e.ValueRecorded(name="v", value=value)))


@pytest.mark.parametrize(
    ("record", "place"),
    [
        (said(Text(text=5)), "/event/message/parts/0/text"),  # type: ignore[arg-type]
        (said("a"), "/event/message/parts/0"),
        (said(Media(kind="hologram")), "/event/message/parts/0/kind"),  # type: ignore[arg-type]
        (said(Message.user("a")), "/event/message/parts/0"),
        (said(ToolResult(content=(Text(text="a"), ToolCall(name="f")))), "/event/message/parts/0/content/1"),  # type: ignore[arg-type]  # noqa: E501
        (recorded(e.PromptAppended(message=Message(role="critic"))), "/event/message/role"),  # type: ignore[arg-type]
        (recorded(e.PromptAppended(message=None)), "/event/message"),  # type: ignore[arg-type]
        (recorded(e.PromptAppended(message=Message(role="user", parts=[]))), "/event/message/parts"),  # type: ignore[arg-type]  # noqa: E501
        (recorded(e.ToolReturned(outcome="fine")), "/event/outcome"),  # type: ignore[arg-type]
        (recorded(e.ValueRecorded(name=UNSET)), "/event/name"),  # type: ignore[arg-type]
        (recorded(e.ReplyReceived(message=Message.assistant(), usage=Usage(input=True))), "/event/usage/input"),  # noqa: E501
        (recorded(e.SessionOpened(metadata=["a"])), "/event/metadata"),  # type: ignore[arg-type]
        (recorded(e.SessionClosed(), lane=None), "/lane"),
        (recorded(e.SessionClosed(), critical=1), "/critical"),
        (recorded(e.SessionClosed(), cause=10**5000), "/cause"),
        (recorded(e.SessionClosed(), cause=float("nan")), "/cause"),
        (recorded(None), "/event"),
        (recorded(Message.user("a")), "/event"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)  # fmt: skip
def test_a_field_of_the_wrong_type_is_refused_and_not_stored_as_something_unreadable(
    record: Record, place: str
) -> None:
    with pytest.raises(EncodingError) as caught:
        encode(record)

    assert caught.value.pointer == place


@pytest.mark.parametrize(
    "record",
    [
        said(Foreign(b"no json")),
        said(Foreign(b'{"type":"x"},{"type":"text","text":"smuggled"}')),
        said(Foreign(b'{"type":"text","text":"this version knows it"}')),
        recorded(e.UnknownEvent("x", b'{"type":"x"},"run":"smuggled"')),
        recorded(e.UnknownEvent("note.added", b'{"type":"note.added"}')),
        said(rest={"name": Raw(b'"a"')}),
    ],
)
def test_verbatim_json_that_would_be_read_as_something_else_is_refused(record: Record) -> None:
    with pytest.raises(EncodingError):
        encode(record)


# -- what newer versions write -------------------------------------------------------------------

SPACING = hst.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")])


@settings(max_examples=1_000)
@given(
    record=st.records(foreign=True),
    changes=hst.lists(json_trees.changes(), min_size=1, max_size=3),
    separators=SPACING,
    ascii_only=hst.booleans(),
)
@example(said(Foreign(b'{"type":"x","t":"\\u001a001a"}')), [], (",", ":"), False)
def test_whatever_a_newer_version_added_anywhere_is_kept(
    record: Record, changes: list[json_trees.Change], separators: Any, ascii_only: bool
) -> None:
    tree = json.loads(encode(record))
    for change in changes:
        change(tree["event"])
    state = json.dumps(tree, separators=separators, ensure_ascii=ascii_only).encode()

    back, raw = decode(e.tag_of(record.event), state)

    if raw is None:  # all of it was known after all
        assert same(decode(e.tag_of(back.event), encode(back))[0], back)
    else:
        assert raw == state  # written back byte for byte
    again = encode(Record(at=back.at, event=back.event))  # and carried into another record
    assert json_trees.plain(again)["event"] == json_trees.plain(state)["event"]


def test_an_unknown_event_is_kept_with_its_envelope() -> None:
    state = b'{"at":7,"event":{"type":"galaxy.folded","by":[1, 2]},"cause":3,"critical":true}'

    record, raw = decode("galaxy.folded", state)

    assert record.event == e.UnknownEvent("galaxy.folded", b'{"type":"galaxy.folded","by":[1, 2]}')
    assert (record.at, record.cause, record.critical) == (7, 3, True)
    assert raw == state
    assert encode(record) == state


TEXT_AND = '{"at":1,"event":{"type":"prompt.appended","message":{"role":"user","parts":[%s]}}}'


@pytest.mark.parametrize(
    ("part", "becomes"),
    [
        ('{"type":"hologram","x":1}', Foreign(b'{"type":"hologram","x":1}')),
        ('{"text":"no type"}', Foreign(b'{"text":"no type"}')),
        ('{"type":5}', Foreign(b'{"type":5}')),
        ('"no object"', Foreign(b'"no object"')),
        ('{"type":"text"}', Foreign(b'{"type":"text"}')),
        ('{"type":"text","text":["a"]}', Foreign(b'{"type":"text","text":["a"]}')),
        ('{"type":"media","kind":"smell"}', Foreign(b'{"type":"media","kind":"smell"}')),
        ('{"type":"reasoning","kind":"dream"}', Foreign(b'{"type":"reasoning","kind":"dream"}')),
        ('{"type":"text","text":"a","new":[ 1 ]}', Text(text="a", rest={"new": Raw(b"[ 1 ]")})),
        (
            '{"type":"text","text":"a","citations":7}',
            Text(text="a", rest={"citations": Raw(b"7")}),
        ),
        (
            '{"type":"text","text":"a","citations":[{"kind":"url","new":1}]}',
            Text(text="a", citations=(Citation(kind="url", rest={"new": Raw(b"1")}),)),
        ),
        (
            '{"type":"result","outcome":"postponed"}',
            ToolResult(outcome="unknown", rest={"outcome": Raw(b'"postponed"')}),
        ),
        (
            '{"type":"result","content":[{"type":"hologram"},{"type":"text","text":"a"}]}',
            ToolResult(content=(Foreign(b'{"type":"hologram"}'), Text(text="a"))),  # type: ignore[arg-type]
        ),
        (
            '{"type":"result","content":[{"type":"json","value":1,"unit":"m"}]}',
            ToolResult(content=(Json(value=1, rest={"unit": Raw(b'"m"')}),)),
        ),
    ],
)
def test_a_part_of_a_newer_version_keeps_its_words_and_claims_nothing(
    part: str, becomes: object
) -> None:
    state = (TEXT_AND % part).encode()

    record, raw = read(state)

    assert isinstance(record.event, e.PromptAppended)
    assert record.event.message.parts == (becomes,)
    assert raw == state


def test_unknown_content_nested_thousands_deep_is_kept() -> None:
    deep = "[" * 3_000 + '"\\u001a"' + "]" * 3_000
    part = f'{{"deep":{deep},"type":"hologram"}}'
    state = (TEXT_AND % f'{part},{{"type":"text","text":"a","new":{deep}}}').encode()

    record, raw = decode("prompt.appended", state)

    assert raw == state
    assert isinstance(record.event, e.PromptAppended)
    foreign, text = record.event.message.parts
    assert isinstance(foreign, Foreign)
    assert isinstance(text, Text)
    assert foreign.raw == part.replace("\\u001a", "\\u001a001a").encode()  # kept escaped
    assert same(decode("prompt.appended", encode(record))[0], record)


def test_a_number_that_no_float_holds_is_kept_as_it_stands() -> None:
    record, raw = read(TEXT_AND % '{"type":"text","text":"a","extras":{"a":{"n":1e400}}}')

    assert isinstance(record.event, e.PromptAppended)
    assert record.event.message.parts == (
        Text(text="a", rest={"extras": Raw(b'{"a":{"n":1e400}}')}),
    )
    assert raw is not None


def test_unknown_fields_are_kept_at_every_level() -> None:
    state = (
        b'{"at":1,"new":0,"event":{"type":"reply.received","new":1,"message":{"role":"assistant",'
        b'"new":2,"origin":{"api":"a","new":3}},"usage":{"input":5,"new":4}}}'
    )

    record, raw = decode("reply.received", state)

    event = record.event
    assert isinstance(event, e.ReplyReceived)
    assert event.message.origin is not None
    assert event.usage is not None
    slots = [s.rest for s in (record, event, event.message, event.message.origin, event.usage)]
    assert slots == [{"new": Raw(str(n).encode())} for n in range(5)]
    assert event.usage.input == 5
    assert raw == state


@pytest.mark.parametrize(
    ("event", "field", "value"),
    [
        ('"type":"reply.received","message":{"role":"assistant"},"finish":"bored"', "finish", "other"),  # noqa: E501
        ('"type":"reply.received","message":{"role":"assistant"},"usage":[1]', "usage", None),
        ('"type":"tool.returned","outcome":"postponed"', "outcome", "unknown"),
        ('"type":"effect.returned","outcome":"postponed"', "outcome", "unknown"),
        ('"type":"turn.started","tools":[{"name":5}],"system":"a"', "tools", UNSET),
        ('"type":"session.opened","link":{"kind":"wormhole"}', "link", None),
    ],
)  # fmt: skip
def test_a_new_word_in_an_event_becomes_the_word_that_claims_nothing(
    event: str, field: str, value: object
) -> None:
    record, raw = read(f'{{"at":1,"event":{{{event}}}}}')

    assert not isinstance(record.event, e.UnknownEvent)
    assert getattr(record.event, field) == value
    assert record.event.rest is not None
    assert list(record.event.rest) == [field]
    assert raw is not None


@pytest.mark.parametrize(
    "event",
    [
        '{"type":"prompt.appended","message":{"role":"critic"}}',
        '{"type":"prompt.appended","message":{"role":"user"},"lifetime":"aeon"}',
        '{"type":"prompt.appended"}',
        '{"type":"tool.called","reply":"3","part":0}',
        '{"type":"request.sent","transport":"a","upto":1,"items":"many"}',
    ],
)
def test_an_event_that_cannot_be_understood_stays_whole_and_keeps_its_class(event: str) -> None:
    state = f'{{"at":1,"event":{event}}}'.encode()

    record, raw = read(state)

    assert isinstance(record.event, e.UnknownEvent)
    assert record.event.raw == event.encode()
    assert e.class_of(record.event) is e.EventClass.INTENT
    assert raw == state
    assert encode(record) == state


def test_the_envelope_is_read_however_strange_it_is() -> None:
    state = (
        b'{"at":"noon","lane":[0],"cause":"why","run":7,"critical":"very","id":"c1",'
        b'"event":{"type":"session.closed"}}'
    )

    record, raw = decode("session.closed", state)

    assert record.event == e.SessionClosed()
    assert (record.at, record.lane, record.cause, record.run) == (0, "/", None, None)
    assert record.append_id == "c1"
    assert record.critical  # rather stop at what need not stop us
    assert raw == state
    assert decode("session.closed", encode(record))[0] == record


def test_a_version_that_knows_a_field_lifts_it_out_of_the_slot() -> None:
    state = (
        TEXT_AND % '{"type":"text","text":"a","~":{"citations":[{"kind":"url"}],"newer":1}},'
        '{"type":"result","outcome":"unknown","~":{"outcome":"denied"}},'
        '{"type":"result","outcome":"error","~":{"outcome":"denied"}},'
        '{"type":"call","name":"f","id":null,"~":{"id":"c1"}},'
        '{"type":"refusal","text":"no","~":{}}'
    )

    record, raw = read(state)

    assert isinstance(record.event, e.PromptAppended)
    text, catch_all, said_later, null, empty = record.event.message.parts
    assert text == Text(text="a", citations=(Citation(kind="url"),), rest={"newer": Raw(b"1")})
    assert catch_all == ToolResult(outcome="denied")
    assert said_later == ToolResult(outcome="error", rest={"outcome": Raw(b'"denied"')})
    assert null == ToolCall(name="f", id="c1")
    assert empty.rest is None
    assert raw is not None


def test_a_part_that_is_not_known_goes_into_another_event_with_its_escapes() -> None:
    # The newer version stored halves of an emoji: its record is escaped, so its unknown part is.
    state = (
        b'{"escaped":true,"at":1,"event":{"type":"prompt.appended","message":{"role":"user","parts":['
        b'{"type":"hologram","text":"\\u001ad83d\\u001ade00 \\\\u001a \\u001a001a"}]}}}'
    )
    plain = b'{"at":1,"event":{"type":"prompt.appended","message":{"role":"user","parts":['
    plain += b'{"type":"hologram","text":"\\u001A \\\\u001a"}]}}}'
    first, raw = decode("prompt.appended", state)
    second, _ = decode("prompt.appended", plain)
    assert isinstance(first.event, e.PromptAppended)
    assert isinstance(second.event, e.PromptAppended)
    assert raw == state

    parts = first.event.message.parts + second.event.message.parts + (Text(text="\ud800\x1a"),)
    both = said(*parts)
    written = json_trees.plain(encode(both))["event"]["message"]["parts"]

    assert read(encode(both))[0] == both
    assert [part["text"] for part in written] == [
        "\ud83d\ude00 \\u001a \x1a",
        "\x1a \\u001a",
        "\ud800\x1a",
    ]


# -- what is no record ---------------------------------------------------------------------------

SAMPLE = encode(
    recorded(
        e.ReplyReceived(
            message=Message.assistant("a\n", ToolCall(name="f", raw="{}")), usage=Usage(input=1)
        ),
        cause=3,
    )
)


@pytest.mark.parametrize(
    "state",
    [
        b"",
        b"garbage",
        b"null",
        b"[]",
        b"{}",
        b'{"at":1}',
        b'{"at":1,"event":null}',
        b'{"at":1,"event":5}',
        b'{"at":1,"event":{"type":"note.added","text":"\xff"}}',
        b"\x80\x04\x95",
        SAMPLE[:-1],
        SAMPLE + b"}",
        SAMPLE + SAMPLE,
        b"\x00" * 64,
        b"[" * 100_000,
    ],
    ids=lambda state: ascii(state)[:30],
)
def test_bytes_that_are_no_record_are_said_to_be_corrupt(state: bytes) -> None:
    with pytest.raises(CorruptStore) as caught:
        decode("note.added", state, "agent.db: s1@4")

    assert str(caught.value).startswith("agent.db: s1@4: the stored bytes are not a record")


def test_a_record_cut_anywhere_is_corrupt() -> None:
    for length in range(len(SAMPLE)):
        with pytest.raises(CorruptStore):
            decode("reply.received", SAMPLE[:length])


@given(hst.integers(0, len(SAMPLE) - 1), hst.integers(1, 255))
def test_a_flipped_byte_gives_a_record_or_a_clear_error(place: int, flip: int) -> None:
    state = bytearray(SAMPLE)
    state[place] ^= flip

    try:
        record, raw = decode("reply.received", bytes(state))
    except CorruptStore:
        return
    assert raw in (None, bytes(state))
    assert decode(e.tag_of(record.event), encode(record))[0] == record


@given(hst.binary(max_size=40))
def test_random_bytes_are_corrupt(state: bytes) -> None:
    with pytest.raises(CorruptStore):
        decode("note.added", state)


# -- stability -----------------------------------------------------------------------------------


def test_the_same_record_gives_the_same_bytes_in_every_process() -> None:
    script = (
        "import hashlib; from tests.events.golden.make import examples;"
        "print(hashlib.sha256(b'\\n'.join(x.state for x in examples())).hexdigest())"
    )

    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "42")
    }

    assert len(digests) == 1


def test_entries_and_records_can_be_copied_and_sent_to_another_process() -> None:
    record, raw = read(TEXT_AND % '{"type":"text","text":"a","new":1},{"type":"hologram"}')
    entry = Entry("s1", 3, record, raw)

    for other in (pickle.loads(pickle.dumps(entry)), copy.copy(entry), copy.deepcopy(entry)):
        assert other == entry
        assert read(encode(other.record))[0] == record


def test_an_entry_cannot_be_changed() -> None:
    entry = Entry("s1", 0, recorded(e.SessionClosed()))

    for thing in (entry, entry.record, entry.event):
        for field in thing.__struct_fields__:  # type: ignore[union-attr]
            with pytest.raises(AttributeError):
                setattr(thing, field, None)


# -- JSON text -----------------------------------------------------------------------------------


@given(st.json_values())
def test_json_text_comes_back_as_it_was(value: Any) -> None:
    text = dumps(value)

    # Two halves side by side are one character in JSON text; the codec's records keep even those.
    assert repr(loads(text)) == repr(json.loads(json.dumps(value)))
    assert loads(text.encode("utf-8", "surrogatepass")) == loads(text)
    assert json.loads(text) == loads(text)


@given(
    hst.recursive(
        hst.sampled_from([0, -1.5e3, True, None, "", 'a"\\]', "\ud800", "{"]),
        lambda inner: (
            hst.lists(inner, max_size=3)
            | hst.dictionaries(hst.sampled_from(["", "a", "]"]), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    hst.integers(0, 80),
    hst.sampled_from(["", "]", "}", ",", ":", '"', " ", "1", "null", "NaN", "[", "\\"]),
    hst.booleans(),
)
def test_the_reader_for_deep_values_reads_what_json_reads(
    value: Any, place: int, insert: str, spaced: bool
) -> None:
    from brute.events import jsontext  # noqa: PLC0415 - the cold path itself, and nothing else

    text = json.dumps(value, indent=2 if spaced else None)
    text = text[:place] + insert + text[place:]
    try:
        expected = json.loads(text, parse_constant=jsontext._refuse_constant)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            jsontext._deep_loads(text)
    else:
        assert repr(jsontext._deep_loads(text)) == repr(expected)


@pytest.mark.parametrize("text", ["1e400", "[-1e999]", "NaN", "[Infinity]", "-Infinity", "[1,]"])
def test_a_number_that_would_change_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(text)


@pytest.mark.parametrize("value", NO_JSON, ids=lambda v: type(v).__name__)
def test_only_json_is_written_as_json(value: Any) -> None:
    if isinstance(value, tuple):
        assert dumps([value]) == "[[1,2]]"
        return

    with pytest.raises(EncodingError) as caught:
        dumps({"a": [None, value]})

    assert caught.value.pointer.startswith("/a/1")


def test_msgspec_is_still_what_the_codec_was_written_for() -> None:
    """The slot and the escapes cost nothing because a strict decode fails on them."""
    strict = msgspec.json.Decoder(Record).decode

    for state in (
        b'{"at":1,"event":{"type":"session.closed"},"~":{}}',
        b'{"at":1,"event":{"type":"session.closed","~":{}}}',
        b'{"escaped":true,"at":1,"event":{"type":"session.closed"}}',
    ):
        with pytest.raises(msgspec.ValidationError):
            strict(state)
