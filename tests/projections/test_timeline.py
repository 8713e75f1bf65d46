"""One line an entry, for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute.events.events import (
    AnyEvent,
    ApprovalAsked,
    ApprovalGiven,
    EffectCalled,
    EffectReturned,
    ExchangeRecorded,
    Failure,
    Link,
    ModelRef,
    NoteAdded,
    PromptEdited,
    RequestFailed,
    RequestRetried,
    RequestSent,
    RunEnded,
    RunStarted,
    SessionClosed,
    SessionOpened,
    StreamChunked,
    ToolCalled,
    ToolReturned,
    ToolSpec,
    UnknownEvent,
    ValueRecorded,
)
from brute.events.messages import (
    Foreign,
    Hosted,
    Json,
    Media,
    Message,
    Native,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    Usage,
)
from brute.projections import fold, timeline
from brute.projections.oneline import brief, one_line
from tests.projections.logs import Log, call


def lines(log: Log) -> list[str]:
    return [f"{row.kind} {row.text}".rstrip() for row in fold(timeline, log.entries)]


def line(event: AnyEvent | UnknownEvent) -> str:
    log = Log()
    log.add(event)
    return lines(log)[0]


def test_a_session_reads_like_a_diary() -> None:
    log = Log()
    log.add(SessionOpened(agent="plan"))
    log.add(RunStarted(agent="plan", args={"city": "Kyoto", "days": 3}))
    log.say(Message.system("You plan\ntrips."))
    log.turn(model=ModelRef(id="claude-x"), tools=(ToolSpec(name="search"),))
    asked = log.add(RequestSent(transport="Anthropic", upto=3, items=2))
    reply = log.reply(
        asked,
        ToolCall.of("search", {"q": "kyoto"}),
        ToolCall.of("book", {"inn": "Mume", "nights": 2}),
        usage=Usage(output=31),
    )
    search, book = log.call(reply, 0, lane="/0"), log.call(reply, 1, lane="/1")
    log.add(ToolReturned(content=(Json(value={"hits": 3}),)), cause=search)
    log.returned(book, "full", outcome="error")
    log.reply(log.ask(), "Go in April.", usage=Usage(output=1500))
    log.add(RunEnded(value="Go in April."))

    assert lines(log) == [
        "opened plan",
        'run plan(city="Kyoto", days=3)',
        "system You plan trips.",
        "turn 1 · claude-x · tools search",
        "request claude-x · 2 msgs · 1 tool",
        "reply 2 calls · 31 tok · 1.0 s",
        'call search("kyoto")',
        'call book(inn="Mume", nights=2)',
        'result {"hits": 3} · 2.0 s',
        "result error · full · 2.0 s",
        "request claude-x · 1 tool",
        "reply Go in April. · 1,500 tok · 1.0 s",
        'ended "Go in April."',
    ]


def test_a_row_says_where_it_stands() -> None:
    log = Log()
    log.returned(log.call(3, 1, lane="/0", place="plan.py:11"), "x")
    row, answer = fold(timeline, log.entries).rows

    assert (row.session, row.position, row.lane, row.run) == ("s1", 0, "/0", "r1")
    assert (row.place, row.cause, row.at) == ("plan.py:11", None, 0)
    assert answer.cause == 0


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (SessionClosed(), "closed"),
        (
            SessionOpened(agent="a", link=Link(kind="fork", session="t1", position=4)),
            "opened a · fork of t1@4",
        ),
        (
            SessionOpened(link=Link(kind="import", source="openai.chat")),
            "opened import of openai.chat",
        ),
        (RunStarted(agent="a", continues="r0"), "run a() · continues r0"),
        (RunEnded(error=Failure(kind="ValueError", message="bad")), "ended ValueError: bad"),
        (
            RequestFailed(error=Failure(kind="RateLimit", message="slow", status=429)),
            "failed 429 RateLimit: slow",
        ),
        (RequestRetried(why="overloaded", error=Failure(kind="E")), "retry overloaded · E"),
        (
            PromptEdited(op="append_to", anchor=3, message=Message.user("Plan."), author="hook:x"),
            "edit append_to @3: Plan. · by hook:x · this turn",
        ),
        (ToolCalled(reply=3, part=1, child="t2"), "call @3 part 1 · in t2"),
        (
            EffectCalled(name="rate", args={"args": ["JPY"], "kwargs": {"day": 1}}),
            'effect rate("JPY", day=1)',
        ),
        (EffectCalled(name="rate", args=[1]), "effect rate([1])"),
        (EffectCalled(name="rate"), "effect rate()"),
        (EffectReturned(value=1.5), "returned 1.5"),
        (EffectReturned(outcome="unknown"), "returned unknown"),
        (EffectReturned(error=Failure(kind="E"), outcome="error"), "returned E"),
        (ApprovalAsked(about="rm -rf"), "asks rm -rf"),
        (ApprovalGiven(granted=True), "granted"),
        (ApprovalGiven(granted=False, why="no"), "denied no"),
        (ValueRecorded(name="now", value="2026-11-30"), "value now = 2026-11-30"),
        (ExchangeRecorded(request={"url": "x"}), 'http {"url": "x"}'),
        (NoteAdded(text="look", data=[1]), "note look · [1]"),
        (StreamChunked(frames=(1, 2)), "stream 2 frames"),
        (UnknownEvent(tag="reply.dreamt", raw=b'{"a":1}'), 'unknown reply.dreamt {"a":1}'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_event_has_its_line(event: AnyEvent | UnknownEvent, said: str) -> None:
    assert line(event) == said


def test_prompts_and_history_have_theirs() -> None:
    log = Log()
    log.user("hint", "task")
    log.say(Message.assistant("hm", call("a")))
    log.cut(log.ask(), "half an ans")
    log.reply(None, "short", kind="summary")
    log.reply(None, "long", finish="length")
    log.compact(0, 3, 4)
    log.rewind(2)

    assert lines(log) == [
        "user hint · this task",
        "assistant hm · 1 call",
        "request test",
        "cut half an ans · hung up · 1.0 s",
        "summary short",
        "reply long · length",
        "compact @0 to @3 gave way to @4",
        "rewind to @2",
    ]


def test_a_turn_tells_what_changed() -> None:
    log = Log()
    log.turn(
        model=ModelRef(id="m"),
        system="be brief",
        parameters={"max_tokens": 9},
        format={"type": "object"},
        agent="plan",
    )
    log.turn(system=None)
    log.turn()

    assert lines(log) == [
        'turn 1 · agent plan · m · format {"type": "object"} · max_tokens=9 · system "be brief"',
        "turn 2 · no system",
        "turn 3",
    ]


def test_a_call_whose_arguments_are_broken_is_shown_as_it_came() -> None:
    log = Log()
    reply = log.reply(
        None, call("a", raw='{"q": "ky'), call("b", raw='{"q": "' + "x" * 9000 + '"}')
    )
    log.call(reply, 0)
    log.call(reply, 1)
    _, broken, long = lines(log)

    assert broken == 'call a({"q": "ky)'
    assert long.startswith('call b({"q": "xxx')
    assert len(long) == len("call ") + 200


def test_a_message_without_words_says_what_it_holds() -> None:
    log = Log()
    log.say(
        Message.user(
            Media(kind="image", name="cat.png", data=b""),
            Media(kind="audio", url="x"),
            Hosted(tool="web_search"),
            Native(api="x", kind="container", block={}),
            Refusal(text="no"),
            Json(value=[1]),
            Reasoning(text="secret"),
            Foreign(b"{}"),  # type: ignore[arg-type]
            Text(text="end"),
        )
    )

    assert lines(log) == [
        "user [image cat.png] [audio] [web_search] [container] refused: no [1] [foreign] end"
    ]


def test_what_a_terminal_would_obey_is_shown_as_an_escape() -> None:
    assert one_line("a\x1b[31m\x00\x9b\u202e\ud800\U000e0001") == (
        "a\\x1b[31m\\x00\\x9b\\u202e\\ud800\\U000e0001"
    )
    assert one_line("a\nb\r\nc\td\u2028e\xa0f") == "a b  c d e f"
    assert one_line("👨\u200d👩 naïve 京都") == "👨\u200d👩 naïve 京都"


@given(
    st.text(max_size=300) | st.text(alphabet="\x00\x1b\ud800a", max_size=300), st.integers(1, 220)
)
def test_a_line_is_never_longer_than_its_width(text: str, width: int) -> None:
    line = one_line(text, width)

    assert len(line) <= width
    assert "\n" not in line
    assert "\x1b" not in line


def test_a_long_text_costs_no_more_than_a_line() -> None:
    assert one_line("x" * 201) == "x" * 199 + "…"
    assert one_line("x" * 200) == "x" * 200
    assert one_line("\x00" * 200).endswith("…")


def test_json_is_cut_where_nobody_would_read_on() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    assert brief({"a": 1, "b": [True, None, "é\n"]}) == '{"a": 1, "b": [true, null, "é\\n"]}'
    assert brief(list(range(99))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …]"
    assert brief(deep) == "[[[[[…]]]]]"
    assert brief({"a": {"b": 1}}, 1) == '{"a": {…}}'
    assert brief(10**5000) == "<an integer of 16610 bits>"
    assert brief(object()) == "<object>"
