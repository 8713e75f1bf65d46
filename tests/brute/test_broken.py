"""Faults that a hostile tester once found; each is a kind, and none comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import brute
from brute.events.events import EffectReturned, NoteAdded, RequestSent, ToolReturned, tag_of
from brute.events.log import Draft
from brute.transports import OpenAI
from tests.brute.replies import chat, chunks


def outcomes(session: brute.Session) -> list[int | None]:
    return [e.cause for e in session.refresh().entries if e.cause is not None]


def test_a_change_for_an_unsent_turn_is_not_in_the_next_request(
    session: brute.Session, scripted: Any
) -> None:
    with session.turn(model="m") as turn:
        turn.append("user", "LOST")

    model = scripted(chat("ok"))
    session.complete(model)

    assert model.requests[0]["messages"] == [{"role": "user", "content": "Hello?"}]
    (sent,) = [e.event for e in session.entries if isinstance(e.event, RequestSent)]
    assert OpenAI.request(session.at(sent.upto))["messages"] == model.requests[0]["messages"]


def test_a_change_for_a_turn_is_made_on_a_turn(session: brute.Session) -> None:
    with pytest.raises(brute.UsageError, match="on the turn"):
        session.prepend("user", "P", lifetime="turn")


def test_a_turn_is_answered_once(session: brute.Session) -> None:
    turn = session.turn(model="m")
    OpenAI.request(turn)
    turn.receive(OpenAI, chat("A"))

    with pytest.raises(brute.AlreadyAnswered):
        turn.receive(OpenAI, chat("B"))

    assert len(outcomes(session)) == 1


def test_an_outcome_that_comes_after_a_recovery_is_refused(
    log: brute.Log, session: brute.Session, scripted: Any
) -> None:
    stream = session.turn(model="m").stream(scripted(chunks("x", "y", "z")))
    next(stream)
    log.session("s").recover()
    session.user("typed")

    with pytest.raises(brute.AlreadyAnswered):
        list(stream)

    assert len(outcomes(session)) == 1


@brute.effect
def rate(currency: str) -> float:
    """Tell a rate."""
    RAN.append(currency)
    return 1.5


RAN: list[str] = []


def test_a_tool_that_uses_effects_and_the_session_replays(log: brute.Log, scripted: Any) -> None:
    def agent(session: brute.Session) -> Any:
        def quote(c: str) -> float:
            session.user(f"asked on {session.today()}")
            return rate(c) * 2

        session.user("hi")
        while (reply := session.complete(model, model="m", tools=[quote])).calls:
            session.run_calls(reply)
        return reply.text

    model = scripted(chat(None, ("quote", {"c": "J"}), ("quote", {"c": "K"})), chat("done"))
    RAN.clear()
    assert brute.record(agent, log, "t1") == "done"
    position = log.session("t1").position

    assert brute.replay(agent, log, "t1") == "done"

    assert RAN == ["J", "K"]
    assert log.session("t1").position == position


def test_async_effects_at_once_replay(log: brute.Log) -> None:
    @brute.effect
    async def fetch(url: str) -> str:
        await asyncio.sleep(0)
        return url + rate_text("x")

    @brute.effect
    def rate_text(currency: str) -> str:
        return currency

    async def agent(session: brute.Session) -> list[str]:
        tasks = [session.call(fetch, "a"), session.call(fetch, "b")]
        return [await task for task in tasks]

    assert asyncio.run(brute.record(agent, log, "t1")) == ["ax", "bx"]
    assert asyncio.run(brute.replay(agent, log, "t1")) == ["ax", "bx"]


class OutOfRooms(Exception):
    """An error of the user's own."""


@pytest.mark.parametrize("error", [ConnectionError("net"), OutOfRooms("none"), TimeoutError()])
def test_a_failure_the_agent_handled_replays_as_the_same_kind_of_error(
    log: brute.Log, error: Exception
) -> None:
    replies = iter([error, chat("R")])

    @brute.run(OpenAI)
    def model(request: dict[str, Any]) -> Any:
        reply = next(replies)
        if isinstance(reply, Exception):
            raise reply
        return reply

    @brute.effect
    def fails() -> None:
        raise OutOfRooms("no room")

    def agent(session: brute.Session) -> Any:
        session.user("x")
        try:
            fails()
        except OutOfRooms:
            session.user("no room")
        try:
            session.complete(model, model="m")
        except type(error):
            session.user("again")
        return session.complete(model).text

    assert brute.record(agent, log, "t1") == "R"
    assert brute.replay(agent, log, "t1") == "R"


