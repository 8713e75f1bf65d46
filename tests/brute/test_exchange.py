"""Sessions go out as lines and come back equal, or not at all."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import assume, given

import brute
from brute.events import codec
from brute.events.entries import Entry
from brute.events.events import PromptAppended, SessionOpened, tag_of
from brute.exchange import MAX_LINE, MAX_STATE, Imported, ImportFailure, export_session, import_file
from brute.testing import st

Row = tuple[int, str, bytes]


def rows_of(log: brute.Log, session: str) -> list[Row]:
    return [(position, topic, state) for _, position, topic, state in log.events.states(session)]


def exported(log: brute.Log, session: str, upto: int | None = None) -> bytes:
    return b"".join(export_session(log, session, upto=upto))


def imported(log: brute.Log, data: bytes, **how: Any) -> Imported:
    return import_file(log, io.BytesIO(data), name="t1.jsonl", **how)


def stored(log: brute.Log, session: str, entries: Sequence[Entry]) -> None:
    """Put entries into a log, where a writer could have: no fork at 0, no bytes elsewhere."""
    rows = [
        (entry.position, tag_of(entry.event), entry.raw or codec.encode(entry.record))
        for entry in entries
    ]
    first = entries[0].event if entries else None
    assume(not (isinstance(first, SessionOpened) and first.link is not None))
    assume(rows and not any(entry.record.large for entry in entries))
    log.events.import_states(session, rows, expect=-1)


@pytest.fixture
def other() -> Iterable[brute.Log]:
    with brute.open(":memory:") as log:
        yield log


@given(entries=st.wild_logs())
def test_whatever_a_log_holds_is_imported_byte_for_byte(entries: list[Entry]) -> None:
    with brute.open(":memory:") as log, brute.open(":memory:") as other:
        stored(log, "s", entries)

        done = imported(other, exported(log, "s"))

        assert (done.session, done.entries) == ("s", len(entries))
        assert rows_of(other, "s") == rows_of(log, "s")
        assert list(other.events.read("s")) == list(log.events.read("s"))


@given(entries=st.logs())
def test_an_imported_session_says_what_the_exported_one_said(entries: list[Entry]) -> None:
    with brute.open(":memory:") as log, brute.open(":memory:") as other:
        stored(log, "s", entries)

        imported(other, exported(log, "s"))

        assert other.session("s").messages == log.session("s").messages
        assert other.session("s").usage.total == log.session("s").usage.total


def test_large_media_travel_beside_their_entry(log: brute.Log, other: brute.Log) -> None:
    picture = brute.Media(kind="image", media_type="image/png", data=b"\x89PNG" * 3_000_000)
    session = log.start(id="s")
    session.user("Look:", picture)
    session.user("And again:", picture)

    data = exported(log, "s")
    imported(other, data)

    assert other.session("s").messages == session.messages
    assert rows_of(other, "s") == rows_of(log, "s")
    assert len(data) < 1.4 * 12_000_000, "the picture is written once"
    assert max(map(len, data.split(b"\n"))) < MAX_LINE / 4


def test_what_only_looks_like_a_reference_travels_as_it_is(
    log: brute.Log, other: brute.Log
) -> None:
    look = {"type": "media", "kind": "image", "blob": "sha256:" + "0" * 64}
    session = log.start(id="s", metadata=look)
    session.user("Look:", brute.Media(kind="image", blob="sha256:" + "1" * 64))
    session.note("seen", look)

    imported(other, exported(log, "s"))

    assert rows_of(other, "s") == rows_of(log, "s")
    assert other.session("s").messages == session.messages


def test_an_entry_too_large_for_a_line_travels_in_pieces(log: brute.Log, other: brute.Log) -> None:
    log.start(id="s").user("x" * (MAX_STATE + 1))

    data = exported(log, "s")
    imported(other, data)

    assert rows_of(other, "s") == rows_of(log, "s")
    assert max(map(len, data.split(b"\n"))) < MAX_LINE / 4


def test_a_state_that_is_written_over_several_lines_stays_as_it_is(
    log: brute.Log, other: brute.Log
) -> None:
    log.start(id="s")
    newer = b'{"at":1,\n "event":{"type":"moon.landed",\r\n "feet":2}}'
    log.events.import_states("s", [(1, "moon.landed", newer)], expect=0)

    imported(other, exported(log, "s"))

    assert rows_of(other, "s")[1] == (1, "moon.landed", newer)


def test_a_fork_is_exported_with_the_past_it_shares(log: brute.Log, other: brute.Log) -> None:
    parent = log.start(id="parent")
    parent.user("one")
    child = parent.fork(id="child")
    child.user("two")
    parent.user("three")

    imported(other, exported(log, "child"))

    assert [m.content for m in other.session("child").messages] == ["one", "two"]
    assert list(other.events.read("child")) == list(log.events.read("child"))


def test_an_export_can_stop_at_a_position(log: brute.Log, other: brute.Log) -> None:
    session = log.start(id="s")
    session.user("one")
    session.user("two")

    imported(other, exported(log, "s", upto=1))

    assert [m.content for m in other.session("s").messages] == ["one"]


def test_an_export_made_twice_is_imported_once(log: brute.Log, other: brute.Log) -> None:
    log.start(id="s").user("one")
    imported(other, exported(log, "s"))

    again = imported(other, exported(log, "s"))

    assert again == Imported(session="s", source="brute", entries=2)
    assert len(other.sessions()) == 1


def test_another_session_of_the_same_id_is_not_overwritten(
    log: brute.Log, other: brute.Log
) -> None:
    log.start(id="s").user("mine")
    other.start(id="s").user("yours")

    with pytest.raises(brute.UsageError, match="another session 's'"):
        imported(other, exported(log, "s"))

    assert [m.content for m in other.session("s").messages] == ["yours"]
    assert imported(other, exported(log, "s"), id="mine").session == "mine"


def test_an_import_under_another_id_keeps_the_entries(log: brute.Log, other: brute.Log) -> None:
    log.start(id="s").user("one")

    imported(other, exported(log, "s"), id="t")

    assert rows_of(other, "t") == rows_of(log, "s")
    assert [info.id for info in other.sessions()] == ["t"]


def test_an_export_cut_anywhere_imports_nothing(log: brute.Log, other: brute.Log) -> None:
    session = log.start(id="s")
    session.user("one")
    session.user("two")
    data = exported(log, "s")

    for end in range(1, len(data) - 1):
        with pytest.raises(brute.BruteError):
            imported(other, data[:end], source="brute")

    assert other.sessions() == []


def test_an_altered_blob_is_refused(log: brute.Log, other: brute.Log) -> None:
    log.start(id="s").user("Look:", brute.Media(kind="image", data=b"A" * 9_000))
    lines = exported(log, "s").split(b"\n")
    number = next(n for n, line in enumerate(lines) if line.startswith(b'{"blob"'))
    lines[number] = lines[number].replace(b"QUFB", b"QUFC", 1)

    with pytest.raises(ImportFailure, match=r"line 3: the bytes are not those of sha256:"):
        imported(other, b"\n".join(lines))

    assert other.sessions() == []


def test_a_state_that_is_no_record_is_named_by_its_line(log: brute.Log, other: brute.Log) -> None:
    log.start(id="s").user("one")
    lines = exported(log, "s").split(b"\n")
    start = lines[2].index(b'"state":')

    for state in (b"5", b"{}", b"null", b'"a"', b'{"at":1}', b"[" * 100_000):
        broken = lines.copy()
        broken[2] = lines[2][:start] + b'"state":' + state + b"}"
        with pytest.raises(ImportFailure, match=r"^t1\.jsonl, line 3: "):
            imported(other, b"\n".join(broken))

    assert other.sessions() == []


def test_a_row_that_does_not_fit_is_named_by_its_line(log: brute.Log, other: brute.Log) -> None:
    log.start(id="s").user("Look:", brute.Media(kind="image", data=b"A" * 9_000))
    lines = exported(log, "s").split(b"\n")
    media = next(n for n, line in enumerate(lines) if line.startswith(b'{"blob"'))
    another_topic = lines[1].replace(b'"type":"session.opened","s', b'"type":"note.added","s')
    another_position = lines[1].replace(b'"position":0', b'"position":7')

    for number, broken in (
        (2, [lines[0], another_topic, *lines[2:]]),
        (2, [lines[0], another_position, *lines[2:]]),
        (media + 1, lines[:media] + lines[media + 1 :]),
    ):
        with pytest.raises(ImportFailure, match=rf"^t1\.jsonl, line {number}: "):
            imported(other, b"\n".join(broken))

    assert other.sessions() == []


def test_an_export_that_is_more_or_less_than_one_is_refused(
    log: brute.Log, other: brute.Log
) -> None:
    log.start(id="s").user("one")
    data = exported(log, "s")
    head, *entries, end, _ = data.split(b"\n")
    piece = b'{"blob":"sha256:%s","data":"QUFB","more":true}' % (b"0" * 64)

    for lines, found in (
        ([data, data], "line 6: something stands behind the last line"),
        ([data, b"x"], "line 6: something stands behind the last line"),
        ([head, *entries, piece, end], "line 5: the bytes sha256:0+ are not whole"),
        ([head, b'{"brute":"end","entries":0}'], "line 2: the export has no entries"),
    ):
        with pytest.raises(ImportFailure, match=found):
            imported(other, b"\n".join(lines))

    assert other.sessions() == []
    assert imported(other, data + b"\n \n").entries == 2


def test_a_newer_export_says_that_brute_must_be_upgraded(other: brute.Log) -> None:
    data = b'{"brute":"export","version":2,"session":"s","entries":0}\n'

    with pytest.raises(ImportFailure, match="version 2; this brute reads up to 1; upgrade"):
        imported(other, data)


def test_an_unknown_event_goes_through_unread(log: brute.Log, other: brute.Log) -> None:
    log.start(id="s")
    newer = b'{"at":1,"event":{"type":"moon.landed","feet":[1e400,"\\u2028"]},"z":{}}'
    log.events.import_states("s", [(1, "moon.landed", newer)], expect=0)

    imported(other, exported(log, "s"))

    assert rows_of(other, "s")[1][2] == newer


def test_an_export_is_plain_json_lines(log: brute.Log) -> None:
    log.start(id="s", agent="plan").user("Grüße\n")

    head, opened, said, end = map(json.loads, exported(log, "s").splitlines())

    assert head == {
        "brute": "export",
        "version": 1,
        "session": "s",
        "agent": "plan",
        "entries": 2,
    }
    assert opened["type"] == opened["state"]["event"]["type"] == "session.opened"
    assert said["state"]["event"]["message"]["parts"] == [{"type": "text", "text": "Grüße\n"}]
    assert end == {"brute": "end", "entries": 2}


def test_a_critical_event_stays_critical(log: brute.Log, other: brute.Log) -> None:
    log.start(id="s")
    newer = b'{"at":1,"event":{"type":"text.erased","at":0},"critical":true}'
    log.events.import_states("s", [(1, "text.erased", newer)], expect=0)

    imported(other, exported(log, "s"))

    with pytest.raises(brute.CriticalUnknown):
        other.events.append("s", [PromptAppended(message=brute.Message.user("x"))], expect=1)
