"""What the codec costs beside msgspec alone, and how many examples the strategies give."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import Phase, given, settings
from hypothesis.strategies import SearchStrategy

from brute.events.codec import decode, encode
from brute.events.entries import Record
from brute.testing import st
from tests.bench.common import Line, events, ratio, raw_decode, raw_encode, take_turns

T = TypeVar("T")

COUNT = 1_000


def each(call: Callable[[T], object], values: Sequence[T]) -> Callable[[int], object]:
    """A turn that calls `call` with each value."""

    def turn(number: int) -> None:
        for value in values:
            call(value)

    return turn


def lines(rounds: int) -> list[Line]:
    """Encode, decode, decode where one row in ten is of a newer version; examples a second."""
    records = [Record(at=1_750_000_000_000, event=event) for event in events(COUNT)]
    known = [encode(record) for record in records]
    newer = [
        state.replace(b'{"type":', b'{"new":[1],"type":', 1) if number % 10 == 0 else state
        for number, state in enumerate(known)
    ]
    table = {
        "codec: encode, checked by reading it back": (
            each(encode, records),
            each(raw_encode, records),
        ),
        "codec: decode": (
            each(lambda state: decode("", state), known),
            each(raw_decode, known),
        ),
        "codec: decode, 1 row in 10 of a newer version": (
            each(lambda state: decode("", state), newer),
            each(raw_decode, known),
        ),
    }
    times = {
        what: [take_turns(*sides, 30, 5, time.process_time) for _ in range(rounds)]
        for what, sides in table.items()
    }
    done = [ratio(what, spent, None, COUNT) for what, spent in times.items()]
    return done + [
        Line(f"examples a second: st.{name}", [a_second(strategy) for _ in range(rounds)])
        for name, strategy in {
            "conversations()": st.conversations(),
            "logs()": st.logs(),
            "wild_logs()": st.wild_logs(),
            "records(foreign=True)": st.records(foreign=True),
        }.items()
    ]


def a_second(strategy: SearchStrategy[T], count: int = 300) -> float:
    """Examples of a strategy in a second of the processor's time."""

    @settings(max_examples=count, phases=[Phase.generate], database=None, deadline=None)
    @given(strategy)
    def draw(value: T) -> None:
        pass

    start = time.process_time()
    draw()
    return count / (time.process_time() - start)