@pytest.mark.parametrize("error", [ConnectionError("net"), KeyboardInterrupt()])
def test_a_run_that_a_failure_ended_is_resumed_by_asking_again(
    log: brute.Log, scripted: Any, error: BaseException
) -> None:
    model = scripted(error, chat("R"))

    def agent(session: brute.Session) -> Any:
        session.user("x")
        return session.complete(model, model="m").text

    with pytest.raises(type(error)):
        brute.record(agent, log, "t1")

    assert brute.resume(agent, log, "t1") == "R"
    assert [m.content for m in log.session("t1").messages] == ["x", "R"]
    assert brute.replay(agent, log, "t1") == "R"


def test_a_run_killed_in_mid_stream_is_resumed(log: brute.Log) -> None:
    class Killed(BaseException):
        pass

    def dying() -> Iterator[Any]:
        yield from chunks(*(f"{n:0500d} " for n in range(40)), finish=None)
        raise Killed

    replies = iter([dying(), chunks(*(f"{n:0500d} " for n in range(40)))])

    @brute.run(OpenAI)
    def model(request: dict[str, Any]) -> Any:
        return next(replies)

    def agent(session: brute.Session) -> int:
        session.user("x")
        if not resumed:
            session.journal.outcome = die  # type: ignore[method-assign]
        return len(session.complete(model, model="m").text)

    def die(draft: object) -> Any:
        raise Killed

    resumed = False
    with pytest.raises(Killed):
        brute.record(agent, log, "t1")
    resumed = True

    assert brute.resume(agent, log, "t1") == 40 * 501


