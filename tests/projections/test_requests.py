"""Requests and what came of each."""

from __future__ import annotations

from brute.events.events import Failure, RequestFailed, RequestRetried, RequestSent
from brute.projections import fold, requests
from brute.projections.requests import Request, Requests
from tests.projections.logs import Log


def of(log: Log) -> Requests:
    return fold(requests, log.entries)


def test_a_request_keeps_what_it_was_built_from() -> None:
    log = Log()
    turn = log.turn()
    sent = RequestSent(transport="Anthropic", version=2, upto=0, settings="5e", chain="c4", items=3)
    position = log.add(sent, at=5)
    found = of(log)

    assert found.get(position) == Request(
        position=position,
        turn=turn,
        transport="Anthropic",
        version=2,
        upto=0,
        settings="5e",
        chain="c4",
        items=3,
        run="r1",
        at=5,
    )
    assert found.open == list(found)
    assert found.outcome_of(position) is None
    assert found.get(99) is None
    assert found.outcome_of(99) is None


def test_an_outcome_ends_it_and_a_second_one_changes_nothing() -> None:
    log = Log()
    asked = [log.ask() for _ in range(4)]
    outcomes = [
        log.reply(asked[0], "hm"),
        log.reply(asked[1], "in short", kind="summary"),
        log.cut(asked[2]),
        log.add(RequestFailed(error=Failure(kind="E")), cause=asked[3]),
    ]
    log.reply(asked[3], "after all")
    found = of(log)

    assert [r.kind for r in found] == ["reply", "summary", "interrupted", "failed"]
    assert [r.outcome for r in found] == outcomes
    assert [found.outcome_of(a) for a in asked] == outcomes
    assert [r.duration_ms for r in found] == [4000] * 4
    assert found.open == []
    assert len(found) == 4


def test_retries_are_counted() -> None:
    log = Log()
    asked = log.ask()
    log.add(RequestRetried(why="429"), cause=asked)
    log.add(RequestRetried(why="429"), cause=asked)
    log.add(RequestRetried(why="of nothing"))

    assert [r.retries for r in of(log)] == [2]


def test_a_clock_that_was_set_back_gives_no_negative_time() -> None:
    log = Log()
    log.reply(log.ask(at=5000), "hm", at=4000)

    assert [r.duration_ms for r in of(log)] == [0]


def test_a_rewound_request_was_sent_all_the_same() -> None:
    log = Log()
    log.reply(log.ask(), "hm")
    log.rewind(-1)

    assert len(of(log)) == 1
