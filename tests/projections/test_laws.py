"""What holds for every projection, whatever was logged."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute.events.entries import Entry, Record
from brute.events.events import EVENTS, NoteAdded, UnknownEvent
from brute.projections import (
    at,
    calls,
    effects,
    fold,
    lineage,
    messages,
    requests,
    timeline,
    turns,
    usage,
)
from brute.projections.calls import Calls
from brute.projections.effects import Effects
from brute.projections.messages import MessageList
from brute.projections.requests import Requests
from brute.projections.timeline import Timeline
from brute.projections.turns import Turns
from brute.projections.usage import Price, UsageTotals
from brute.testing import strategies as kit
from tests.projections.strategies import MORE, busy_events, events, logs, sessions, wild_logs


def of_messages(state: MessageList) -> object:
    assert len(state.messages) == len(state.positions) == len(state)
    return [*state.messages], [*state.positions], [*state.base], state.last("user")


def of_calls(state: Calls) -> object:
    return (
        [*state],
        state.open,
        state.unrunnable,
        state.started,
        state.unknown("r1"),
        state.unknown("r1", before=9),
        state.answered,
        [*state.extra],
    )


def of_turns(state: Turns) -> object:
    return [*state.turns], state.settings


def of_usage(state: UsageTotals) -> object:
    counts = (state.turns, state.requests, state.replies, state.interrupted, state.failed)
    return state.total, counts, state.models, state.by_model, state.cost({"a": Price(1, 2)})


def of_requests(state: Requests) -> object:
    return [*state], state.open


def of_effects(state: Effects) -> object:
    return state.effects, state.open, state.approvals, state.asked, state.unknown(None)


def of_timeline(state: Timeline) -> object:
    return [*state.rows]


PROJECTIONS: list[tuple[Any, Callable[[Any], object]]] = [
    (messages, of_messages),
    (calls, of_calls),
    (turns, of_turns),
    (usage, of_usage),
    (requests, of_requests),
    (effects, of_effects),
    (timeline, of_timeline),
]
every_projection = pytest.mark.parametrize(
    ("projection", "look"), PROJECTIONS, ids=[p.__name__.split(".")[-1] for p, _ in PROJECTIONS]
)


@every_projection
@given(entries=logs() | wild_logs())
def test_no_sequence_of_events_is_refused(
    projection: Any, look: Callable[[Any], object], entries: list[Entry]
) -> None:
    assert look(fold(projection, entries)) == look(fold(projection, entries))
    assert look(fold(projection, lineage(entries))) is not None


@every_projection
@given(entries=logs() | sessions(*MORE), cut=st.integers(0, 30))
def test_folding_on_from_a_state_is_folding_it_all(
    projection: Any, look: Callable[[Any], object], entries: list[Entry], cut: int
) -> None:
    before = fold(projection, entries[:cut])
    assert look(before) == look(fold(projection, entries[:cut]))  # and reading changes nothing

    after = fold(projection, entries[cut:], before)

    assert look(after) == look(fold(projection, entries))


@every_projection
@given(entries=kit.logs() | st.lists(kit.entries(), max_size=8), cut=st.integers(0, 30))
def test_the_laws_hold_for_the_logs_of_the_public_kit(
    projection: Any, look: Callable[[Any], object], entries: list[Entry], cut: int
) -> None:
    state = fold(projection, entries[cut:], fold(projection, entries[:cut]))

    assert look(state) == look(fold(projection, entries))


@every_projection
@given(entries=sessions(*MORE), cut=st.integers(0, 30))
def test_a_pickled_state_goes_on_like_the_state(
    projection: Any, look: Callable[[Any], object], entries: list[Entry], cut: int
) -> None:
    kept = pickle.loads(pickle.dumps(fold(projection, entries[:cut])))

    assert look(fold(projection, entries[cut:], kept)) == look(fold(projection, entries))


@every_projection
@given(entries=sessions(*MORE), places=st.lists(st.integers(0, 30), max_size=5))
def test_unknown_events_and_remarks_change_nothing_but_the_timeline(
    projection: Any, look: Callable[[Any], object], entries: list[Entry], places: list[int]
) -> None:
    if projection is timeline:
        return
    more = [*entries]
    for place in places:
        strange: Any = (
            UnknownEvent(tag="reply.dreamt", raw=b"{}") if place % 2 else NoteAdded(text="x")
        )
        more.insert(place, Entry("s1", place, Record(at=0, event=strange)))

    assert look(fold(projection, more)) == look(fold(projection, entries))


@given(entries=logs())
def test_every_entry_has_one_printable_line_of_at_most_200_characters(entries: list[Entry]) -> None:
    rows = fold(timeline, entries).rows

    assert [row.position for row in rows] == [entry.position for entry in entries]
    for row in rows:
        assert len(row.text) <= 200
        assert row.text.replace("\u200d", "").replace("\u200c", "").isprintable()


@given(entries=logs(busy_events) | sessions(*MORE))
def test_what_passes_leaves_no_trace_in_what_is_said_for_good(entries: list[Entry]) -> None:
    lasting = [e for e in entries if getattr(e.event, "lifetime", "session") == "session"]

    assert fold(messages, entries).base == fold(messages, lasting).base


@given(entries=logs(busy_events) | sessions())
def test_calls_and_messages_agree_on_what_is_said(entries: list[Entry]) -> None:
    entries = [e for e in entries if type(e.event) is not EVENTS["history.compacted"]]
    said = fold(messages, entries)
    asked = fold(calls, entries)
    behind = dict(zip(said.positions, said.messages, strict=True))

    for call in asked:
        assert behind[call.reply].parts[call.part] == call.call
        if call.result is not None:
            assert behind[call.result].role == "tool" or behind[call.result].parts
    results = {e.position for e in entries if type(e.event) is EVENTS["tool.returned"]}
    by_cause = {e.position for e in entries if e.cause is not None}
    assert {p for p in behind if p in results and p in by_cause} == {
        c.result for c in asked if c.result in results and c.result in by_cause
    }


@given(entries=logs())
def test_usage_counts_every_reply_rewound_or_not(entries: list[Entry]) -> None:
    totals = fold(usage, entries)
    seen: set[int] = set()
    spent = 0
    for entry in entries:
        outcome = type(entry.event) in {EVENTS[t] for t in EVENTS["request.sent"].answered_by}
        if not outcome or entry.cause in seen:
            continue
        if entry.cause is not None:
            seen.add(entry.cause)
        reported = getattr(entry.event, "usage", None)
        spent += reported.output if reported is not None else 0

    assert totals.total.output == spent
    assert sum(row.usage.output for row in totals.models) == spent
    assert sum(row.replies for row in totals.models) == totals.replies + totals.interrupted


@given(entries=logs(events), position=st.integers(-2, 40))
def test_any_position_can_be_read_again(entries: list[Entry], position: int) -> None:
    then = at(entries, position)

    assert list(then) == [e for e in entries if e.position <= position]
    assert of_messages(fold(messages, lineage(then))) == of_messages(
        fold(messages, lineage(entries[: len(then)]))
    )