def test_an_error_that_cannot_say_itself_is_an_outcome_all_the_same(
    session: brute.Session, scripted: Any
) -> None:
    class Evil(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    def tool() -> None:
        raise Evil

    reply = session.complete(scripted(chat(None, ("tool", {}))), model="m", tools=[tool])
    (result,) = session.run_calls(reply)
    with pytest.raises(Evil):
        session.complete(scripted(Evil()))
    with pytest.raises(Evil):
        session.call(tool)

    assert result.outcome == "error"
    assert session.requests.open == []


def test_values_nested_a_thousand_deep_survive(session: brute.Session) -> None:
    deep: Any = "x"
    for _ in range(1000):
        deep = [deep]

    session.note("deep", deep)
    value = session.value("deep", lambda: deep)

    note = session.entries[-2].event
    assert isinstance(note, NoteAdded)
    assert innermost(value) == innermost(note.data) == ("x", 1000)


def innermost(value: Any) -> tuple[Any, int]:
    depth = 0
    while isinstance(value, list):
        value, depth = value[0], depth + 1
    return value, depth


def test_a_circle_is_refused(session: brute.Session) -> None:
    circle: list[Any] = []
    circle.append(circle)

    with pytest.raises(brute.EncodingError):
        session.note("circle", circle)


def test_an_async_hook_is_refused_where_it_is_given(session: brute.Session) -> None:
    async def hook(prompt: brute.Prompt) -> None: ...

    with pytest.raises(brute.UsageError, match="plain function"):
        session.turn(hooks=[hook])
    with pytest.raises(brute.UsageError, match="plain function"):
        session.hook(hook)


def test_a_fork_recovers_what_streamed_before_it(
    log: brute.Log, session: brute.Session, scripted: Any
) -> None:
    texts = [f"{n:0500d} " for n in range(20)]
    stream = session.turn(model="m").stream(scripted(chunks(*texts)))
    for _ in range(20):
        next(stream)
    branch = log.session("s").fork()

    branch.recover()

    assert len(branch.messages[-1].content) > 4096
    assert session.requests.open, "the parent's own request still waits"
    list(stream)
    assert session.messages[-1].content == "".join(texts)


def test_a_fork_inside_a_replay_is_refused_rather_than_made(log: brute.Log) -> None:
    def agent(session: brute.Session) -> None:
        session.user("a")
        session.fork()

    brute.record(agent, log, "t1")
    before = len(log.sessions())

    with pytest.raises(brute.UsageError, match="fork"):
        brute.replay(agent, log, "t1")

    assert len(log.sessions()) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.user(5),
        lambda s: s.prepend("user", 5),
        lambda s: s.append_to("last-user"),
        lambda s: s.at("x"),
        lambda s: s.at(None),
        lambda s: s.at(True),
        lambda s: s.rewind(to=1.5),
        lambda s: s.fork(at="x"),
        lambda s: s.complete(5),
        lambda s: s.turn().send(None),
        lambda s: s.turn().stream("x"),
        lambda s: s.run_calls(5),
        lambda s: s.returned(None, "x"),
        lambda s: s.call(5),
        lambda s: s.value("x", 5),
        lambda s: s.turn(model=5),
        lambda s: s.turn(format=5),
        lambda s: s.turn(hooks=[5]),
        lambda s: s.hook(5),
        lambda s: s.note("x", object()),
        lambda s: s.call(object),
        lambda s: s.turn(thing=object()),
        lambda s: s.turn(tools=[rate, rate]),
        lambda s: s.turn(tools=5),
        lambda s: s.turn(tools=[5]),
        lambda s: brute.record(None, s.log),  # type: ignore[arg-type]
        lambda s: brute.record(print, None),  # type: ignore[arg-type]
        lambda s: brute.replay(print, 5, "x"),  # type: ignore[arg-type]
        lambda s: s.env(5),
    ],
)
def test_a_wrong_argument_is_an_error_of_ours_and_says_what_to_give(
    session: brute.Session, call: Any
) -> None:
    before = len(session.entries)

    with pytest.raises(brute.BruteError) as caught:
        call(session)

    assert "give" in str(caught.value) or "cannot be stored" in str(caught.value)
    said = [e.event for e in session.entries[before:]]
    assert [e for e in said if not isinstance(e, EffectReturned)] in ([], said[:1])


def test_a_call_is_not_run_twice_at_once(session: brute.Session, scripted: Any) -> None:
    def slow() -> str:
        with pytest.raises(brute.UsageError, match="being run already"):
            session.run_calls(reply)
        return "done"

    reply = session.complete(scripted(chat(None, ("slow", {}))), model="m", tools=[slow])

    (result,) = session.run_calls(reply)

    assert (result.outcome, result.text) == ("ok", "done")


def test_a_reply_that_cannot_be_stored_is_not_lost_to_the_caller(
    session: brute.Session, scripted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(draft: object) -> Any:
        raise brute.StoreFull("the log", "no room is left", "make room")

    monkeypatch.setattr(session.journal, "outcome", full)

    with pytest.raises(brute.StoreFull) as caught:
        session.complete(scripted(chat("paid for")), model="m")

    assert isinstance(caught.value.unsaved, brute.Message)
    assert caught.value.unsaved.content == "paid for"


def test_an_effect_can_be_a_method(log: brute.Log) -> None:
    class Bank:
        def __init__(self) -> None:
            self.rate = 1.5
            self.asked = 0

        @brute.effect
        def convert(self, amount: int) -> float:
            self.asked += 1
            return amount * self.rate

    def agent(session: brute.Session) -> Any:
        return bank.convert(4)

    bank = Bank()
    assert brute.record(agent, log, "t1") == 6.0
    assert brute.replay(agent, log, "t1") == 6.0
    assert bank.asked == 1


def test_a_run_of_results_keeps_one_outcome_each(session: brute.Session, scripted: Any) -> None:
    session.complete(scripted(chat(None, ("f", {}))), model="m")
    (call,) = session.calls.open
    session.returned(call, "x")
    intent = session.calls.answered[0].intent

    with pytest.raises(brute.AlreadyAnswered):
        session.journal.outcome(Draft(event=ToolReturned(), cause=intent))

    assert [tag_of(e.event) for e in session.entries].count("tool.returned") == 1
