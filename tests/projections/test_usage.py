"""Usage and cost."""

from __future__ import annotations

import pytest

from brute.events.events import Failure, ModelRef, ReplyReceived, RequestFailed
from brute.events.messages import Message, Origin, Usage
from brute.projections import fold, usage
from brute.projections.usage import Price, UsageTotals
from tests.projections.logs import Log


def of(log: Log) -> UsageTotals:
    return fold(usage, log.entries)


def issued(log: Log, request: int | None, model: str, spent: Usage) -> int:
    message = Message(role="assistant", origin=Origin(api="x", model=model))
    return log.add(ReplyReceived(message=message, usage=spent), cause=request)


def test_totals_add_up_over_turns_and_models() -> None:
    log = Log()
    log.turn(model=ModelRef(id="a"))
    log.reply(log.ask(), "one", usage=Usage(input=10, output=1, reasoning=1))
    log.turn(model=ModelRef(id="b"))
    issued(log, log.ask(), "b-2026", Usage(input=20, output=2, cache_read=5))
    log.add(RequestFailed(error=Failure(kind="E")), cause=log.ask())
    log.cut(log.ask(), "ha")
    found = of(log)

    assert found.total == Usage(input=30, output=3, reasoning=1, cache_read=5)
    assert found.by_model == {
        "a": Usage(input=10, output=1, reasoning=1),
        "b-2026": Usage(input=20, output=2, cache_read=5),
        "b": Usage(),
    }
    assert (found.turns, found.requests, found.replies) == (2, 4, 2)
    assert (found.interrupted, found.failed, found.unmetered) == (1, 1, 1)


def test_cached_tokens_are_paid_once_and_at_their_own_price() -> None:
    spent = Usage(input=1_000_000, output=100_000, cache_read=600_000, cache_write=300_000)

    assert Price(10, 50, cache_read=1, cache_write=12.5).of(spent) == pytest.approx(
        0.1 * 10 + 0.6 * 1 + 0.3 * 12.5 + 0.1 * 50
    )
    assert Price(10, 50).of(spent) == pytest.approx(10 + 5)


def test_a_provider_that_leaves_the_cached_tokens_out_is_not_paid_back() -> None:
    assert Price(10, 50, cache_read=1).of(Usage(input=0, cache_read=1_000_000)) == 1


def test_a_price_is_found_by_the_name_of_the_reply_or_the_one_asked_for() -> None:
    log = Log()
    log.turn(model=ModelRef(id="gpt"))
    issued(log, log.ask(), "gpt-2026-01", Usage(input=1_000_000))

    assert of(log).cost({"gpt": Price(2, 8)}).dollars == 2
    assert of(log).cost({"gpt": Price(2, 8), "gpt-2026-01": Price(3, 8)}).dollars == 3


def test_a_model_without_a_price_is_reported_not_guessed() -> None:
    log = Log()
    log.turn(model=ModelRef(id="gpt"))
    issued(log, log.ask(), "gpt-2026-01", Usage(input=1_000_000))
    issued(log, None, "claude", Usage(input=1_000_000))
    log.reply(None, "free")
    cost = of(log).cost({"claude": Price(3, 15), "gp": Price(9, 9)})

    assert cost.dollars == 3
    assert cost.by_model == {"claude": 3}
    assert cost.unpriced == ("gpt-2026-01",)


def test_a_reply_of_no_known_model_is_reported_too() -> None:
    log = Log()
    log.reply(None, "hm", usage=Usage(input=1))

    assert of(log).cost({}).unpriced == ("(unnamed)",)
    assert of(log).cost({}).dollars == 0


def test_money_spent_stays_spent_after_a_rewind() -> None:
    log = Log()
    first = log.turn(model=ModelRef(id="a"))
    log.turn(model=ModelRef(id="b"))
    log.reply(log.ask(), "one", usage=Usage(output=7))
    log.rewind(first)
    log.turn()
    log.reply(log.ask(), "two", usage=Usage(output=5))

    assert of(log).by_model == {"b": Usage(output=7), "a": Usage(output=5)}


def test_settings_come_back_through_rewinds_of_rewinds() -> None:
    log = Log()
    log.turn(model=ModelRef(id="a"))
    second = log.turn(model=ModelRef(id="b"))
    log.rewind(0)
    log.turn(model=ModelRef(id="c"))
    log.rewind(second)
    log.reply(log.ask(), usage=Usage(output=1))
    log.rewind(-1)
    log.reply(log.ask(), usage=Usage(output=1))

    assert list(of(log).by_model) == ["b", "(unnamed)"]


def test_a_second_outcome_is_not_paid_twice() -> None:
    log = Log()
    request = log.ask()
    log.reply(request, "one", usage=Usage(output=7))
    log.reply(request, "one", usage=Usage(output=7))

    assert of(log).total.output == 7


def test_a_fork_folded_over_its_own_entries_counts_its_own_tail() -> None:
    parent = Log()
    request = parent.ask()
    parent.reply(request, "parent's", usage=Usage(output=100))
    child = Log()
    child.entries = list(parent.entries[:1])
    child.reply(request, "child's", usage=Usage(output=1))

    assert fold(usage, child.entries[1:]).total.output == 1
