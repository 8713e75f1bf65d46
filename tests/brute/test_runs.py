"""One agent text records, crashes, resumes and replays."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

import brute
from brute.events.events import RequestRetried, ToolReturned, tag_of
from brute.transports import OpenAI
from tests.brute.replies import chat


class Killed(BaseException):
    """Stands for a kill: nothing after it runs."""


class World:
    """What the agent touches, counted; the replies are scripted."""

    def __init__(self, *replies: Any) -> None:
        self.replies: Iterator[Any] = iter(replies)
        self.asked = 0
        self.searched: list[str] = []
        self.rated = 0
        self.kill_on: str | None = None

    def agent(self, word: str = "Plan") -> Callable[..., str]:
        @brute.run(OpenAI)
        def model(request: dict[str, Any]) -> Any:
            self.asked += 1
            reply = next(self.replies)
            if reply is Killed:
                raise Killed
            return reply

        @brute.effect
        def rate(currency: str) -> float:
            self.rated += 1
            return 1.5

        def search(q: str) -> list[str]:
            """Search the web."""
            if q == self.kill_on:
                raise Killed
            self.searched.append(q)
            return [q.upper()]

        def trip(session: brute.Session, city: str) -> str:
            session.system("You plan trips.")
            session.user(f"{word} {city} {session.today()} {rate('JPY')}")
            while (reply := session.complete(model, model="gpt-x", tools=[search])).calls:
                session.run_calls(reply)
            return str(reply.text)

        return trip

    @property
    def touched(self) -> tuple[int, int, int]:
        return self.asked, len(self.searched), self.rated


TWO_CALLS = chat("look", ("search", {"q": "kyoto"}), ("search", {"q": "nara"}))
DONE = chat("done")


@pytest.fixture
def log() -> Iterable[brute.Log]:
    with brute.open(":memory:") as opened:
        yield opened


def tags(log: brute.Log, session: str) -> list[str]:
    return [tag_of(entry.event) for entry in log.session(session).entries]


def test_a_recorded_run_says_each_fact_once_in_order(log: brute.Log) -> None:
    world = World(TWO_CALLS, DONE)

    assert brute.record(world.agent(), log, "t1", city="Kyoto") == "done"

    assert tags(log, "t1") == [
        "session.opened",
        "run.started",
        "prompt.appended",
        "value.recorded",
        "effect.called",
        "effect.returned",
        "prompt.appended",
        "turn.started",
        "request.sent",
        "reply.received",
        "tool.called",
        "tool.returned",
        "tool.called",
        "tool.returned",
        "turn.started",
        "request.sent",
        "reply.received",
        "run.ended",
    ]
    session = log.session("t1")
    assert [m.role for m in session.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]


def test_unchanged_settings_are_not_recorded_again(log: brute.Log) -> None:
    brute.record(World(TWO_CALLS, DONE).agent(), log, "t1", city="Kyoto")

    turns = [e.event for e in log.session("t1").entries if tag_of(e.event) == "turn.started"]

    assert repr(turns[1]) == "TurnStarted()"


def test_a_replay_runs_nothing_and_appends_nothing(log: brute.Log) -> None:
    world = World(TWO_CALLS, DONE)
    brute.record(world.agent(), log, "t1", city="Kyoto")
    before, touched = tags(log, "t1"), world.touched

    assert brute.replay(world.agent(), log, "t1") == "done"

    assert world.touched == touched
    assert tags(log, "t1") == before


def test_a_replay_names_the_first_fact_that_differs(log: brute.Log) -> None:
    brute.record(World(TWO_CALLS, DONE).agent(), log, "t1", city="Kyoto")

    with pytest.raises(brute.Divergence) as caught:
        brute.replay(World().agent("Forget"), log, "t1")

    assert caught.value.kind == "content"
    assert caught.value.position == 6
    assert "Plan Kyoto" in str(caught.value)
    assert "Forget Kyoto" in str(caught.value)


def test_a_swallowed_divergence_is_raised_at_the_end(log: brute.Log) -> None:
    def agent(session: brute.Session) -> None:
        with contextlib.suppress(BaseException):
            session.user(word)

    word = "a"
    brute.record(agent, log, "t1")
    word = "b"

    with pytest.raises(brute.Divergence):
        brute.replay(agent, log, "t1")


def test_a_replay_that_ends_early_is_short_and_one_that_goes_on_is_extra(log: brute.Log) -> None:
    def agent(session: brute.Session) -> None:
        for n in range(says):
            session.user(f"{n}")

    says = 2
    brute.record(agent, log, "t1")

    says = 1
    with pytest.raises(brute.Divergence) as short:
        brute.replay(agent, log, "t1")
    says = 3
    with pytest.raises(brute.Divergence) as extra:
        brute.replay(agent, log, "t1")

    assert (short.value.kind, extra.value.kind) == ("short", "extra")


def test_a_run_that_died_between_intent_and_outcome_of_a_tool_resumes_with_unknown(
    log: brute.Log,
) -> None:
    world = World(TWO_CALLS, DONE)
    world.kill_on = "nara"
    crash(log, world, "t1")
    world.kill_on = None

    assert brute.resume(world.agent(), log, "t1") == "done"

    assert world.searched == ["kyoto"], "the call whose outcome is unknown must not run again"
    returned = [e.event for e in log.session("t1").entries if isinstance(e.event, ToolReturned)]
    assert [r.outcome for r in returned] == ["ok", "unknown"]
    assert world.touched == (2, 1, 1)
    assert brute.replay(world.agent(), log, "t1") == "done"


def test_a_run_that_died_waiting_for_a_reply_asks_again(log: brute.Log) -> None:
    world = World(Killed, TWO_CALLS, DONE)
    crash(log, world, "t1")

    assert brute.resume(world.agent(), log, "t1") == "done"

    events = [e.event for e in log.session("t1").entries]
    assert sum(isinstance(e, RequestRetried) for e in events) == 1
    assert brute.replay(world.agent(), log, "t1") == "done"


def crash(log: brute.Log, world: World, id: str) -> None:
    """Record until the kill, and forget what a killed process could not have written."""
    source = brute.open(":memory:")
    with pytest.raises(Killed):
        brute.record(world.agent(), source, id, city="Kyoto")
    entries = [state[1:] for state in source.events.states(id)]
    last = len(entries)
    while tag_of(source.events.entry(id, last - 1).event) in (
        "run.ended",
        "request.failed",
        "tool.returned",
    ):
        last -= 1
    log.events.import_states(id, entries[:last], expect=-1)
    source.close()


def test_an_async_agent_records_and_replays(log: brute.Log) -> None:
    replies = iter([copy.deepcopy(TWO_CALLS), DONE])
    searched: list[str] = []

    @brute.run(OpenAI)
    async def model(request: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return next(replies)

    async def search(q: str) -> list[str]:
        for _ in range(5 if q == "kyoto" else 1):
            await asyncio.sleep(0)
        searched.append(q)
        return [q]

    async def agent(session: brute.Session, city: str) -> str:
        session.user(f"{city} {session.today()}")
        while (reply := await session.complete(model, model="m", tools=[search])).calls:
            await session.run_calls(reply)
        return str(reply.text)

    assert asyncio.run(brute.record(agent, log, "t1", city="K")) == "done"
    assert searched == ["nara", "kyoto"], "the calls run at once"
    results = [m.content for m in log.session("t1").messages if m.role == "tool"]
    assert [m.tool_call_id for m in log.session("t1").messages if m.role == "tool"] == [
        c["id"] for c in TWO_CALLS["choices"][0]["message"]["tool_calls"]
    ], "the results stand in call order, whoever finished first"
    assert len(results) == 2

    assert asyncio.run(brute.replay(agent, log, "t1")) == "done"
    assert searched == ["nara", "kyoto"]


def test_words_from_outside_that_come_last_do_not_break_the_end_of_a_run(log: brute.Log) -> None:
    def agent(session: brute.Session) -> str:
        session.user("Go.")
        log.session("t1").user("Wait!")
        return "gone"

    assert brute.record(agent, log, "t1") == "gone"
    assert [tag_of(e.event) for e in log.entries("t1")][-2:] == ["prompt.appended", "run.ended"]
    assert brute.replay(agent, log, "t1") == "gone"


def test_a_history_that_an_agent_appends_replays(log: brute.Log) -> None:
    call = brute.ToolCall.of("search", {"q": "x"}, id="c1")

    def agent(session: brute.Session) -> list[str]:
        session.append(
            brute.Message.user("Look."),
            brute.Message.assistant(call),
            brute.Message.tool(call, "found"),
            brute.Message.assistant("There."),
        )
        session.user("And?")
        return [message.content for message in session.messages]

    said = brute.record(agent, log, "t1")

    assert said == ["Look.", "", "found", "There.", "And?"]
    assert brute.replay(agent, log, "t1") == said


def test_results_that_were_made_elsewhere_replay(log: brute.Log) -> None:
    made = iter(["first", "second"])

    def agent(session: brute.Session) -> str:
        session.append(brute.Message.assistant(brute.ToolCall.of("search", id="c1")))
        return session.returned(session.calls.open[0], next(made)).text

    assert brute.record(agent, log, "t1") == "first"
    assert brute.replay(agent, log, "t1") == "first", "the recorded one is served"


@pytest.mark.parametrize("idempotent", [False, True])
def test_an_effect_cut_by_ctrl_c_is_not_run_again_unless_it_may(
    log: brute.Log, idempotent: bool
) -> None:
    paid: list[str] = []

    @brute.effect(idempotent=idempotent)
    def pay() -> str:
        paid.append("once")
        if len(paid) == 1:
            raise KeyboardInterrupt
        return "paid"

    def agent(session: brute.Session) -> str:
        return pay()

    with pytest.raises(KeyboardInterrupt):
        brute.record(agent, log, "t1")

    if idempotent:
        assert brute.resume(agent, log, "t1") == "paid"
    else:
        with pytest.raises(brute.OutcomeUnknown):
            brute.resume(agent, log, "t1")
    assert len(paid) == 1 + idempotent


def test_a_turn_in_a_with_block_replays(log: brute.Log) -> None:
    @brute.run(OpenAI)
    def model(request: dict[str, Any]) -> Any:
        return chat("Hi.")

    def agent(session: brute.Session) -> str:
        session.user("Hello?")
        with session.turn(model="gpt-x") as turn:
            return str(turn.send(model).text)

    assert brute.record(agent, log, "t1") == "Hi."
    assert brute.replay(agent, log, "t1") == "Hi."


def test_an_older_writer_that_appends_messages_is_told_that_it_was_fenced(log: brute.Log) -> None:
    def newer(session: brute.Session) -> None:
        session.user("Mine now.")

    def older(session: brute.Session) -> None:
        brute.record(newer, log, "t1")
        session.append(brute.Message.user("Still here?"))

    with pytest.raises(brute.Fenced):
        brute.record(older, log, "t1")
