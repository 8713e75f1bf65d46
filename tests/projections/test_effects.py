"""Effects and approvals that wait."""

from __future__ import annotations

from brute.events.events import ApprovalAsked, ApprovalGiven, EffectCalled, EffectReturned, Failure
from brute.projections import effects, fold, lineage
from brute.projections.effects import Effects
from tests.projections.logs import Log


def of(log: Log) -> Effects:
    return fold(effects, lineage(log.entries))


def test_an_effect_is_open_until_it_has_its_outcome() -> None:
    log = Log()
    called = log.add(EffectCalled(name="rate", args={"c": "JPY"}, idempotent=True), lane="/0")
    [effect] = of(log).open
    assert (effect.name, effect.idempotent, effect.lane) == ("rate", True, "/0")

    result = log.add(EffectReturned(value=3), cause=called)
    log.add(EffectReturned(value=4, outcome="unknown"), cause=called)

    assert of(log).open == []
    assert [(e.outcome, e.result) for e in of(log).effects] == [("ok", result)]
    assert of(log).get(called) is not None
    assert of(log).get(result) is None


def test_an_effect_whose_run_is_gone_is_unknown() -> None:
    log = Log()
    log.add(EffectCalled(name="a"), run="gone")
    log.add(EffectCalled(name="b"), run="r2")

    assert [e.name for e in of(log).unknown("r2")] == ["a"]
    assert [e.name for e in of(log).unknown()] == ["a", "b"]


def test_an_effect_that_raised_has_an_error_for_its_outcome() -> None:
    log = Log()
    called = log.add(EffectCalled(name="a"))
    log.add(EffectReturned(error=Failure(kind="E")), cause=called)

    assert [e.outcome for e in of(log).effects] == ["error"]


def test_an_approval_waits_for_its_answer() -> None:
    log = Log()
    asked = log.add(ApprovalAsked(about="rm -rf", reply=1, part=2))
    assert [a.about for a in of(log).asked] == ["rm -rf"]

    given = log.add(ApprovalGiven(granted=False), cause=asked)
    log.add(ApprovalGiven(granted=True), cause=asked)

    assert of(log).asked == []
    assert [(a.granted, a.result, a.reply) for a in of(log).approvals] == [(False, given, 1)]
