"""Saying things, reading them, going back."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import brute
from brute.events.events import ReplyReceived, ToolReturned, tag_of
from tests.brute.replies import chat


def test_what_is_said_is_what_is_read(log: brute.Log) -> None:
    session = log.start(agent="build")
    session.system("Be brief.")
    session.user("Look:", brute.Media(kind="image", media_type="image/png", data=b"\x89PNG"))

    system, user = session.messages

    assert (system.role, system.content) == ("system", "Be brief.")
    assert [type(part) for part in user.parts] == [brute.Text, brute.Media]
    assert log.session(session.id).messages == [system, user]


def test_an_empty_message_is_refused_with_a_reason(session: brute.Session) -> None:
    with pytest.raises(brute.UsageError, match="at least one"):
        session.user()


def test_a_session_is_found_by_any_unique_part_of_its_id(log: brute.Log) -> None:
    log.start(id="alpha-one")
    log.start(id="beta-two")

    assert log.session("alp").id == "alpha-one"
    assert log.session("two").id == "beta-two"
    assert log.session("last").id == "beta-two"
    with pytest.raises(brute.UnknownSession):
        log.session("gamma")


def test_an_id_that_is_taken_is_refused(log: brute.Log) -> None:
    log.start(id="t1")

    with pytest.raises(brute.UsageError, match="already"):
        log.start(id="t1")


def test_an_earlier_position_shows_what_stood_there(session: brute.Session) -> None:
    session.user("two")
    session.user("three")

    assert [m.content for m in session.at(2).messages] == ["Hello?", "two"]
    assert session.at(0).messages == []
    assert len(session.messages) == 3


@pytest.mark.parametrize("position", [-1, 2, 99])
def test_a_position_that_does_not_exist_is_an_error_that_says_where_it_ends(
    session: brute.Session, position: int
) -> None:
    with pytest.raises(brute.UnknownPosition, match="end at 1"):
        session.at(position)


def test_a_fork_shares_its_past_and_goes_its_own_way(session: brute.Session) -> None:
    session.user("two")
    branch = session.fork(at=1)

    branch.user("other")
    session.user("three")

    assert [m.content for m in branch.messages] == ["Hello?", "other"]
    assert [m.content for m in session.messages] == ["Hello?", "two", "three"]
    assert [e.position for e in branch.entries] == [0, 1, 2, 3]
    assert branch.at(1).messages == session.at(1).messages


def test_a_fork_counts_only_the_tokens_of_its_own(
    log: brute.Log, session: brute.Session, scripted: Callable[..., Any]
) -> None:
    session.complete(scripted(chat("Hi.")), model="gpt-x")
    branch = session.fork()
    branch.complete(scripted(chat("Ho."), chat("Hum.")))

    again = log.session(branch.id)

    assert session.usage.total.input == 10
    assert (again.usage.total, again.usage.turns) == (branch.usage.total, branch.usage.turns)
    assert (again.usage.total.input, again.usage.turns) == (10, 1)


def test_a_fork_of_a_fork_below_its_root_shares_with_the_root(session: brute.Session) -> None:
    session.user("two")
    branch = session.fork(at=2)
    branch.user("three")

    twig = branch.fork(at=1)

    assert [m.content for m in twig.messages] == ["Hello?"]


def test_rewinding_unsays_but_forgets_nothing(session: brute.Session) -> None:
    session.user("wrong")
    session.user("worse")

    session.rewind(to=1)
    session.user("right")

    assert [m.content for m in session.messages] == ["Hello?", "right"]
    assert [m.content for m in session.at(3).messages] == ["Hello?", "wrong", "worse"]


def test_rewinding_takes_the_settings_back_and_not_the_money(
    session: brute.Session, scripted: Any
) -> None:
    session.complete(scripted(chat("a")), model="one")
    mark = session.position
    session.complete(scripted(chat("b")), model="two")

    session.rewind(to=mark)

    assert session.settings.model == brute.ModelRef(id="one")
    assert session.usage.replies == 2


def test_an_adopted_history_is_stored_as_events_and_read_as_it_came(log: brute.Log) -> None:
    call = brute.ToolCall.of("f", {"a": 1}, id="c1")
    history = [
        brute.Message.system("s"),
        brute.Message.user("u"),
        brute.Message.assistant("let me see", call),
        brute.Message.tool(call, "result"),
        brute.Message.tool("nobody", "orphan"),
        brute.Message.assistant("done"),
    ]
    session = log.start()

    entries = session.append(*history)

    assert session.messages == history
    assert log.session(session.id).messages == history
    assert [tag_of(e.event) for e in entries] == [
        "prompt.appended",
        "prompt.appended",
        "reply.received",
        "tool.called",
        "tool.returned",
        "prompt.appended",
        "reply.received",
    ]


def test_results_that_came_in_another_order_stay_where_they_were_said(log: brute.Log) -> None:
    calls = [brute.ToolCall.of("f", id=f"c{n}") for n in range(2)]
    history = [
        brute.Message.assistant(*calls),
        brute.Message.tool(calls[1], "second"),
        brute.Message.tool(calls[0], "first"),
    ]
    session = log.start()

    session.append(*history)

    assert session.messages == history
    assert session.calls.open == []


def test_what_is_no_message_cannot_be_appended(session: brute.Session) -> None:
    with pytest.raises(brute.UsageError, match="found dict"):
        session.append({"role": "user"})  # type: ignore[arg-type]


def test_two_handles_of_a_file_see_each_other_when_they_look(tmp_path: Path) -> None:
    with brute.open(tmp_path / "a.db") as one, brute.open(tmp_path / "a.db") as two:
        ours = one.start(id="s")
        theirs = two.session("s")

        theirs.user("from them")
        ours.user("from us")

        assert [m.content for m in ours.messages] == ["from them", "from us"]
        assert [m.content for m in theirs.refresh().messages] == ["from them", "from us"]


def test_inputs_from_many_threads_are_all_kept(tmp_path: Path) -> None:
    with brute.open(tmp_path / "a.db") as log:
        log.start(id="s")

        def say(name: int) -> None:
            session = log.session("s")
            for n in range(5):
                session.user(f"{name}-{n}")

        threads = [threading.Thread(target=say, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        said = [m.content for m in log.session("s").messages]
    assert sorted(said) == sorted(f"{a}-{b}" for a in range(4) for b in range(5))
    for name in range(4):
        assert [s for s in said if s.startswith(f"{name}-")] == [f"{name}-{n}" for n in range(5)]


def test_a_second_writer_cannot_start_a_turn_over_ours_unseen(
    log: brute.Log, session: brute.Session, scripted: Any
) -> None:
    other = log.session("s")
    turn = session.turn(model="m")
    other.complete(scripted(chat("theirs")), model="m")

    reply = turn.send(scripted(chat("ours")))

    assert [m.content for m in session.messages] == ["Hello?", "theirs", "ours"]
    assert reply.text == "ours"


def test_an_intent_has_one_outcome(log: brute.Log, session: brute.Session, scripted: Any) -> None:
    session.complete(scripted(chat(None, ("f", {}))), model="m")
    other = log.session("s")
    (call,) = session.calls.open
    session.returned(call, "first")
    (stale,) = log.session("s").calls.answered
    assert stale.outcome == "ok"

    with pytest.raises(brute.AlreadyAnswered):
        other.returned(call, "second")

    returned = [e.event for e in session.refresh().entries if isinstance(e.event, ToolReturned)]
    assert len(returned) == 1


def test_a_resumed_run_fences_the_older_writer(log: brute.Log) -> None:
    def agent(session: brute.Session) -> None:
        session.user("one")
        if first:
            brute.resume(second, log, "t1")
            session.user("two")

    def second(session: brute.Session) -> str:
        session.user("one")
        return "taken over"

    first = True
    with pytest.raises(brute.Fenced):
        brute.record(agent, log, "t1")

    assert [m.content for m in log.session("t1").messages] == ["one"]


def test_values_are_recorded_as_json_gives_them_back(session: brute.Session) -> None:
    value: object = session.value("pair", lambda: (1, {"a": (2.0, None)}))

    assert value == [1, {"a": [2.0, None]}]


def test_a_value_that_json_has_no_word_for_is_refused_before_it_is_stored(
    session: brute.Session,
) -> None:
    before = session.position

    with pytest.raises(brute.EncodingError):
        session.value("bad", lambda: float("nan"))

    assert session.position == before


def test_an_effect_that_raised_raises_its_own_error_and_is_recorded(
    session: brute.Session,
) -> None:
    @brute.effect
    def fails() -> None:
        raise ValueError("no such city")

    with pytest.raises(ValueError, match="no such city"):
        session.call(fails)

    assert tag_of(session.entries[-1].event) == "effect.returned"


def test_an_effect_outside_an_agent_function_is_the_plain_function() -> None:
    @brute.effect(idempotent=True)
    def double(n: int) -> int:
        return 2 * n

    assert double(4) == 8


def test_replies_appended_by_hand_keep_their_calls_open(session: brute.Session) -> None:
    session.append(brute.Message.assistant(brute.ToolCall.of("f", id="x")))

    (call,) = session.calls.open
    event = session.entries[-1].event
    assert isinstance(event, ReplyReceived)
    assert (event.finish, call.reply, call.part) == ("tool_calls", session.position, 0)


def test_threads_that_read_at_once_see_each_message_once(session: brute.Session) -> None:
    """Without a lock two threads fold the same entries: seen in each of 20 runs of this test."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for round_ in range(1, 21):
            session.append(*(brute.Message.user(str(number)) for number in range(500)))
            together = threading.Barrier(4)

            def read(together: threading.Barrier = together) -> None:
                together.wait()
                assert session.messages

            threads = [threading.Thread(target=read) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(session.messages) == 1 + 500 * round_
    finally:
        sys.setswitchinterval(before)


def test_an_id_that_no_session_can_have_is_refused_as_such(log: brute.Log) -> None:
    with pytest.raises(brute.UsageError, match="is no session id"):
        log.start(id="t1~4")
    assert not log.has("t1~4")
