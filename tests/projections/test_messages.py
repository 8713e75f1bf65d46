"""The message list: its order, its edits, what passes, and compaction."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute.events.entries import Entry
from brute.events.events import (
    Failure,
    HistoryCompacted,
    PromptAppended,
    ReplyReceived,
    RequestFailed,
    ToolReturned,
)
from brute.events.messages import Message, Text, ToolResult
from brute.projections import calls, fold, lineage, messages
from tests.projections.logs import Log, call, spoken
from tests.projections.strategies import MORE, sessions


def lasting(entries: list[Entry]) -> list[Entry]:
    """What is still said, without what is said for a turn or a task alone."""
    return [e for e in lineage(entries) if getattr(e.event, "lifetime", "session") == "session"]


# -- order -----------------------------------------------------------------------------------------


def test_a_conversation_reads_as_it_was_held() -> None:
    log = Log()
    log.say(Message.system("plan"))
    log.user("Kyoto?")
    reply = log.round("looking", call("search"))
    result = log.run(reply, 1, "3 hits")
    log.round("Go in April.")

    assert log.said == [
        "system plan",
        "user Kyoto?",
        "assistant looking[search]",
        "tool 3 hits",
        "assistant Go in April.",
    ]
    assert log.state.positions == [0, 1, reply, result, len(log.entries) - 1]


def test_a_reply_stands_before_what_was_said_while_it_was_on_its_way() -> None:
    log = Log()
    log.user("first")
    request = log.ask()
    log.user("meanwhile")
    log.user("and this")
    log.reply(request, "answer")

    assert log.said == ["user first", "assistant answer", "user meanwhile", "user and this"]
    assert log.state.positions == [0, 4, 2, 3]


def test_results_stand_in_call_order_whoever_finished_first() -> None:
    for order in permutations(range(3)):
        log = Log()
        reply = log.round(call("a"), call("b"), call("c"))
        intents = [log.call(reply, part) for part in range(3)]
        log.user("steer")
        for part in order:
            log.returned(intents[part], f"r{part}")

        assert log.said == ["assistant [a][b][c]", "tool r0", "tool r1", "tool r2", "user steer"]


@st.composite
def races(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    """Two orders of the same outcomes and inputs; the inputs keep their own order."""
    outcomes: list[Any] = [("reply", 0), ("reply", 1), *(("result", i) for i in range(5))]
    inputs: list[Any] = [("user", i) for i in range(draw(st.integers(0, 3)))]

    def race() -> list[Any]:
        order = draw(st.permutations(outcomes))
        for item in inputs:
            at_least = order.index(("user", item[1] - 1)) + 1 if item[1] else 0
            order.insert(draw(st.integers(at_least, len(order))), item)
        return order

    return race(), race()


@given(races())
def test_the_list_does_not_depend_on_who_finished_first(both: tuple[list[Any], list[Any]]) -> None:
    def told(order: list[Any]) -> list[str]:
        log = Log()
        log.user("go")
        first = log.round(call("a"), call("b", id=None), call("c", id="a"))
        second = log.round(call("d"), call("e"))
        calls = [(first, 0), (first, 1), (first, 2), (second, 0), (second, 1)]
        intents = [log.call(*identity) for identity in calls]
        requests = [log.ask(), log.ask()]
        for kind, number in order:
            if kind == "user":
                log.user(f"u{number}")
            elif kind == "result":
                log.returned(intents[number], f"r{number}")
            else:
                log.reply(requests[number], f"answer {number}")
        return log.said

    assert told(both[0]) == told(both[1])


@given(sessions(*MORE))
def test_a_result_stands_behind_its_reply_with_nothing_between_but_results(
    entries: list[Entry],
) -> None:
    state = fold(messages, lasting(entries))
    events = {e.position: e.event for e in entries}
    for index, position in enumerate(state.positions):
        event = events[position]
        if type(event) is ToolReturned and event.message is None:
            before = index - 1
            while state.messages[before].role == "tool":
                before -= 1
            result = state.messages[index].parts[0]
            assert isinstance(result, ToolResult)
            assert result.name in [c.name for c in state.messages[before].tool_calls]


def test_a_result_carries_the_id_name_and_kind_of_its_call_and_its_outcome() -> None:
    log = Log()
    shell = call("bash", id="toolu_1")
    reply = log.round(Text(text="hm"), shell)
    log.returned(log.call(reply, 1), "no such file", outcome="error")

    [_, answer] = log.state.messages
    assert answer == Message(
        role="tool",
        parts=(
            ToolResult(
                call_id="toolu_1",
                name="bash",
                content=(Text(text="no such file"),),
                outcome="error",
            ),
        ),
    )


def test_a_second_outcome_is_not_said() -> None:
    log = Log()
    request = log.ask()
    reply = log.reply(request, call("a"))
    log.reply(request, "again")
    intent, retry = log.call(reply, 0), log.call(reply, 0)
    log.returned(retry, "one")
    log.returned(retry, "two")
    log.returned(intent, "three")

    assert log.said == ["assistant [a]", "tool one"]


def test_a_reply_that_was_on_its_way_when_the_session_was_rewound_is_not_said() -> None:
    log = Log()
    log.user("one")
    log.user("two")
    request = log.ask()
    log.rewind(0)
    log.reply(request, "to what?")

    assert log.said == ["user one"]


def test_a_reply_added_by_hand_stands_where_it_was_added() -> None:
    log = Log()
    log.user("one")
    reply = log.reply(None, call("a"))
    log.user("two")
    log.run(reply, 0, "r")

    assert log.said == ["user one", "assistant [a]", "tool r", "user two"]


def test_a_cut_reply_is_said_as_far_as_it_came_and_a_failed_one_is_not() -> None:
    log = Log()
    log.user("one")
    log.cut(log.ask(), "half an ans")
    log.cut(log.ask())
    log.add(RequestFailed(error=Failure(kind="Timeout")), cause=log.ask())

    assert log.said == ["user one", "assistant half an ans"]


def test_an_adopted_result_is_said_as_it_is_and_where_it_was_appended() -> None:
    log = Log()
    message = Message.tool("a", "as it came", outcome="error")
    reply = log.round(call("a"))
    log.user("steer")
    log.add(ToolReturned(message=message, outcome="error"), cause=log.call(reply, 0))
    log.returned(log.call(reply, 0), "a second one")
    log.add(ToolReturned(message=message))

    assert log.state.messages[2:] == [message, message]


def test_a_result_of_nothing_is_not_said() -> None:
    log = Log()
    reply = log.round("no calls")
    log.returned(log.call(reply, 0), "x")
    log.returned(log.call(99, 0), "x")
    log.returned(None, "x")
    log.returned(77, "x")

    assert log.said == ["assistant no calls"]


# -- edits -----------------------------------------------------------------------------------------

EXTRA = Message.user("extra")


@pytest.mark.parametrize("lifetime", ["turn", "session"])
@pytest.mark.parametrize(
    ("op", "anchor", "said"),
    [
        ("prepend", None, ["system s", "user extra", "user one", "assistant two", "user three"]),
        ("append_to", 1, ["system s", "user oneextra", "assistant two", "user three"]),
        ("insert_before", 3, ["system s", "user one", "assistant two", "user extra", "user three"]),
        ("insert_before", 0, ["user extra", "system s", "user one", "assistant two", "user three"]),
        ("insert_after", 1, ["system s", "user one", "user extra", "assistant two", "user three"]),
        ("insert_after", 3, ["system s", "user one", "assistant two", "user three", "user extra"]),
    ],
)
def test_each_edit_goes_where_it_says(
    op: str, anchor: int | None, said: list[str], lifetime: Any
) -> None:
    log = Log()
    log.say(Message.system("s"))
    log.user("one")
    log.reply(None, "two")
    log.user("three")

    edit = log.edit(op, EXTRA, anchor, lifetime)

    assert log.said == said
    if op != "append_to":
        assert log.state.positions[said.index("user extra")] == edit


def test_a_prepended_system_message_comes_first_of_all() -> None:
    log = Log()
    log.say(Message.system("s"))
    log.user("one")
    log.edit("prepend", Message.system("first"))

    assert log.said == ["system first", "system s", "user one"]


def test_edits_beside_the_same_message_keep_the_order_in_which_they_were_said() -> None:
    log = Log()
    one = log.user("one")
    for n in range(3):
        log.edit("insert_before", Message.user(f"b{n}"), one, "session")
        log.edit("append_to", Message.user(f"+{n}"), one, "task")

    assert log.said == ["user b0", "user b1", "user b2", "user one+0+1+2"]


def test_an_edit_may_stand_beside_an_edit() -> None:
    log = Log()
    one = log.user("one")
    edit = log.edit("insert_after", Message.user("beside"), one)
    log.edit("insert_after", Message.user("beside that"), edit)
    log.edit("append_to", Message.user("!"), edit)

    assert log.said == ["user one", "user beside!", "user beside that"]


def test_words_are_not_put_into_another_speakers_mouth() -> None:
    log = Log()
    reply = log.reply(None, "mine")
    log.edit("append_to", Message.user("yours"), reply)

    assert log.said == ["assistant mine", "user yours"]


@pytest.mark.parametrize("late", [False, True])
def test_an_insertion_never_comes_between_a_call_and_its_result(late: bool) -> None:
    log = Log()
    log.user("go")
    reply = log.round(call("a"), call("b"))
    if late:
        log.edit("insert_after", Message.user("after"), reply, "session")
        log.edit("insert_before", Message.user("before"), reply, "session")
    result = log.run(reply, 1, "rb")
    log.run(reply, 0, "ra")
    if not late:
        log.edit("insert_after", Message.user("after"), reply, "session")
        log.edit("insert_before", Message.user("before"), result, "session")

    assert log.said == [
        "user go",
        "user before",
        "assistant [a][b]",
        "tool ra",
        "tool rb",
        "user after",
    ]


@pytest.mark.parametrize("op", ["append_to", "insert_before", "insert_after", "sideways"])
@pytest.mark.parametrize("anchor", [None, 2, 99])
def test_an_edit_without_its_anchor_stands_where_it_was_said(op: str, anchor: int | None) -> None:
    log = Log()
    log.user("one")
    log.edit(op, EXTRA, anchor, "task")
    log.user("two")

    assert log.said == ["user one", "user extra", "user two"]


def test_the_newest_message_of_a_role_is_found_with_what_passes() -> None:
    log = Log()
    one = log.user("one")
    assert log.state.last("user") == one
    assert log.state.last("assistant") is None

    hint = log.user("hint", "turn")

    assert log.state.last("user") == hint


# -- lifetimes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["reply", "cut", "fail"])
def test_a_change_for_a_turn_is_gone_when_its_request_has_an_outcome(outcome: str) -> None:
    log = Log()
    one = log.user("one")
    log.turn()
    log.edit("append_to", Message.user("!"), one, "turn")
    log.user("hint", "turn")
    request = log.ask()
    assert log.said == ["user one!", "user hint"]

    if outcome == "reply":
        log.reply(request, call("a"))
    elif outcome == "cut":
        log.cut(request)
    else:
        log.add(RequestFailed(error=Failure(kind="E")), cause=request)

    assert log.said[0] == "user one"
    assert "user hint" not in log.said


def test_a_change_for_a_task_stays_until_a_reply_asks_for_nothing() -> None:
    log = Log()
    one = log.user("one")
    log.edit("append_to", Message.user("!"), one, "task")
    log.user("hint", "task")
    log.run(log.round(call("a")), 0, "r")
    log.cut(log.ask(), "half")
    assert log.said == ["user one!", "user hint", "assistant [a]", "tool r", "assistant half"]

    log.round("done")

    assert log.said == ["user one", "assistant [a]", "tool r", "assistant half", "assistant done"]


def test_a_length_stopped_reply_whose_only_call_is_cut_ends_the_task() -> None:
    log = Log()
    log.user("hint", "task")
    log.reply(log.ask(), call("a", raw='{"q": "ky'), finish="length")

    assert log.said == ["assistant [a]"]


def test_what_is_said_while_a_request_is_on_its_way_is_for_the_next_one() -> None:
    log = Log()
    request = log.ask()
    log.user("for the next turn", "turn")
    log.user("for the next task", "task")
    log.reply(request, "done")
    assert log.said == ["assistant done", "user for the next turn", "user for the next task"]

    log.round("done again")

    assert log.said == ["assistant done", "assistant done again"]


def test_a_turn_that_never_ended_leaves_nothing_to_the_next_one() -> None:
    log = Log()
    log.turn()
    log.user("of a turn that crashed", "turn")
    log.ask()
    log.turn()

    assert log.said == []


def test_a_hint_between_turns_is_for_the_turn_that_comes() -> None:
    log = Log()
    log.user("hint", "turn")
    log.turn()

    assert log.said == ["user hint"]


def test_a_reply_in_a_tools_lane_does_not_end_the_turn_around_it() -> None:
    log = Log()
    log.user("outer", "turn")
    log.user("outer task", "task")
    log.turn(lane="/0")
    log.user("inner", "turn", lane="/0")
    log.reply(log.ask(lane="/0"), "inner done", lane="/0")
    assert log.said == ["user outer", "user outer task", "assistant inner done"]

    log.reply(log.ask(), "outer done")

    assert log.said == ["assistant inner done", "assistant outer done"]


def test_what_is_said_for_good_is_the_base() -> None:
    log = Log()
    log.user("one")
    log.user("hint", "turn")

    assert [spoken(m) for m in log.state.base] == ["user one"]
    assert log.said == ["user one", "user hint"]


# -- compaction ------------------------------------------------------------------------------------


def test_a_summary_takes_the_place_of_what_it_sums_up() -> None:
    log = Log()
    log.say(Message.system("s"))
    first = log.user("one")
    last = log.reply(None, "two")
    log.user("three")
    summary = log.reply(log.ask(), "in short", kind="summary")
    assert log.said[-1] == "assistant in short"

    log.compact(first, last, summary)

    assert log.said == ["system s", "assistant in short", "user three"]
    assert log.state.positions == [0, summary, 3]


def test_an_appended_summary_and_a_summary_of_summaries() -> None:
    log = Log()
    log.user("one")
    log.user("two")
    log.compact(0, 1, log.user("short"))
    log.user("three")
    log.compact(0, len(log.entries) - 1, log.user("shorter"))

    assert log.said == ["user shorter"]


def test_a_summary_inside_its_own_range_stays() -> None:
    log = Log()
    log.user("one")
    summary = log.user("short")
    log.compact(0, summary, summary)

    assert log.said == ["user short"]


def test_compaction_tears_no_call_from_its_result() -> None:
    log = Log()
    log.user("one")
    reply = log.round(call("a"), call("b"))
    first = log.run(reply, 0, "ra")
    log.run(reply, 1, "rb")
    log.round("done")
    kept = ["assistant [a][b]", "tool ra", "tool rb", "assistant done"]

    log.compact(0, first, log.user("short"))
    assert log.said == ["user short", *kept]

    log.compact(first, first + 2, log.user("not needed"))
    assert log.said == ["user short", *kept, "user not needed"]

    log.compact(0, len(log.entries) - 1, log.user("all"))
    assert log.said == ["user all"]


def test_an_insertion_beside_a_message_does_not_keep_it_from_being_compacted() -> None:
    log = Log()
    one = log.user("one")
    log.user("two")
    log.edit("insert_before", Message.user("beside"), one, "session")
    log.compact(0, 1, log.user("short"))

    assert log.said == ["user beside", "user short"]


def test_an_adopted_result_is_not_torn_from_its_call_either() -> None:
    log = Log()
    reply = log.round(call("a"))
    log.user("steer")
    log.say(Message.tool("a", "r"))
    log.round("done")
    log.compact(0, reply + 1, log.user("short"))

    assert log.said == ["assistant [a]", "user short", "tool r", "assistant done"]


def test_the_newest_calls_stay_while_they_wait_for_their_results() -> None:
    log = Log()
    log.user("one")
    reply = log.round(call("a"))
    log.compact(0, reply, log.user("short"))
    assert log.said == ["user short", "assistant [a]"]

    log.run(reply, 0, "r")

    assert log.said == ["user short", "assistant [a]", "tool r"]


def test_a_late_result_of_a_compacted_call_is_not_said() -> None:
    log = Log()
    intent = log.call(log.round(call("a")), 0)
    log.round("gone on")
    log.compact(0, intent, log.user("short"))
    log.returned(intent, "late")

    assert log.said == ["user short", "assistant gone on"]


@pytest.mark.parametrize(("start", "end", "summary"), [(0, 1, 99), (5, 9, 1), (1, 0, 1)])
def test_a_compaction_of_nothing_or_without_a_summary_changes_nothing(
    start: int, end: int, summary: int
) -> None:
    log = Log()
    log.user("one")
    log.user("two")
    log.compact(start, end, summary)

    assert log.said == ["user one", "user two"]


def test_an_edit_beside_a_compacted_message_stands_beside_the_summary() -> None:
    log = Log()
    one = log.user("one")
    log.edit("append_to", Message.user("!"), one, "task")
    log.compact(one, one, log.user("short"))
    assert log.said == ["user short!"]

    log.compact(one, len(log.entries) - 1, log.user("shorter"))

    assert log.said == ["user shorter!"]


@given(sessions(*MORE))
def test_no_compaction_leaves_half_an_exchange(entries: list[Entry]) -> None:
    entries = lasting(entries)
    short = fold(messages, entries)
    full = fold(messages, [e for e in entries if type(e.event) is not HistoryCompacted])

    for found in fold(calls, entries).answered:
        together = {found.reply, found.result}
        if together <= set(full.positions):
            assert together & set(short.positions) in (set(), together)


# -- cost ------------------------------------------------------------------------------------------


def test_one_more_entry_copies_nothing() -> None:
    log = Log()
    for n in range(1000):
        log.user(f"u{n}")
    state = fold(messages, log.entries)
    before = state.messages
    rest = Log()
    rest.entries = [*log.entries]
    rest.run(rest.round(call("a")), 0, "r")

    state = fold(messages, rest.entries[1000:], state)

    assert state.messages is before
    assert len(before) == 1002


def test_reading_with_passing_changes_builds_the_list_once() -> None:
    log = Log()
    log.user("one", "task")
    state = log.state

    assert state.messages is state.messages
    assert state.positions is state.positions


def test_the_events_stay_as_they_were() -> None:
    log = Log()
    one = log.user("one")
    log.edit("append_to", Message.user("!"), one, "session")
    event = log.entries[0].event
    assert isinstance(event, PromptAppended)

    assert log.said == ["user one!"]
    assert event.message == Message.user("one")
    assert not any(isinstance(e.event, ReplyReceived) for e in log.entries)
