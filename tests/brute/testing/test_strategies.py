"""The strategies reach everything, are quick, and shrink to what matters."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as hst
from hypothesis.strategies import SearchStrategy

from brute.events import events as e
from brute.events.entries import Entry
from brute.events.messages import PARTS, Foreign, Message, Text, ToolCall, ToolResult
from brute.testing import scribe, st
from tests.rooms import ROOT

T = TypeVar("T")

PATIENT = settings(
    max_examples=5_000, database=None, deadline=None, derandomize=True, suppress_health_check=[]
)


def shortest(strategy: SearchStrategy[T], fits: Callable[[T], Any]) -> T:
    """The example that a failing law would be shown."""
    return find(strategy, fits, settings=PATIENT)


def many(strategy: SearchStrategy[T], count: int = 500) -> list[T]:
    """Examples as a test would be given them, always the same."""
    drawn: list[T] = []

    @settings(PATIENT, max_examples=count, phases=[Phase.generate])
    @given(strategy)
    def draw(value: T) -> None:
        drawn.append(value)

    draw()
    return drawn


def is_utf8(text: str) -> bool:
    return text == text.encode("utf-8", "ignore").decode()


# -- conversations -------------------------------------------------------------------------------


@given(st.conversations())
def test_in_a_conversation_every_call_is_answered_once_and_after_it_was_made(
    messages: list[Message],
) -> None:
    called: list[str | None] = []
    answered: list[str | None] = []
    for message in messages:
        assert message.parts
        assert message.role in {"user", "assistant", "tool"}
        if message.role == "tool":
            assert message.tool_call_id in called
            answered.append(message.tool_call_id)
        elif message.role == "user":
            assert sorted(map(str, called)) == sorted(map(str, answered))
        called += [call.id for call in message.tool_calls]

    assert len(set(called)) == len(called)
    assert sorted(map(str, called)) == sorted(map(str, answered))


@pytest.mark.parametrize(
    ("fits", "messages"),
    [
        (lambda ms: any(m.tool_calls and m.content for m in ms), 2),
        (lambda ms: any(len(m.tool_calls) == 2 for m in ms), 3),
        (lambda ms: any("\ud83d" in m.content for m in ms if m.role == "user"), 2),
        (lambda ms: any(c.malformed for m in ms for c in m.tool_calls), 2),
        (lambda ms: any(m.content == "" for m in ms if m.role == "tool"), 2),
        (lambda ms: any(m.reasoning for m in ms), 1),
    ],
    ids=["text beside a call", "two calls", "half an emoji", "malformed", "empty", "reasoning"],
)
def test_a_failure_shrinks_to_the_messages_that_matter(
    fits: Callable[[list[Message]], bool], messages: int
) -> None:
    assert len(shortest(st.conversations(), fits)) <= messages + 2


def test_results_come_in_any_order() -> None:
    first = shortest(
        st.conversations(),
        lambda ms: [m.tool_call_id for m in ms if m.role == "tool"] == ["call_2", "call_1"],
    )

    assert [m.role for m in first] == ["assistant", "tool", "tool"]


# -- logs ----------------------------------------------------------------------------------------


@given(st.logs())
def test_a_log_is_one_that_an_agent_could_have_left(entries: list[Entry]) -> None:
    assert [entry.position for entry in entries] == list(range(len(entries)))
    answered: set[int] = set()
    for entry in entries:
        event = entry.event
        assert not isinstance(event, e.UnknownEvent)
        if e.class_of(event) is e.EventClass.OUTCOME:
            assert entry.cause is not None
            assert entry.cause < entry.position
            intent = entries[entry.cause].event
            assert not isinstance(intent, e.UnknownEvent)
            assert e.tag_of(event) in intent.answered_by
            assert entry.cause not in answered
            answered.add(entry.cause)
        else:
            assert entry.cause is None
        if isinstance(event, e.ToolCalled):
            reply = entries[event.reply].event
            assert isinstance(reply, e.ReplyReceived)
            assert isinstance(reply.message.parts[event.part], ToolCall)
        if isinstance(event, (e.HistoryRewound, e.RequestSent)):
            position = event.to if isinstance(event, e.HistoryRewound) else event.upto
            assert 0 <= position < entry.position


def tags(entries: list[Entry]) -> list[str]:
    return [e.tag_of(entry.event) for entry in entries]


def test_logs_hold_events_of_every_type_and_intents_that_stay_open() -> None:
    logs = many(st.logs())

    assert {tag for log in logs for tag in tags(log)} == set(e.EVENTS) - {"stream.chunked"}
    for intent, cls in e.EVENTS.items():
        if cls.answered_by and intent != "approval.asked":
            assert any(
                tags(log).count(intent) > sum(map(tags(log).count, cls.answered_by)) for log in logs
            )


def test_a_failing_log_shrinks_to_what_matters() -> None:
    assert tags(shortest(st.logs(), lambda log: "tool.called" in tags(log))) == [
        *("session.opened", "run.started", "turn.started", "request.sent"),
        *("reply.received", "tool.called", "tool.returned"),
    ]


@given(st.wild_logs())
def test_a_wild_log_counts_its_positions_and_nothing_else_is_sure(entries: list[Entry]) -> None:
    assert [entry.position for entry in entries] == list(range(len(entries)))


def test_a_wild_log_holds_events_and_causes_that_nobody_knows() -> None:
    logs = many(st.wild_logs())

    assert {tag for log in logs for tag in tags(log)} == {*e.EVENTS, "galaxy.folded"}
    assert any((entry.cause or 0) >= len(log) for log in logs for entry in log)
    assert any(entry.raw is not None for log in logs for entry in log)


# -- parts, messages, events ---------------------------------------------------------------------


def test_every_kind_of_part_and_event_is_drawn() -> None:
    assert {type(part) for part in many(st.parts())} == set(PARTS)
    assert {type(event) for event in many(st.events())} == set(e.EVENTS.values())


def test_content_of_newer_versions_is_drawn_where_it_is_asked_for() -> None:
    messages = many(st.messages(foreign=True))

    assert any(isinstance(part, Foreign) for message in messages for part in message.parts)
    assert any(message.rest is not None for message in messages)


@given(st.messages())
def test_messages_of_this_version_hold_nothing_foreign(message: Message) -> None:
    assert message.rest is None
    assert not any(isinstance(part, Foreign) for part in message.parts)


@given(st.messages(role="tool"))
def test_a_role_can_be_chosen(message: Message) -> None:
    assert message.role == "tool"


@given(st.messages(text=st.nasty_text(utf8=True)), st.nasty_text(utf8=True))
def test_texts_can_be_chosen(message: Message, text: str) -> None:
    assert is_utf8(text)
    assert all(is_utf8(part.text) for part in message.parts if isinstance(part, Text))


@given(st.conversations(text=hst.just("only this")))
def test_texts_reach_every_corner_of_a_conversation(messages: list[Message]) -> None:
    said = {part.text for m in messages for part in m.parts if isinstance(part, Text)}

    assert said <= {"only this", "a"}


@given(st.tool_calls(malformed=False))
def test_calls_can_be_had_that_are_all_well_formed(call: ToolCall) -> None:
    assert call.malformed is None


def test_calls_are_malformed_in_every_way() -> None:
    whys = [call.malformed or "" for call in many(st.tool_calls())]

    for words in ("not JSON: ", "a JSON array", "NaN", "1e400"):
        assert any(words in why for why in whys)


@given(st.json_values(), st.json_objects())
def test_json_values_are_json(value: Any, obj: dict[str, Any]) -> None:
    assert json.loads(json.dumps(obj)).keys() == json.loads(json.dumps(dict.fromkeys(obj))).keys()
    assert json.dumps(json.loads(json.dumps(value))) == json.dumps(value)


def test_no_two_examples_share_a_list() -> None:
    drawn: list[Any] = []

    @settings(max_examples=50, phases=[Phase.generate], database=None)
    @given(st.json_values())
    def draw(value: Any) -> None:
        if isinstance(value, list):
            assert "mine" not in value
            value.append("mine")
        drawn.append(value)

    draw()
    assert drawn


@given(hst.from_type(Message), hst.from_type(ToolResult), hst.from_type(e.PromptAppended))
def test_from_type_knows_our_structs(
    message: Message, result: ToolResult, event: e.PromptAppended
) -> None:
    assert isinstance(message, Message)
    assert isinstance(result, ToolResult)
    assert isinstance(event.message, Message)


# -- the scribe ----------------------------------------------------------------------------------


def test_permutations_are_all_the_orders_there_are() -> None:
    orders = {tuple(scribe.permutation(range(3), number)) for number in range(6)}

    assert len(orders) == 6
    assert scribe.permutation(range(3), 0) == [0, 1, 2]
    assert scribe.permutation([], 5) == []


def test_a_round_without_a_result_leaves_its_call_open() -> None:
    call = ToolCall(name="f")
    rounds = [scribe.Round(calls=(call, call), results=(None, ("b", "ok")))]

    messages, log = scribe.conversation(rounds), scribe.log(rounds, closed=True)

    assert [m.tool_call_id for m in messages if m.role == "tool"] == ["call_2"]
    assert [e.tag_of(n.event) for n in log][-5:] == [
        "tool.called",
        "tool.called",
        "tool.returned",
        "run.ended",
        "session.closed",
    ]


def test_without_hypothesis_the_error_says_what_to_install() -> None:
    script = """
import sys
sys.modules["hypothesis"] = None
import brute.testing
brute.testing.ScriptedServer
try:
    brute.testing.st
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.stdout == (
        "MissingExtra brute.testing.st needs hypothesis, which is not installed; "
        "pip install 'brute-log[testing]'\n"
    )
