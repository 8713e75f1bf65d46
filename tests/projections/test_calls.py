"""Tool calls: open, started, unknown, answered, closed."""

from __future__ import annotations

from hypothesis import given

from brute.events.entries import Entry
from brute.events.events import PromptAppended, ToolReturned
from brute.events.messages import Message, ToolCall
from brute.projections import calls, fold, last_rewind, lineage
from brute.projections.calls import Call, Calls
from tests.projections.logs import Log, call
from tests.projections.strategies import MORE, sessions


def of(log: Log) -> Calls:
    return fold(calls, lineage(log.entries))


def names(some: list[Call]) -> list[str]:
    return [c.call.name for c in some]


def test_a_call_is_open_then_started_then_answered() -> None:
    log = Log()
    reply = log.round("looking", call("a"), call("b"))
    assert names(of(log).open) == ["a", "b"]

    intent = log.call(reply, 1, run="r7", lane="/0")
    assert names(of(log).open) == ["b"]
    assert names(of(log).started) == ["a"]

    result = log.returned(intent, "no", outcome="error")
    assert of(log).started == []
    assert of(log).answered == [
        Call(
            reply=reply,
            part=1,
            call=call("a"),
            intent=intent,
            run="r7",
            lane="/0",
            outcome="error",
            result=result,
        )
    ]


def test_a_call_is_known_by_its_place_not_by_the_providers_id() -> None:
    log = Log()
    first = log.round(call("a", id=""), call("b", id=""), call("c", id="x"), call("d", id="x"))
    intent = log.call(first, 3)
    result = log.returned(intent, "d's")
    found = of(log)

    assert [c.call.name for c in found if c.result == result] == ["d"]
    assert found.get(first, 3) is found.by_intent(intent)
    assert found.get(first, 9) is None
    assert found.by_intent(first) is None
    assert names(found.of(first)) == ["a", "b", "c", "d"]
    assert found.of(99) == []
    assert len(found) == 4


def test_a_started_call_whose_run_is_gone_is_unknown_and_never_open() -> None:
    log = Log()
    reply = log.round(call("a"), call("b"))
    log.call(reply, 0, run="r1")
    log.call(reply, 1, run="r2")
    found = of(log)

    assert found.open == []
    assert names(found.unknown("r2")) == ["a"]
    assert names(found.unknown("r3")) == ["a", "b"]
    assert names(found.unknown("r1", "r2")) == []
    assert names(found.unknown()) == ["a", "b"]


def test_a_call_that_was_under_way_at_a_rewind_is_unknown_even_to_its_own_run() -> None:
    log = Log()
    reply = log.round(call("a"), call("b"))
    intent = log.call(reply, 0)
    log.returned(intent, "done, but taken back")
    log.rewind(intent)
    log.call(reply, 1)
    found = of(log)

    assert names(found.unknown("r1")) == []
    assert names(found.unknown("r1", before=last_rewind(log.entries) or 0)) == ["a"]


def test_a_hole_that_a_later_reply_has_closed_stays_closed() -> None:
    log = Log()
    reply = log.round(call("a"), call("b"))
    intent = log.call(reply, 0, run="gone")
    log.user("never mind")
    assert names(of(log).open) == ["b"]

    log.round("as you wish")
    found = of(log)

    assert [c.closed for c in found] == [True, True]
    assert found.open == []
    assert found.unknown() == []
    assert names(found.started) == ["a"]

    log.returned(intent, "late")
    assert names(of(log).answered) == ["a"]


def test_a_reply_that_had_not_seen_the_call_does_not_close_it() -> None:
    log = Log()
    one, two = log.ask(), log.ask()
    log.reply(one, call("a"))
    log.reply(two, call("b"))

    assert names(of(log).open) == ["a", "b"]


def test_a_summary_closes_nothing() -> None:
    log = Log()
    log.round(call("a"))
    log.reply(log.ask(), "in short", kind="summary")

    assert names(of(log).open) == ["a"]


def test_a_cut_reply_has_no_call_that_may_run() -> None:
    log = Log()
    log.cut(log.ask(), "hm", call("a"), call("b"))
    found = of(log)

    assert found.open == []
    assert names(found.unrunnable) == ["a", "b"]
    assert not any(c.runnable for c in found)


