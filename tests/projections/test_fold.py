"""Folding, positions, and rewinds resolved."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from brute.events.entries import Entry, Record
from brute.events.events import HistoryRewound, NoteAdded
from brute.projections import at, fold, last_rewind, lineage
from tests.projections.logs import Log


def entry(position: int, rewound_to: int | None = None) -> Entry:
    event = NoteAdded() if rewound_to is None else HistoryRewound(to=rewound_to)
    return Entry("s1", position, Record(at=0, event=event))


def alive(entries: Sequence[Entry]) -> list[int]:
    return [e.position for e in lineage(entries)]


@st.composite
def rewound(draw: st.DrawFn) -> list[Entry]:
    """Logs of remarks and rewinds; the positions rise, with gaps."""
    steps = draw(st.lists(st.tuples(st.integers(1, 3), st.none() | st.integers(-1, 60))))
    position, entries = -1, []
    for gap, to in steps:
        position += gap
        entries.append(entry(position, to))
    return entries


def by_snapshots(entries: list[Entry]) -> list[Entry]:
    """The plain way: keep what was said at every position, and go back to it."""
    said: list[Entry] = []
    then: list[tuple[int, list[Entry]]] = []
    for one in entries:
        if isinstance(one.event, HistoryRewound):
            count = bisect_right(then, one.event.to, key=lambda pair: pair[0])
            said = list(then[count - 1][1]) if count else []
        else:
            said = [*said, one]
        then.append((one.position, said))
    return said


@given(rewound())
def test_a_rewind_is_a_fork_in_place(entries: list[Entry]) -> None:
    assert list(lineage(entries)) == by_snapshots(entries)


@given(rewound())
def test_the_lineage_has_no_rewinds_and_is_its_own_lineage(entries: list[Entry]) -> None:
    said = lineage(entries)

    assert not any(isinstance(e.event, HistoryRewound) for e in said)
    assert lineage(said) is said


@given(rewound())
def test_the_last_rewind_is_the_newest_one(entries: list[Entry]) -> None:
    rewinds = [e.position for e in entries if isinstance(e.event, HistoryRewound)]

    assert last_rewind(entries) == (rewinds[-1] if rewinds else None)


def test_without_a_rewind_the_lineage_is_the_very_same_list() -> None:
    entries = [entry(0), entry(1)]

    assert lineage(entries) is entries
    assert lineage(()) == ()


def test_a_rewind_takes_back_what_came_after_its_target() -> None:
    assert alive([entry(0), entry(1), entry(2), entry(3, rewound_to=1), entry(4)]) == [0, 1, 4]


def test_a_rewind_to_a_place_that_was_taken_back_brings_it_to_life_again() -> None:
    entries = [entry(0), entry(1), entry(2), entry(3, rewound_to=0), entry(4)]

    assert alive(entries) == [0, 4]
    assert alive([*entries, entry(5, rewound_to=2), entry(6)]) == [0, 1, 2, 6]


def test_a_rewind_to_a_rewind_goes_where_that_one_went() -> None:
    entries = [entry(0), entry(1), entry(2, rewound_to=0), entry(3), entry(4, rewound_to=2)]

    assert alive(entries) == [0]


def test_a_rewind_to_before_the_first_entry_leaves_nothing() -> None:
    assert alive([entry(0), entry(1, rewound_to=-1), entry(2)]) == [2]


def test_a_rewind_to_itself_or_ahead_changes_nothing() -> None:
    assert alive([entry(0), entry(1, rewound_to=1), entry(2), entry(3, rewound_to=99)]) == [0, 2]


def test_a_rewind_to_a_position_between_two_entries_means_the_one_before() -> None:
    assert alive([entry(0), entry(5), entry(9), entry(10, rewound_to=7)]) == [0, 5]


def test_at_includes_its_position_and_copies_nothing_it_need_not() -> None:
    entries = [entry(0), entry(2), entry(4)]

    assert [e.position for e in at(entries, 2)] == [0, 2]
    assert [e.position for e in at(entries, 3)] == [0, 2]
    assert at(entries, -1) == []
    assert at(entries, 4) is entries
    assert at(entries, 99) is entries


def test_an_object_is_as_good_a_projection_as_a_module() -> None:
    class Count:
        def initial(self) -> int:
            return 0

        def apply(self, state: int, entry: Entry) -> int:
            return state + 1

    assert fold(Count(), [entry(0), entry(1)]) == 2
    assert fold(Count(), [entry(2)], 2) == 3
    assert fold(Count(), [], 0) == 0


def test_messages_can_be_read_at_every_position() -> None:
    log = Log()
    log.user("one")
    log.user("two")
    log.rewind(0)
    log.user("three")

    def said(position: int) -> list[str]:
        earlier = Log()
        earlier.entries = list(at(log.entries, position))
        return earlier.said

    assert [said(n) for n in range(4)] == [
        ["user one"],
        ["user one", "user two"],
        ["user one"],
        ["user one", "user three"],
    ]
