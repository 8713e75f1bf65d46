"""Turns, and the settings in force."""

from __future__ import annotations

from brute.events.events import Failure, ModelRef, RequestFailed, Settings, ToolSpec
from brute.events.messages import Usage
from brute.projections import fold, lineage, turns
from brute.projections.turns import Turns
from tests.projections.logs import Log, call


def of(log: Log) -> Turns:
    return fold(turns, lineage(log.entries))


def test_a_turn_knows_its_request_its_outcome_and_what_it_cost() -> None:
    log = Log()
    started = log.turn(agent="plan")
    assert of(log).last is not None
    assert of(log).turns[0].open

    request = log.ask()
    reply = log.reply(request, "hm", call("a"), usage=Usage(input=3, output=4))
    [turn] = of(log).turns

    assert (turn.index, turn.position, turn.agent, turn.run) == (0, started, "plan", "r1")
    assert (turn.request, turn.outcome, turn.finish) == (request, reply, "tool_calls")
    assert turn.usage == Usage(input=3, output=4)
    assert turn.calls == ((reply, 1),)
    assert not turn.open


def test_settings_add_up_and_are_taken_away_by_null() -> None:
    log = Log()
    log.turn(model=ModelRef(id="m"), system="s", tools=(ToolSpec(name="t"),))
    log.turn()
    log.turn(system=None, variant="high")
    found = of(log)

    assert [t.settings.system for t in found.turns] == ["s", "s", None]
    assert found.turns[1].settings is found.turns[0].settings
    assert found.settings == Settings(
        model=ModelRef(id="m"), tools=(ToolSpec(name="t"),), variant="high"
    )


def test_settings_go_back_with_a_rewind() -> None:
    log = Log()
    first = log.turn(system="one")
    log.turn(system="two")
    log.rewind(first)

    assert of(log).settings.system == "one"
    assert len(of(log)) == 1


def test_a_turn_without_a_whole_reply_says_why() -> None:
    log = Log()
    log.turn()
    log.cut(log.ask(), "ha", call("a"))
    log.turn()
    log.add(RequestFailed(error=Failure(kind="Timeout")), cause=log.ask())
    cut, failed = of(log).turns

    assert (cut.finish, cut.outcome, cut.calls) == ("interrupted", 2, ((2, 1),))
    assert failed.finish == "error"
    assert failed.error == Failure(kind="Timeout")


def test_a_second_request_of_a_turn_takes_the_place_of_the_first() -> None:
    log = Log()
    log.turn()
    lost = log.ask()
    again = log.ask()
    log.reply(lost, "late answer to the first")
    assert of(log).turns[0].outcome is None

    reply = log.reply(again, "answer")
    log.reply(again, "a second one")

    assert of(log).turns[0].request == again
    assert of(log).turns[0].outcome == reply


def test_turns_in_two_lanes_do_not_mix() -> None:
    log = Log()
    outer, inner = log.turn(), log.turn(lane="/0")
    asked = log.ask()
    asked_inside = log.ask(lane="/0")

    assert [(t.position, t.request) for t in of(log).turns] == [
        (outer, asked),
        (inner, asked_inside),
    ]


def test_a_request_and_a_reply_without_a_turn_are_nobodys() -> None:
    log = Log()
    log.reply(log.ask(), "hm")
    log.reply(None, "hm")

    assert of(log).turns == []
    assert of(log).last is None