def test_the_last_call_of_a_length_stopped_reply_may_not_run() -> None:
    log = Log()
    log.reply(log.ask(), call("a"), call("b"), finish="length")

    assert names(of(log).open) == ["a"]
    assert names(of(log).unrunnable) == ["b"]


def test_a_malformed_call_may_not_run_but_can_be_answered() -> None:
    log = Log()
    reply = log.round(call("a", raw='{"q": "ky'))
    assert of(log).open == []
    assert names(of(log).unrunnable) == ["a"]

    log.returned(log.call(reply, 0), "the arguments are no JSON object", outcome="error")

    assert of(log).unrunnable == []
    assert names(of(log).answered) == ["a"]


def test_a_second_outcome_never_counts() -> None:
    log = Log()
    intent = log.call(log.round(call("a")), 0)
    first = log.returned(intent, "one")
    second = log.returned(intent, "two", outcome="error")
    stray = log.returned(3000, "of nothing")
    found = of(log)

    assert [(c.result, c.outcome) for c in found] == [(first, "ok")]
    assert found.extra == [second, stray]


def test_a_retry_takes_the_call_over_and_either_outcome_answers_it() -> None:
    log = Log()
    reply = log.round(call("a"))
    first = log.call(reply, 0, run="gone")
    second = log.call(reply, 0, run="r2")
    assert of(log).unknown("r2") == []

    result = log.returned(first, "it had come through after all")
    found = of(log)

    assert found.by_intent(first) is found.by_intent(second)
    assert [c.result for c in found] == [result]


def test_a_tool_message_answers_the_oldest_unanswered_call_of_its_id() -> None:
    log = Log()
    log.round(call("a", id="x"), call("b", id="x"), call("c", id="y"), call("d", id=None))
    for expected in ["a", "b"]:
        position = log.say(Message.tool("x", "r"))
        assert [c.call.name for c in of(log) if c.result == position] == [expected]
    log.say(Message.tool("x", "one too many"))
    assert names(of(log).open) == ["c", "d"]

    log.say(Message.tool(None, "r", name="d"))
    assert names(of(log).open) == ["c"]

    log.add(ToolReturned(message=Message.tool(None, "adopted")))
    assert of(log).open == []


def test_a_tool_message_answers_the_latest_assistant_message_alone() -> None:
    log = Log()
    log.round(call("a", id="x"))
    log.round(call("b", id="y"))
    log.say(Message.tool("x", "too late"))

    assert names(of(log).open) == ["b"]
    assert of(log).answered == []


def test_calls_of_an_appended_assistant_message_are_calls() -> None:
    log = Log()
    position = log.say(Message.assistant(call("a")))
    log.say(Message.assistant(call("passing")), "turn")

    assert [(c.reply, c.part) for c in of(log).open] == [(position, 0)]


def test_the_child_session_of_a_call_is_known() -> None:
    log = Log()
    reply = log.round(call("agent"))
    log.call(reply, 0)
    assert of(log).started[0].child is None


@given(sessions(*MORE))
def test_every_call_is_in_exactly_one_state(entries: list[Entry]) -> None:
    found = fold(calls, lineage(entries))
    closed = [c for c in found if c.closed and c.outcome is None and c.intent is None]
    states = [found.open, found.unrunnable, found.started, found.answered, closed]

    identities = [(c.reply, c.part) for state in states for c in state]
    assert sorted(identities) == sorted((c.reply, c.part) for c in found)
    assert all(c in found.started for c in found.unknown())


@given(sessions())
def test_identities_are_positions_of_what_was_said(entries: list[Entry]) -> None:
    by_position = {e.position: e.event for e in entries}
    for found in fold(calls, entries):
        event = by_position[found.reply]
        message = getattr(event, "message", None)
        assert isinstance(message, Message)
        part = message.parts[found.part]
        assert isinstance(part, ToolCall)
        assert part is found.call
        assert not isinstance(event, PromptAppended) or event.lifetime == "session"
