"""The contract of a store, as tests that any store runs unchanged.

Make a subclass whose name starts with `Test`, and say in `make_place` where a new, empty log is:

    class TestMyStore(StoreContract):
        def make_place(self, folder):
            return Place("mystore://localhost/" + folder.name)

Everything goes through `EventLog`, for the promises are made to whoever keeps a log.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from brute.events import codec
from brute.events.blobs import LIMIT, hash_of
from brute.events.entries import Entry, Record
from brute.events.errors import (
    Conflict,
    CorruptStore,
    CriticalUnknown,
    EncodingError,
    LogClosed,
    UnknownPosition,
    UnknownSession,
    UsageError,
)
from brute.events.events import (
    EffectReturned,
    Event,
    Link,
    NoteAdded,
    PromptAppended,
    ReplyReceived,
    SessionOpened,
    StreamChunked,
    ToolReturned,
    UnknownEvent,
    tag_of,
)
from brute.events.log import CHUNK, Draft, EventLog, Notice
from brute.events.messages import Json, Media, Message, Text, ToolResult
from brute.events.store.base import Synchronous
from brute.testing import strategies as st


@dataclass(frozen=True)
class Place:
    """Where a log is, and what may be done with it."""

    url: str
    lasting: bool = True
    """It can be opened again, and by several at once; what was appended is there."""
    synchronous: Synchronous = "NORMAL"
    """No test here cuts the power."""

    def open(self) -> EventLog:
        """Open the log, with a clock that counts."""
        clock = itertools.count(1000).__next__
        return EventLog.open(self.url, synchronous=self.synchronous, clock=clock)


def notes(*texts: str) -> list[Event]:
    """Events that differ only in a text."""
    return [NoteAdded(text=text) for text in texts]


def texts(entries: Iterator[Entry] | list[Entry]) -> list[str]:
    """The texts of notes; of another event its tag."""
    return [e.event.text if isinstance(e.event, NoteAdded) else tag_of(e.event) for e in entries]


class StoreContract:
    """Run by every store."""

    def make_place(self, folder: Path) -> Place:
        """A place where there is no log yet; `folder` is empty."""
        raise NotImplementedError

    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return self.make_place(tmp_path)

    @pytest.fixture
    def log(self, place: Place) -> Iterator[EventLog]:
        with place.open() as log:
            yield log

    # -- appending and reading ---------------------------------------------------------------

    def test_what_is_appended_is_read_back_equal(self, log: EventLog) -> None:
        events: list[Event] = [
            SessionOpened(agent="build"),
            PromptAppended(message=Message.user("Hello")),
            ReplyReceived(message=Message.assistant("Hi")),
        ]

        log.append("s", events, expect=-1)

        assert [entry.event for entry in log.read("s")] == events
        assert [entry.position for entry in log.read("s")] == [0, 1, 2]

    def test_append_gives_the_entries_that_reading_gives(self, log: EventLog) -> None:
        draft = Draft(ToolReturned(), cause=0, lane="/0/1", run="r", place="agent.py:3")

        appended = log.append("s", [NoteAdded(text="a"), draft], expect=-1, append_id="once")

        assert appended == list(log.read("s")) == list(log.read_back("s"))[::-1]
        assert appended == [log.entry("s", 0), log.entry("s", 1)]
        assert [(e.append_id, e.at) for e in appended] == [("once", 1000), (None, 1000)]
        last = appended[-1]
        assert (last.cause, last.lane, last.run, last.record.place) == (0, "/0/1", "r", draft.place)

    def test_a_commit_without_a_given_id_has_one_of_its_own(self, log: EventLog) -> None:
        first = log.append("s", notes("a"), expect=-1)
        second = log.append("s", notes("b"), expect=0)

        assert first[0].append_id
        assert second[0].append_id
        assert first[0].append_id != second[0].append_id

    def test_whatever_an_agent_leaves_is_read_back_equal(self, place: Place) -> None:
        ids = map("s{}".format, itertools.count())

        @given(st.wild_logs())
        @settings(max_examples=40)
        def law(entries: list[Entry]) -> None:
            kept = [e for e in entries if not e.record.large and not e.record.critical]
            stored = [(tag_of(e.event), e.raw or codec.encode(e.record)) for e in kept]
            stored.insert(0, ("note.added", b'{"at":0,"event":{"type":"note.added"}}'))
            rows = [(position, *row) for position, row in enumerate(stored)]
            session = next(ids)

            log.import_states(session, rows, expect=-1)

            assert [(p, t, s) for _, p, t, s in log.states(session)] == rows
            decoded = [codec.decode(topic, state) for _, topic, state in rows]
            assert [(e.record, e.raw) for e in log.read(session)] == decoded
            back = list(log.read_back(session))[::-1]
            assert [(e.record, e.raw) for e in back] == decoded

        with place.open() as log:
            law()

    def test_a_long_session_is_read_whole_both_ways(self, log: EventLog) -> None:
        count = 2 * CHUNK + 1
        log.append("s", notes(*map(str, range(count))), expect=-1)

        assert texts(log.read("s")) == [str(n) for n in range(count)]
        assert texts(log.read_back("s")) == [str(n) for n in reversed(range(count))]
        assert texts(log.read("s", after=CHUNK - 2, upto=CHUNK + 1)) == ["999", "1000", "1001"]
        assert texts(log.read_back("s", before=CHUNK + 1, after=CHUNK - 2)) == ["1000", "999"]

    def test_positions_that_do_not_exist_are_left_out_of_a_range(self, log: EventLog) -> None:
        log.append("s", notes("a", "b"), expect=-1)

        assert texts(log.read("s", after=-9, upto=10**30)) == ["a", "b"]
        assert texts(log.read("s", after=1)) == texts(log.read("s", upto=-1)) == []
        assert texts(log.read("s", after=10**30)) == []
        assert texts(log.read_back("s", before=10**30, after=-9)) == ["b", "a"]
        assert texts(log.read_back("s", before=0)) == []

    @pytest.mark.parametrize("position", [-1, 2, 10**30])
    def test_an_entry_that_does_not_exist_is_said_to_be_missing(
        self, log: EventLog, position: int
    ) -> None:
        log.append("s", notes("a", "b"), expect=-1)

        with pytest.raises(UnknownPosition) as error:
            log.entry("s", position)

        assert (error.value.position, error.value.last) == (position, 1)

    @pytest.mark.parametrize("id", ["nobody", "", "\ud800", "a\0b"])
    def test_a_session_that_does_not_exist_is_said_to_be_unknown(
        self, log: EventLog, id: str
    ) -> None:
        log.append("s", notes("a"), expect=-1)
        asks: list[Callable[[], object]] = [
            lambda: log.read(id),
            lambda: log.read_back(id),
            lambda: log.entry(id, 0),
            lambda: log.last(id),
            lambda: log.info(id),
            lambda: log.states(id),
            lambda: log.fork(id, 0),
            lambda: log.find(id),
            lambda: log.follow(id),
            lambda: log.append(id, notes("a"), expect=0),
        ]

        for ask in asks:
            with pytest.raises(UnknownSession):
                ask()

    @pytest.mark.parametrize("id", [None, 5, b"s", ["s"], True])
    def test_what_is_no_text_names_no_session(self, log: EventLog, id: Any) -> None:
        log.append("s", notes("a"), expect=-1)
        asks: list[Callable[[], object]] = [
            lambda: log.read(id),
            lambda: log.read_back(id),
            lambda: log.entry(id, 0),
            lambda: log.last(id),
            lambda: log.info(id),
            lambda: log.states(id),
            lambda: log.fork(id, 0),
            lambda: log.find(id),
            lambda: log.append(id, notes("a"), expect=0),
            lambda: log.append(id, notes("a"), expect=-1),
            lambda: log.import_states(id, [], expect=-1),
            lambda: log.drop(id),
            lambda: log.blob(id),
        ]
        if id is not None:  # which means any
            asks += [lambda: log.fork("s", 0, id=id), lambda: log.follow(id)]

        for ask in asks:
            with pytest.raises(UsageError, match=r": found .*; give a text"):
                ask()

        assert [info.id for info in log.sessions()] == ["s"]

    @pytest.mark.parametrize("position", [None, "0", 1.5, 0.0, True])
    def test_what_is_no_whole_number_is_no_position(self, log: EventLog, position: Any) -> None:
        log.append("s", notes("a", "b"), expect=-1)
        asks: list[Callable[[], object]] = [
            lambda: log.read("s", after=position),
            lambda: log.states("s", after=position),
            lambda: log.read_back("s", after=position),
            lambda: log.follow("s", after=position),
            lambda: log.follow(after=position),
            lambda: log.afollow(after=position),
            lambda: log.entry("s", position),
            lambda: log.fork("s", position),
            lambda: log.append("s", notes("c"), expect=position),
            lambda: log.append("s~1", notes("c"), expect=position),
            lambda: log.import_states("s", [], expect=position),
        ]
        if position is not None:  # which means the end
            asks += [
                lambda: log.read("s", upto=position),
                lambda: log.states("s", upto=position),
                lambda: log.read_back("s", before=position),
                lambda: log.sessions(limit=position),
                lambda: log.sessions(before=position),
            ]

        for ask in asks:
            with pytest.raises(UsageError, match=r": found .*; give a (whole number|session)"):
                ask()

        assert texts(log.read("s")) == ["a", "b"]

    def test_fewer_than_no_sessions_cannot_be_listed(self, log: EventLog) -> None:
        with pytest.raises(UsageError, match="no -1 sessions"):
            log.sessions(limit=-1)

        assert list(log.sessions(limit=0)) == []

    def test_an_error_quotes_the_beginning_of_a_long_address(self, log: EventLog) -> None:
        log.append("s", notes("a"), expect=-1)
        address = "a" * 1_000_000

        for ask in (log.find, log.info, lambda id: log.fork("s", 0, id=id)):
            with pytest.raises(UsageError) as error:
                ask(address)
            assert "aaa" in str(error.value)
            assert len(str(error.value)) < 300

    def test_nothing_cannot_be_appended(self, log: EventLog) -> None:
        with pytest.raises(UsageError, match="nothing to append"):
            log.append("s", [], expect=-1)
        with pytest.raises(UsageError, match="nothing to append"):
            log.import_states("s", [], expect=-1)

        assert list(log.sessions()) == []

    @pytest.mark.parametrize("what", ["text", UnknownEvent("a.b", b"{}"), Message.user("a"), None])
    def test_what_is_no_event_cannot_be_appended(self, log: EventLog, what: object) -> None:
        with pytest.raises(UsageError, match="cannot be appended"):
            log.append("s", [what], expect=-1)  # type: ignore[list-item]

        assert list(log.sessions()) == []

    def test_a_batch_with_one_bad_event_leaves_nothing(self, log: EventLog) -> None:
        with pytest.raises(EncodingError):
            log.append("s", [*notes("a"), NoteAdded(data=float("nan"))], expect=-1)

        assert list(log.sessions()) == []

    # -- expected positions ------------------------------------------------------------------

    @pytest.mark.parametrize("expect", [-1, 0, 2, 99, 2**70])
    @pytest.mark.parametrize("count", [1, 3])
    def test_an_append_that_expects_another_end_changes_nothing(
        self, log: EventLog, expect: int, count: int
    ) -> None:
        log.append("s", notes("a", "b"), expect=-1)
        before = log.info("s"), list(log.read("s")), log.head()

        with pytest.raises(Conflict) as error:
            log.append("s", notes(*"x" * count), expect=expect)

        assert (error.value.expected, error.value.found) == (expect, 1)
        assert before == (log.info("s"), list(log.read("s")), log.head())
        log.append("s", notes("c"), expect=1)
        assert texts(log.read("s")) == ["a", "b", "c"]

    @pytest.mark.parametrize("expect", [-2, -(2**70)])
    def test_no_session_ends_before_minus_one(self, log: EventLog, expect: int) -> None:
        with pytest.raises(UsageError, match="no position"):
            log.append("s", notes("a"), expect=expect)

    def test_a_commit_repeated_under_its_id_is_not_doubled(self, log: EventLog) -> None:
        first = log.append("s", notes("a"), expect=-1, append_id="one")
        second = log.append("s", notes("b", "c"), expect=0, append_id="two")
        log.append("s", notes("d"), expect=2)

        again = log.append("s", notes("b", "c"), expect=0, append_id="two")

        assert again == second
        assert log.append("s", notes("a"), expect=-1, append_id="one") == first
        assert texts(log.read("s")) == ["a", "b", "c", "d"]

    def test_the_commit_of_somebody_else_is_not_taken_for_a_repetition(self, log: EventLog) -> None:
        log.append("s", notes("a"), expect=-1, append_id="one")
        log.append("s", notes("b"), expect=0, append_id="theirs")

        with pytest.raises(Conflict):
            log.append("s", notes("b"), expect=0, append_id="ours")
        with pytest.raises(Conflict):
            log.append("s", notes("b", "c"), expect=0, append_id="theirs")

    def test_a_thread_never_loses_an_update_of_another(self, log: EventLog) -> None:
        log.append("s", notes("start"), expect=-1)
        own: dict[str, list[int]] = {name: [] for name in "abc"}

        def write(name: str) -> None:
            while len(own[name]) < 30:
                last = log.last("s")
                with suppress(Conflict):
                    own[name] += [e.position for e in log.append("s", notes(name), expect=last)]

        threads = [threading.Thread(target=write, args=(name,)) for name in own]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        entries = list(log.read("s"))
        assert [e.position for e in entries] == list(range(91))
        for name, positions in own.items():
            assert positions == [n for n, text in enumerate(texts(entries)) if text == name]

    def test_threads_read_and_write_side_by_side(self, log: EventLog) -> None:
        failures: list[BaseException] = []

        def work(session: str) -> None:
            try:
                for n in range(40):
                    log.append(session, notes(str(n)), expect=n - 1)
                    assert len(list(log.read(session))) == n + 1
                    assert [info.id for info in log.sessions() if info.id == session] == [session]
            except BaseException as error:  # noqa: BLE001 - raised below, in the test's thread
                failures.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert failures == []
        assert sorted(info.id for info in log.sessions()) == list("abcd")

    # -- sessions ----------------------------------------------------------------------------

    def test_sessions_come_newest_event_first(self, log: EventLog) -> None:
        for name in "abc":
            log.append(name, notes(name), expect=-1)
        log.append("a", notes("again"), expect=0)

        assert [info.id for info in log.sessions()] == ["a", "c", "b"]
        assert [info.id for info in log.sessions(limit=2)] == ["a", "c"]
        assert list(log.sessions(limit=0)) == []

    def test_pages_of_sessions_join_without_a_gap(self, log: EventLog) -> None:
        for n in range(7):
            log.append(f"s{n}", notes("a"), expect=-1)

        pages: list[list[str]] = []
        before = None
        while page := list(log.sessions(limit=3, before=before)):
            pages.append([info.id for info in page])
            before = page[-1]

        assert pages == [["s6", "s5", "s4"], ["s3", "s2", "s1"], ["s0"]]

    def test_a_session_says_what_the_list_shows(self, log: EventLog) -> None:
        opened = SessionOpened(agent="build", metadata={"title": "Kyoto"})
        log.append("s", [opened], expect=-1)
        log.append("s", notes("a", "b"), expect=0)
        child = log.fork("s", 1, id="c")

        info, fork = log.info("s"), log.info(child)

        assert (info.created, info.updated, info.last) == (1000, 1001, 2)
        assert (info.agent, info.title, info.parent, info.link) == ("build", "Kyoto", None, None)
        assert (fork.last, fork.agent, fork.link) == (2, "build", "fork")
        assert (fork.parent, fork.parent_position) == ("s", 1)
        assert log.last("s") == log.last("c") == 2

    def test_the_session_of_a_sub_agent_names_its_parent_and_begins_at_0(
        self, log: EventLog
    ) -> None:
        log.append("s", notes("a"), expect=-1)
        link = Link(kind="sub-agent", session="s", position=0)

        log.append("c", [SessionOpened(link=link)], expect=-1)

        info = log.info("c")
        assert (info.link, info.parent, info.parent_position) == ("sub-agent", "s", 0)
        assert texts(log.read("c")) == ["session.opened"]

    def test_a_session_may_open_with_whatever_an_event_can_hold(self, place: Place) -> None:
        ids = map("s{}".format, itertools.count())
        numbers = some.sampled_from((None, 0, 5, -1, 2**63, -(2**70)))
        kinds = some.sampled_from(("import", "sub-agent"))

        @given(st.nasty_text(), st.json_values(), kinds, st.nasty_text(), numbers)
        def law(agent: str, title: object, kind: str, parent: str, position: int | None) -> None:
            link = msgspec.convert({"kind": kind}, Link)
            link = msgspec.structs.replace(link, session=parent, position=position)
            event = SessionOpened(agent=agent, metadata={"title": title}, link=link)
            session = next(ids)

            appended = log.append(session, [event], expect=-1)

            assert appended == list(log.read(session))
            assert log.info(session).link == kind

        with place.open() as log:
            law()

    @pytest.mark.parametrize("at", [2**63, 2**80, -(2**63) - 1])
    def test_an_imported_time_may_be_any_number(self, log: EventLog, at: int) -> None:
        state = codec.encode(Record(at=at, event=NoteAdded(text="a")))

        log.import_states("s", [(0, "note.added", state), (1, "note.added", state)], expect=-1)

        assert [entry.at for entry in log.read("s")] == [at, at]

    def test_an_address_is_an_id_or_a_part_of_one(self, log: EventLog) -> None:
        for name in ("alpha-1", "alpha-2", "beta%_", "al"):
            log.append(name, notes("a"), expect=-1)

        assert log.find("alpha-2") == "alpha-2"
        assert log.find("b") == log.find("%_") == "beta%_"
        assert log.find("al") == "al"
        assert log.find("-1") == "alpha-1"
        assert log.find("last") == "al"
        with pytest.raises(UnknownSession) as ambiguous:
            log.find("alpha")
        assert sorted(ambiguous.value.found) == ["alpha-1", "alpha-2"]
        for nothing in ("", "%", "_eta", "lph", "zz"):
            with pytest.raises(UnknownSession) as unknown:
                log.find(nothing)
            assert unknown.value.found == ()

    def test_an_empty_log_has_no_last_session(self, log: EventLog) -> None:
        with pytest.raises(UnknownSession):
            log.find("last")
        assert list(log.sessions()) == []
        assert log.head() == 0

    @pytest.mark.parametrize(
        "id", ["", "last", "a@1", "a/b", "a~", "~1", "a b", "a\nb", "\ud800", "x" * 201]
    )
    def test_an_id_that_reads_like_an_address_is_refused(self, log: EventLog, id: str) -> None:
        with pytest.raises(UsageError):
            log.append(id, notes("a"), expect=-1)

        assert list(log.sessions()) == []

    # -- forks -------------------------------------------------------------------------------

    def test_a_fork_shares_the_past_and_goes_its_own_way(self, log: EventLog) -> None:
        log.append("s", notes("0", "1", "2"), expect=-1)

        child = log.fork("s", 1)
        log.append(child, notes("mine"), expect=2)
        log.append("s", notes("3"), expect=2)

        assert texts(log.read(child)) == ["0", "1", "session.opened", "mine"]
        assert [e.position for e in log.read(child)] == [0, 1, 2, 3]
        assert {e.session for e in log.read(child)} == {child}
        assert texts(log.read("s")) == ["0", "1", "2", "3"]
        assert [stored for stored, *_ in log.states(child)] == ["s", "s", child, child]
        opened = log.entry(child, 2).event
        assert isinstance(opened, SessionOpened)
        assert opened.link == Link(kind="fork", session="s", position=1)

    def test_a_fork_may_say_more_about_itself(self, log: EventLog) -> None:
        log.append("s", notes("a"), expect=-1)

        child = log.fork("s", 0, event=SessionOpened(agent="other"), id="child")

        assert child == "child"
        assert log.info("child").agent == "other"

    @pytest.mark.parametrize("at", [-1, 2, 10**30])
    def test_no_fork_at_a_position_that_does_not_exist(self, log: EventLog, at: int) -> None:
        log.append("s", notes("a", "b"), expect=-1)

        with pytest.raises(UnknownPosition):
            log.fork("s", at)

    def test_a_fork_does_not_take_the_id_of_a_session(self, log: EventLog) -> None:
        log.append("s", notes("a", "b"), expect=-1)
        log.append("t", notes("x"), expect=-1)

        with pytest.raises((Conflict, UsageError)):
            log.fork("s", 0, id="t")
        with pytest.raises((Conflict, UsageError)):
            log.fork("s", 1, id="s")
        with pytest.raises(UsageError, match="is no session id"):
            log.fork("s", 1, id="")

        assert texts(log.read("t")) == ["x"]
        assert texts(log.read("s")) == ["a", "b"]

    @pytest.mark.parametrize(("position", "expect"), [(1, 0), (0, -1), (None, 0)])
    def test_an_event_cannot_claim_a_fork_that_it_is_not(
        self, log: EventLog, position: int | None, expect: int
    ) -> None:
        log.append("s", notes("a", "b"), expect=-1)
        link = Link(kind="fork", session="s", position=position)

        with pytest.raises(UsageError, match=r"log\.fork"):
            log.append("c", [SessionOpened(link=link)], expect=expect)

    def test_a_fork_of_a_fork_at_a_position_before_it_reads_the_first_session(
        self, log: EventLog
    ) -> None:
        log.append("s", notes("0", "1", "2", "3"), expect=-1)
        child = log.fork("s", 3)

        early = log.fork(child, 1)
        late = log.fork(child, 4)

        assert texts(log.read(early)) == ["0", "1", "session.opened"]
        assert texts(log.read(late)) == ["0", "1", "2", "3", *["session.opened"] * 2]
        assert texts(log.read_back(late)) == texts(log.read(late))[::-1]
        assert [stored for stored, *_ in log.states(late)] == ["s"] * 4 + [child, late]

    def test_a_chain_of_many_forks_is_read_through(self, log: EventLog) -> None:
        log.append("s", notes("0"), expect=-1)
        ids = ["s"]
        for n in range(200):
            ids.append(log.fork(ids[-1], n))

        assert [e.position for e in log.read(ids[-1])] == list(range(201))
        assert [stored for stored, *_ in log.states(ids[-1])] == ids
        assert log.entry(ids[-1], 100).event == log.entry(ids[100], 100).event

    # -- siblings of a session ---------------------------------------------------------------

    def test_a_sibling_stream_is_no_session_and_can_be_dropped(self, log: EventLog) -> None:
        log.append("s", notes("a"), expect=-1)
        frames = [StreamChunked(frames=("a",)), StreamChunked(frames=("b",))]

        log.append("s~0", frames[:1], expect=-1)
        log.append("s~0", frames[1:], expect=0)

        assert [e.event for e in log.read("s~0")] == frames
        assert log.last("s~0") == 1
        assert [info.id for info in log.sessions()] == ["s"]
        with pytest.raises(Conflict):
            log.append("s~0", frames, expect=0)
        log.drop("s~0")
        log.drop("s~0")
        assert list(log.read("s~0")) == []
        assert log.last("s~0") == -1
        assert texts(log.read("s")) == ["a"]

    @pytest.mark.parametrize("stream", ["s", "s~", "s~x", "~0", "s~0~1", "s~-1", "s~²"])
    def test_only_a_sibling_can_be_dropped(self, log: EventLog, stream: str) -> None:
        log.append("s", notes("a"), expect=-1)

        with pytest.raises(UsageError):
            log.drop(stream)
        if stream != "s":
            with pytest.raises(UsageError):
                log.append(stream, notes("a"), expect=-1)

        assert texts(log.read("s")) == ["a"]

    def test_a_place_in_the_order_of_commits_is_never_given_out_twice(self, log: EventLog) -> None:
        log.append("s", notes("a"), expect=-1)
        log.append("s~0", notes("x", "y"), expect=-1)
        seen = log.head()

        log.drop("s~0")
        log.append("s", notes("b"), expect=0)

        assert log.head() > seen
        assert texts(log.follow(after=seen, timeout=0)) == ["b"]

    # -- large bytes -------------------------------------------------------------------------

    def test_large_media_come_back_equal_and_stand_once(self, log: EventLog) -> None:
        data = bytes(range(256)) * 40
        image = Media(kind="image", media_type="image/png", data=data)
        result = ToolResult(content=(image, Text(text="b")))
        events: list[Event] = [
            PromptAppended(message=Message.user("Look", image)),
            ToolReturned(content=(image,)),
            PromptAppended(message=Message(role="tool", parts=(result, image))),
        ]

        appended = log.append("s", events, expect=-1)

        assert [entry.event for entry in appended] == events
        assert list(log.read("s")) == appended == list(log.read_back("s"))[::-1]
        assert log.entry("s", 1) == appended[1]
        assert [e.event for e in log.follow(timeout=0)] == events
        states = [state for _, _, _, state in log.states("s")]
        assert all(len(state) < 1000 for state in states)
        assert list(log.blobs("s")) == [(hash_of(data), data)]
        assert log.blob(hash_of(data)) == data

    @pytest.mark.parametrize("size", [0, LIMIT - 1, LIMIT, LIMIT + 1, 3 * LIMIT])
    def test_media_of_any_size_come_back_equal(self, log: EventLog, size: int) -> None:
        event = PromptAppended(message=Message.user(Media(kind="document", data=b"x" * size)))

        log.append("s", [event], expect=-1)

        assert [entry.event for entry in log.read("s")] == [event]
        assert len(list(log.blobs("s"))) == (size > LIMIT)

    def test_a_reference_that_somebody_made_up_stays_as_it_is(self, log: EventLog) -> None:
        made_up = Media(kind="image", blob="sha256:" + "0" * 64)
        large = Media(kind="image", data=b"x" * 2 * LIMIT)
        event = PromptAppended(message=Message.user(made_up, large))

        log.append("s", [event], expect=-1)

        assert [entry.event for entry in log.read("s")] == [event]

    def test_what_only_looks_like_a_reference_refers_to_nothing(self, log: EventLog) -> None:
        look = {"type": "media", "blob": "sha256:" + "0" * 64}
        made_up = Media(kind="image", blob="sha256:" + "1" * 64)
        large = Media(kind="image", data=b"x" * 2 * LIMIT)
        events: list[Event] = [
            NoteAdded(text='"blob":"sha256:' + "0" * 64 + '"', data=look),
            EffectReturned(value=look),
            ToolReturned(content=(Json(value=look), large)),
            PromptAppended(message=Message.user(made_up)),
        ]

        log.append("s", events, expect=-1)
        assert [name for name, _ in log.blobs("s")] == [hash_of(b"x" * 2 * LIMIT)]
        with EventLog.open(":memory:") as other:
            rows = [row[1:] for row in log.states("s")]
            other.import_states("s", rows, expect=-1, blobs=dict(log.blobs("s")))

            assert [entry.event for entry in other.read("s")] == events

    def test_the_bytes_of_a_large_event_of_a_newer_version_come_along(self, log: EventLog) -> None:
        image = Media(kind="image", data=b"x" * 2 * LIMIT)
        log.append("old", [PromptAppended(message=Message.user(image))], expect=-1)
        name = hash_of(b"x" * 2 * LIMIT)
        event = f'{{"type":"film.seen","blob":"{name}","not":"sha256:{"0" * 64}"}}'
        state = f'{{"at":5,"large":true,"event":{event}}}'.encode()
        log.import_states("s", [(0, "film.seen", state)], expect=-1)

        with EventLog.open(":memory:") as other:
            rows = [row[1:] for row in log.states("s")]
            other.import_states("s", rows, expect=-1, blobs=dict(log.blobs("s")))

            assert other.blob(name) == image.data
            assert [name for name, _ in other.blobs("s")] == [name]

    def test_bytes_that_are_not_there_are_said_to_be_missing(self, log: EventLog) -> None:
        with pytest.raises(CorruptStore, match="are missing"):
            log.blob("sha256:" + "0" * 64)

    # -- rows as they are stored ---------------------------------------------------------------

    def test_an_exported_session_is_imported_byte_for_byte(self, log: EventLog) -> None:
        image = Media(kind="image", data=b"x" * 2 * LIMIT)
        log.append("s", [SessionOpened(agent="a", metadata={"title": "t"})], expect=-1)
        log.append("s", [PromptAppended(message=Message.user(image))], expect=0)
        rows = [row[1:] for row in log.states("s")]

        with EventLog.open(":memory:") as other:
            last = other.import_states("copy", rows, expect=-1, blobs=dict(log.blobs("s")))

            assert last == 1
            assert [row[1:] for row in other.states("copy")] == rows
            assert [e.record for e in other.read("copy")] == [e.record for e in log.read("s")]
            info, copied = log.info("s"), other.info("copy")
            assert (copied.created, copied.updated) == (info.created, info.updated)
            assert (copied.agent, copied.title) == ("a", "t")

    def test_an_imported_fork_needs_its_parent(self, log: EventLog) -> None:
        log.append("s", notes("a", "b"), expect=-1)
        child = log.fork("s", 0)
        rows = {
            name: [row[1:] for row in log.states(child) if row[0] == name] for name in ("s", child)
        }

        with EventLog.open(":memory:") as other:
            with pytest.raises(UnknownSession):
                other.import_states(child, rows[child], expect=0)
            other.import_states("s", rows["s"], expect=-1)
            other.import_states(child, rows[child], expect=0)

            assert list(other.states(child)) == list(log.states(child))

    def test_an_import_is_checked_before_anything_is_written(self, log: EventLog) -> None:
        good = (0, "note.added", codec.encode(Record(at=1, event=NoteAdded(text="a"))))
        media = PromptAppended(message=Message.user(Media(kind="image", blob="sha256:" + "0" * 64)))
        large = codec.encode(Record(at=1, event=media, large=True))
        refused: list[tuple[tuple[int, str, bytes], type[Exception]]] = [
            ((0, "note.added", good[2]), UsageError),
            ((2, "note.added", good[2]), UsageError),
            ((1, "prompt.appended", good[2]), UsageError),
            ((1, "note.added", b'{"at":1'), CorruptStore),
            ((1, "note.added", b"[]"), CorruptStore),
            ((1, "\ud800", b'{"at":1,"event":{"type":"\\ud800"}}'), CorruptStore),
            ((1, "prompt.appended", large), UsageError),
        ]
        for row, error in refused:
            with pytest.raises(error):
                log.import_states("s", [good, row], expect=-1)
        blobs = {"sha256:" + "0" * 64: b"a"}
        with pytest.raises(UsageError, match="another hash"):
            log.import_states("s", [good, (1, "prompt.appended", large)], expect=-1, blobs=blobs)

        assert list(log.sessions()) == []

    def test_an_import_too_expects_the_end(self, log: EventLog) -> None:
        state = codec.encode(Record(at=1, event=NoteAdded(text="a")))
        log.import_states("s", [(0, "note.added", state)], expect=-1)

        with pytest.raises(Conflict):
            log.import_states("s", [(0, "note.added", state)], expect=-1)

        log.import_states("s", [(1, "note.added", state)], expect=0)
        assert log.last("s") == 1

    def test_events_of_a_newer_version_are_read_and_written_back_as_they_are(
        self, log: EventLog
    ) -> None:
        state = b'{"at":5,"new":[1, 2],"event":{"type":"galaxy.folded","times":2}}'
        log.import_states("s", [(0, "galaxy.folded", state)], expect=-1)

        log.append("s", notes("a"), expect=0)

        first = log.entry("s", 0)
        assert isinstance(first.event, UnknownEvent)
        assert first.raw == state
        assert next(log.states("s"))[3] == state

    # -- critical events -----------------------------------------------------------------------

    UNKNOWN = (1, "history.erased", b'{"at":5,"critical":true,"event":{"type":"history.erased"}}')

    def test_a_critical_event_that_this_version_does_not_know_stops_writers_not_readers(
        self, place: Place
    ) -> None:
        with place.open() as log:
            log.append("s", notes("a"), expect=-1)
            log.import_states("s", [self.UNKNOWN], expect=0)

            with pytest.raises(CriticalUnknown) as error:
                log.append("s", notes("b"), expect=1)

            assert error.value.tag == "history.erased"
            assert "s@1" in str(error.value)
            assert texts(log.read("s")) == ["a", "history.erased"]
            with pytest.raises(Conflict):
                log.append("s", notes("b"), expect=0)

        if place.lasting:
            with place.open() as again, pytest.raises(CriticalUnknown):
                again.append("s", notes("b"), expect=1)

    def test_a_fork_before_the_critical_event_goes_on_and_one_behind_it_does_not(
        self, log: EventLog
    ) -> None:
        log.append("s", notes("a"), expect=-1)
        log.import_states("s", [self.UNKNOWN], expect=0)

        before, behind = log.fork("s", 0), log.fork("s", 1)

        log.append(before, notes("b"), expect=1)
        with pytest.raises(CriticalUnknown):
            log.append(behind, notes("b"), expect=2)

    def test_a_critical_event_that_this_version_knows_stops_nobody(self, log: EventLog) -> None:
        log.append("s", [Draft(NoteAdded(text="a"), critical=True)], expect=-1)

        log.append("s", notes("b"), expect=0)
        log.append("s", [Draft(NoteAdded(text="c"), critical=True), *notes("d")], expect=1)

        assert [e.record.critical for e in log.read("s")] == [True, False, True, False]
        assert log.info("s").critical == {"note.added": 0}

    # -- following -----------------------------------------------------------------------------

    def test_a_follower_gets_what_is_there_and_what_comes(self, log: EventLog) -> None:
        log.append("s", notes("a", "b"), expect=-1)
        log.append("other", notes("x"), expect=-1)
        follower = log.follow("s", after=0, timeout=10)

        assert next(follower) == log.entry("s", 1)
        log.append("other", notes("y"), expect=0)
        appended = log.append("s", notes("c", "d"), expect=1)
        assert [next(follower), next(follower)] == appended
        follower.close()  # type: ignore[attr-defined]

    def test_a_follower_waits_for_another_thread(self, log: EventLog) -> None:
        log.append("s", notes("a"), expect=-1)
        seen = threading.Event()
        got: list[Entry] = []
        stop = threading.Event()

        def follow() -> None:
            for entry in log.follow("s", stop=stop):
                got.append(entry)
                seen.set()

        thread = threading.Thread(target=follow)
        thread.start()
        assert seen.wait(10)
        seen.clear()
        log.append("s", notes("b"), expect=0)
        assert seen.wait(10)
        stop.set()
        thread.join(10)

        assert not thread.is_alive()
        assert texts(got) == ["a", "b"]

    def test_a_follower_of_a_fork_reads_its_past_first(self, log: EventLog) -> None:
        log.append("s", notes("a", "b"), expect=-1)
        child = log.fork("s", 0)

        assert texts(log.follow(child, timeout=0)) == ["a", "session.opened"]

    def test_all_sessions_are_followed_in_the_order_of_commits(self, log: EventLog) -> None:
        log.append("s", notes("a"), expect=-1)
        log.append("t", notes("b", "c"), expect=-1)
        log.append("s~0", notes("delta"), expect=-1)
        log.append("s", notes("d"), expect=0)

        found = list(log.follow(timeout=0))

        assert texts(found) == ["a", "b", "c", "d"]
        assert [(e.session, e.position) for e in found] == [("s", 0), ("t", 0), ("t", 1), ("s", 1)]
        for entry in found:
            assert isinstance(entry, Notice)
            rest = list(log.follow(after=entry.id, timeout=0))
            assert rest == found[found.index(entry) + 1 :]
        assert list(log.follow(after=log.head(), timeout=0)) == []
        assert list(log.follow(after=10**30, timeout=0)) == []

    def test_a_follower_ends_when_the_log_is_closed(self, place: Place) -> None:
        log = place.open()
        log.append("s", notes("a"), expect=-1)
        seen = threading.Event()

        def follow() -> None:
            for _ in log.follow("s"):
                seen.set()

        thread = threading.Thread(target=follow)
        thread.start()
        assert seen.wait(10)

        log.close()
        thread.join(10)

        assert not thread.is_alive()

    def test_a_coroutine_follows_too(self, log: EventLog) -> None:
        log.append("s", notes("a"), expect=-1)

        async def main() -> list[Entry]:
            got: list[Entry] = []
            async for entry in log.afollow("s", timeout=10):
                got.append(entry)
                if len(got) == 3:
                    return got
                await asyncio.to_thread(log.append, "s", notes("b"), expect=len(got) - 1)
            return got

        async def everything() -> list[Entry]:
            return [entry async for entry in log.afollow(timeout=0)]

        assert texts(asyncio.run(main())) == ["a", "b", "b"]
        assert texts(asyncio.run(everything())) == ["a", "b", "b"]

    # -- closing -------------------------------------------------------------------------------

    def test_a_closed_log_says_so(self, place: Place) -> None:
        with place.open() as log:
            log.append("s", notes("a"), expect=-1)
        log.close()
        asks: list[Callable[[], object]] = [
            lambda: log.append("s", notes("b"), expect=0),
            lambda: log.append("t", notes("b"), expect=-1),
            lambda: log.append("s~0", notes("b"), expect=-1),
            lambda: log.drop("s~0"),
            lambda: list(log.read("s")),
            lambda: log.entry("s", 0),
            lambda: log.last("s"),
            lambda: list(log.sessions()),
            lambda: log.find("last"),
            log.head,
            lambda: log.blob("x"),
            lambda: list(log.follow("s")),
        ]

        for ask in asks:
            with pytest.raises(LogClosed):
                ask()

    def test_a_log_opened_again_holds_everything(self, place: Place) -> None:
        with place.open() as log:
            log.append("s", notes("a", "b"), expect=-1)
            child = log.fork("s", 0)
            before = list(log.sessions()), list(log.follow(timeout=0))

        with place.open() as log:
            if not place.lasting:
                assert list(log.sessions()) == []
                return
            assert before == (list(log.sessions()), list(log.follow(timeout=0)))
            assert texts(log.read(child)) == ["a", "session.opened"]
            log.append("s", notes("c"), expect=1)

    def test_two_open_logs_at_one_place_see_each_other(self, place: Place) -> None:
        with place.open() as one, place.open() as two:
            one.append("s", notes("a"), expect=-1)
            if not place.lasting:
                assert list(two.sessions()) == []
                return
            follower = two.follow("s", timeout=10)
            assert next(follower) == one.entry("s", 0)

            two.append("s", notes("b"), expect=0)
            with pytest.raises(Conflict):
                one.append("s", notes("c"), expect=0)
            one.append("s", notes("c"), expect=1)

            assert texts([next(follower), next(follower)]) == ["b", "c"]
            follower.close()  # type: ignore[attr-defined]

    # -- the law ---------------------------------------------------------------------------------

    @pytest.mark.slow
    def test_a_store_behaves_like_a_dictionary_of_lists(self) -> None:
        contract = self

        class Machine(LogMachine):
            def make_place(self, folder: Path) -> Place:
                return contract.make_place(folder)

        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=30,
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
            ),
        )


class LogMachine(RuleBasedStateMachine):
    """Does to a log and to a dictionary of lists the same, and compares."""

    sessions: Bundle[str] = Bundle("sessions")

    def make_place(self, folder: Path) -> Place:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.place = self.make_place(folder)
        self.log = self.place.open()
        self.model: dict[str, list[str]] = {}
        self.recent: list[str] = []
        self.order: list[tuple[str, int]] = []
        self.commits: list[tuple[str, int, list[str], str]] = []
        self.names = map("n{}".format, itertools.count())

    def teardown(self) -> None:
        self.log.close()
        self.stack.close()

    def _committed(self, session: str, added: list[str], at: int) -> None:
        self.recent = [session, *(s for s in self.recent if s != session)]
        self.order += [(session, at + 1 + n) for n in range(len(added))]

    @initialize(target=sessions)
    def begin(self) -> str:
        return self._open(1)

    @rule(target=sessions, count=some.integers(1, 3))
    def open_session(self, count: int) -> str:
        return self._open(count)

    def _open(self, count: int) -> str:
        session, added = next(self.names), [next(self.names) for _ in range(count)]
        self.log.append(session, notes(*added), expect=-1, append_id=session)
        self.model[session] = added
        self.commits.append((session, -1, added, session))
        self._committed(session, added, -1)
        return session

    @rule(session=sessions, count=some.integers(1, 6))
    def append(self, session: str, count: int) -> None:
        added, name = [next(self.names) for _ in range(count)], next(self.names)
        last = len(self.model[session]) - 1
        entries = self.log.append(session, notes(*added), expect=last, append_id=name)
        assert texts(entries) == added
        self.model[session] = self.model[session] + added
        self.commits.append((session, last, added, name))
        self._committed(session, added, last)

    @rule(session=sessions, off=some.integers(-4, 4), count=some.integers(1, 3))
    def append_elsewhere(self, session: str, off: int, count: int) -> None:
        last = len(self.model[session]) - 1
        expect = max(last + off, -1)
        if expect == last:
            return
        with pytest.raises(Conflict) as error:
            self.log.append(session, notes(*["x"] * count), expect=expect)
        assert (error.value.expected, error.value.found) == (expect, last)

    @precondition(lambda self: self.commits)
    @rule(data=some.data())
    def append_again(self, data: some.DataObject) -> None:
        session, expect, added, name = data.draw(some.sampled_from(self.commits))
        assert (
            texts(self.log.append(session, notes(*added), expect=expect, append_id=name)) == added
        )

    @rule(target=sessions, session=sessions, data=some.data())
    def fork(self, session: str, data: some.DataObject) -> str:
        at = data.draw(some.integers(0, len(self.model[session]) - 1))
        child = self.log.fork(session, at, id=next(self.names))
        self.model[child] = [*self.model[session][: at + 1], "session.opened"]
        self._committed(child, [child], at)
        return child

    @rule(session=sessions, low=some.integers(-1, 9), length=some.integers(0, 9))
    def read(self, session: str, low: int, length: int) -> None:
        expected = self.model[session][low + 1 : low + 1 + length]
        assert texts(self.log.read(session, after=low, upto=low + length)) == expected
        back = self.log.read_back(session, before=low + length + 1, after=low)
        assert texts(back) == expected[::-1]

    @rule(session=sessions)
    def write_and_drop_a_sibling(self, session: str) -> None:
        self.log.append(f"{session}~0", notes("delta"), expect=-1)
        self.log.drop(f"{session}~0")

    @rule()
    def open_again(self) -> None:
        if self.place.lasting:
            self.log.close()
            self.log = self.place.open()

    @invariant()
    def every_session_is_as_it_should_be(self) -> None:
        assert [info.id for info in self.log.sessions()] == self.recent
        assert [(e.session, e.position) for e in self.log.follow(timeout=0)] == self.order
        for session, expected in self.model.items():
            assert texts(self.log.read(session)) == expected
            assert self.log.last(session) == len(expected) - 1
