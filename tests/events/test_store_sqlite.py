"""The store in a SQLite file: the contract, other processes, and whatever can go wrong with it."""

from __future__ import annotations

import itertools
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.persistence import IntegrityError, StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore, SQLiteFactory

from brute.events.errors import (
    BruteError,
    Conflict,
    CorruptStore,
    LogClosed,
    ReadOnly,
    StoreBusy,
    StoreError,
    StoreFull,
    UsageError,
)
from brute.events.events import Event, NoteAdded, PromptAppended
from brute.events.log import EventLog
from brute.events.messages import Media, Message
from brute.events.store.sqlite import SQLiteStore
from tests.events import workers
from tests.events.store_contract import Place, StoreContract, notes, texts
from tests.rooms import ROOT


class TestSQLiteStore(StoreContract):
    def make_place(self, folder: Path) -> Place:
        return Place(str(folder / "agent.db"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with two sessions."""
    path = tmp_path / "agent.db"
    with EventLog.open(path) as log:
        log.append("s", notes("a", "b"), expect=-1)
        log.append("t", notes(*map(str, range(200))), expect=-1)
    return path


def unchanged(path: Path) -> bool:
    """Whether the log of the fixture can be read and continued."""
    with EventLog.open(path) as log:
        ok = texts(log.read("s")) == ["a", "b"]
        log.append("s", notes("c"), expect=1)
        return ok and texts(log.read("t")) == [str(n) for n in range(200)]


# -- the table ---------------------------------------------------------------------------------


def test_the_table_can_be_asked_in_sql(path: Path) -> None:
    with EventLog.open(path) as log:
        log.append("s", [PromptAppended(message=Message.user("Hello"))], expect=1)

    query = (
        "SELECT originator_version, json_extract(CAST(state AS TEXT), '$.event.message.role')"
        " FROM stored_events WHERE originator_id='s' AND topic='prompt.appended'"
    )
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(query).fetchall() == [(2, "user")]
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_eventsourcing_library_reads_the_same_rows(path: Path) -> None:
    with EventLog.open(path) as log:
        expected = [(p, topic, state) for _, p, topic, state in log.states("t")]

    plain = SQLiteApplicationRecorder(SQLiteDatastore(str(path), originator_id_type="text"))
    rows = plain.select_events("t", gt=-1, lte=150)

    assert [(r.originator_version, r.topic, r.state) for r in rows] == expected[:151]
    plain.datastore.close()


def test_to_the_eventsourcing_library_the_store_is_a_recorder(path: Path) -> None:
    with EventLog.open(path) as log:
        recorder = log.store
        assert isinstance(recorder, SQLiteApplicationRecorder)
        (state,) = [state for *_, state in log.states("s", upto=0)]
        event = StoredEvent("s", 2, "note.added", state)

        ids = recorder.insert_events([event, StoredEvent("u", 0, "note.added", state)])

        assert ids == [203, 204]
        assert log.last("s") == 2
        assert [info.id for info in log.sessions()] == ["u", "s", "t"]
        assert recorder.select_events("s", gt=1) == [event]
        assert [e.originator_version for e in recorder.select_events("s", desc=True, limit=2)] == [
            2,
            1,
        ]
        assert recorder.max_notification_id() == 204
        found = recorder.select_notifications(200, 10, 203, ["note.added"])
        assert [(n.id, n.originator_id) for n in found] == [
            *[(n, "t") for n in (200, 201, 202)],
            (203, "s"),
        ]
        assert recorder.select_notifications(203, 9, inclusive_of_start=False)[0].id == 204
        assert recorder.insert_events([]) == []
        with pytest.raises(IntegrityError):
            recorder.insert_events([StoredEvent("u", 1, "note.added", state), event])
        assert log.last("u") == 0
        recorder.create_table()
        with pytest.raises(NotImplementedError):
            recorder.subscribe()


def test_the_environment_of_the_process_switches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = (
        *("PERSISTENCE_MODULE", "SQLITE_DBNAME", "CREATE_TABLE", "ORIGINATOR_ID_TYPE"),
        *("APPLICATION_RECORDER_TOPIC", "COMPRESSOR_TOPIC", "CIPHER_TOPIC", "SQLITE_LOCK_TIMEOUT"),
    )
    for name in names:
        monkeypatch.setenv(name, "nonsense")

    with EventLog.open(tmp_path / "agent.db") as log:
        log.append("s", notes("a"), expect=-1)

    assert [file.name for file in tmp_path.iterdir()] == ["agent.db"]


@pytest.mark.parametrize(("word", "number"), [("FULL", 2), ("NORMAL", 1)])
def test_synchronous_is_what_was_asked_for(tmp_path: Path, word: str, number: int) -> None:
    with EventLog.open(tmp_path / "a.db", synchronous=word) as log:  # type: ignore[arg-type]
        store = log.store
        assert isinstance(store, SQLiteStore)
        with closing(store.datastore.pool.connect()) as connection:
            assert connection.execute("PRAGMA synchronous").fetchone() == (number,)


# -- where it is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a?b#c%20&d=e.db", "köln 日本.db", "a'b;--.db", "agent"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    for url in (str(tmp_path / name), tmp_path / name, f"sqlite:///{tmp_path / name}"):
        with EventLog.open(url) as log:
            last = -1 if not list(log.sessions()) else log.last("s")
            log.append("s", notes("a"), expect=last)

    assert [file.name for file in tmp_path.iterdir()] == [name]
    with EventLog.open(tmp_path / name, read_only=True) as log:
        assert log.last("s") == 2


def test_a_relative_path_is_taken_from_where_the_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()

    for url in ("logs/a.db", Path("logs/b.db"), "sqlite:///logs/c.db"):
        EventLog.open(url).close()

    assert sorted(file.name for file in (tmp_path / "logs").iterdir()) == ["a.db", "b.db", "c.db"]


def test_a_log_stays_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with EventLog.open("a.db") as log:
        monkeypatch.chdir(tmp_path / "elsewhere")
        log.append("s", notes("a"), expect=-1)
        assert texts(log.read("s")) == ["a"]

    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    "url", ["postgres://localhost/x", "mysql://x", "file:a.db", "://", "", "a\0b", "sqlite:///"]
)
def test_an_unknown_url_says_what_is_known(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UsageError, match=r"a path, 'sqlite:///PATH' or ':memory:'"):
        EventLog.open(url)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [None, 5, [], b"a.db", object(), "\ud800", Path("\ud800"), ":memory:?x", "sqlite:///:memory:#"],
)
def test_what_names_no_file_opens_none(
    url: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UsageError, match=r"a path, 'sqlite:///PATH' or ':memory:'"):
        EventLog.open(url)

    assert list(tmp_path.iterdir()) == []


def test_a_name_that_no_file_can_have_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no file can be there") as error:
        EventLog.open(tmp_path / ("a" * 5000))

    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    "how",
    [
        *({"synchronous": word} for word in ("OFF", "EXTRA", "full", "", None, 2)),
        *({"lock_timeout": seconds} for seconds in (None, "1", -1, float("nan"), True, 1e9)),
    ],
)
@pytest.mark.parametrize("url", ["agent.db", ":memory:"])
def test_a_log_is_not_opened_with_less_than_was_promised(
    url: str, how: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UsageError, match=next(iter(how))):
        EventLog.open(url, **how)

    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="this is a folder"):
        EventLog.open(tmp_path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no folder .*nowhere"):
        EventLog.open(tmp_path / "nowhere" / "agent.db")


@pytest.mark.parametrize("how", [{"create": False}, {"read_only": True}])
def test_a_missing_file_is_made_only_if_it_may_be(tmp_path: Path, how: dict[str, bool]) -> None:
    with pytest.raises(StoreError, match="no such file"):
        EventLog.open(tmp_path / "agent.db", **how)  # type: ignore[arg-type]
    (tmp_path / "agent.db").touch()
    with pytest.raises(CorruptStore, match="no log in this file"):
        EventLog.open(tmp_path / "agent.db", **how)  # type: ignore[arg-type]

    assert (tmp_path / "agent.db").read_bytes() == b""
    EventLog.open(tmp_path / "agent.db").close()


# -- a file that goes away while the log is open ---------------------------------------------------


def _delete(path: Path) -> None:
    for file in path.parent.glob("agent.db*"):
        file.unlink()


def _replace(path: Path) -> None:
    _delete(path)
    with EventLog.open(path) as other:
        other.append("other", notes("a"), expect=-1)


def until_it_fails(act: Callable[[], object]) -> None:
    """Do it again and again, for at most ten seconds."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        act()


@pytest.mark.parametrize(
    ("happens", "word"), [(_delete, "deleted"), (_replace, "replaced by another")]
)
def test_nothing_is_acknowledged_into_a_file_that_is_gone(
    path: Path, happens: Callable[[Path], None], word: str
) -> None:
    with EventLog.open(path) as log:
        log.append("s", notes("c"), expect=1)
        happens(path)

        for _ in range(2):
            with pytest.raises(StoreError, match=rf"agent\.db: the file was {word} while"):
                log.append("s", notes("d"), expect=2)
        with pytest.raises(StoreError, match=word):
            log.append("s~1", notes("d"), expect=-1)

    assert path.exists() == (happens is _replace)
    if path.exists():
        with EventLog.open(path) as other:
            assert [info.id for info in other.sessions()] == ["other"]


@pytest.mark.parametrize("written", [True, False])
def test_a_file_that_is_gone_is_noticed_soon_whatever_is_done(path: Path, written: bool) -> None:
    with EventLog.open(path, synchronous="NORMAL") as log, EventLog.open(path) as follower:
        last = itertools.count(1)
        if written:
            log.append("s", notes("x"), expect=next(last))
        following = follower.follow(timeout=10)
        next(following)
        _delete(path)

        with pytest.raises(StoreError, match="deleted"):
            until_it_fails(lambda: log.append("s", notes("x"), expect=next(last)))
        with pytest.raises(StoreError, match="deleted"):
            until_it_fails(lambda: list(log.read("s")))
        with pytest.raises(StoreError, match="deleted"):
            list(following)

    assert not path.exists()


def test_a_file_that_was_put_back_is_the_log_again(path: Path) -> None:
    with EventLog.open(path) as log:
        log.append("s", notes("c"), expect=1)
        path.rename(path.with_name("away.db"))
        with pytest.raises(StoreError, match="deleted"):
            log.append("s", notes("d"), expect=2)

        path.with_name("away.db").rename(path)

        log.append("s", notes("d"), expect=2)
        assert texts(log.read("s")) == ["a", "b", "c", "d"]


# -- files that are no log -------------------------------------------------------------------------


def _text(path: Path) -> None:
    path.write_text("Dear diary, " * 1000)


def _garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(40_000))


def _another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")


def _another_application_id(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id=42")
        connection.execute("CREATE TABLE stored_events (a)")


def _plain_eventsourcing(path: Path) -> None:
    factory = SQLiteFactory({"SQLITE_DBNAME": str(path)})
    factory.application_recorder()
    factory.close()


@pytest.mark.parametrize(
    "make", [_text, _garbage, _another_program, _another_application_id, _plain_eventsourcing]
)
def test_what_is_no_log_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "agent.db"
    make(path)
    before = path.read_bytes()

    for _ in range(2):
        with pytest.raises(CorruptStore, match=r"agent\.db: .*; "):
            EventLog.open(path)

    assert path.read_bytes() == before


def test_the_log_of_a_newer_version_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version=2")
    before = path.read_bytes()

    with pytest.raises(StoreError, match="newer version"):
        EventLog.open(path)

    assert path.read_bytes() == before


def test_a_log_cut_short_is_said_to_be_damaged(path: Path) -> None:
    whole = path.read_bytes()

    for size in range(1, len(whole), 997):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptStore):
            read_everything(path)
        assert path.read_bytes() == whole[:size]

    path.write_bytes(whole)
    assert unchanged(path)


@pytest.mark.parametrize("seed", range(60))
def test_a_log_with_damaged_bytes_never_fails_in_words_that_are_not_ours(
    path: Path, seed: int
) -> None:
    rnd = random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(rnd.choice((1, 5, 50))):
        data[rnd.randrange(rnd.choice((100, 4096, len(data))))] = rnd.randrange(256)
    path.write_bytes(data)

    with suppress(BruteError):
        read_everything(path)
    with suppress(BruteError), EventLog.open(path) as log:
        log.append(log.new_id(), notes("a"), expect=-1)
    with suppress(BruteError):
        read_everything(path)


def read_everything(path: Path) -> None:
    """All that can be read of a log, in every way."""
    with EventLog.open(path) as log:
        for info in log.sessions():
            list(log.read(info.id))
            list(log.read_back(info.id))
            list(log.states(info.id))
            list(log.blobs(info.id))
        list(log.follow(timeout=0))


def test_a_fork_of_a_damaged_log_fails_or_does_no_harm(tmp_path: Path) -> None:
    path, damaged = tmp_path / "agent.db", tmp_path / "damaged.db"
    with EventLog.open(path) as log:
        for session in "st":
            log.append(session, notes(*(str(n) * 30 for n in range(60))), expect=-1)

    def what_can_be_read() -> dict[str, object]:
        found: dict[str, object] = {}
        for session in "st":
            try:
                with EventLog.open(damaged, read_only=True) as log:
                    found[session] = texts(log.read(session))
            except BruteError as error:
                found[session] = type(error)
        return found

    forked = failed = 0
    for page in range(1, path.stat().st_size // 4096):
        shutil.copy(path, damaged)
        with damaged.open("r+b") as file:
            file.seek(page * 4096)
            file.write(random.Random(page).randbytes(4096))
        before = what_can_be_read()
        try:
            with EventLog.open(damaged) as log:
                log.fork("t", 59)
            forked += 1
        except BruteError:
            failed += 1

        assert what_can_be_read() == before

    assert forked
    assert failed


def test_no_fork_at_an_entry_that_is_gone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM stored_events WHERE originator_version=1")
        connection.commit()

    with EventLog.open(path) as log:
        with pytest.raises(CorruptStore, match="s: entries from position 1 on are missing"):
            log.fork("s", 1)
        assert log.fork("s", 0, id="early") == "early"
        assert len(list(log.sessions())) == 3


def test_a_garbage_state_is_named_by_its_place(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "UPDATE stored_events SET state='{\"at\":1,' WHERE originator_id='s'"
            " AND originator_version=1"
        )
        connection.commit()

    with EventLog.open(path) as log:
        assert texts(log.read("s", upto=0)) == ["a"]
        for ask in (log.read("s"), log.read_back("s"), log.follow("s", timeout=0)):
            with pytest.raises(CorruptStore, match="s@1"):
                list(ask)
        assert len(list(log.states("s"))) == 2
        assert len(list(log.read("t"))) == 200


def test_missing_rows_are_not_passed_over(path: Path) -> None:
    with EventLog.open(path) as log:
        child = log.fork("t", 100)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "DELETE FROM stored_events WHERE originator_id='t' AND originator_version>=90"
        )
        connection.execute("DELETE FROM stored_events WHERE originator_version=0")
        connection.commit()

    with EventLog.open(path) as log:
        with pytest.raises(CorruptStore, match="from position 0 on are missing"):
            list(log.read("s"))
        with pytest.raises(CorruptStore, match="from position 90 on are missing"):
            list(log.read(child, after=0))


def test_rows_that_somebody_else_wrote_are_not_built_upon(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT INTO stored_events (originator_id, originator_version, topic, state)"
            " SELECT originator_id, 2, topic, state FROM stored_events WHERE originator_id='s'"
            " AND originator_version=1"
        )
        connection.commit()

    with EventLog.open(path) as log, pytest.raises(CorruptStore, match="ends at 1"):
        log.append("s", notes("c"), expect=1)


# -- files that cannot be written ------------------------------------------------------------------


@contextmanager
def somebody(folder: Path) -> Iterator[None]:
    """As a user to whom the rights of files apply, which they do not to root."""
    if os.geteuid() != 0:
        yield
        return
    for file in (folder, *folder.iterdir()):
        os.chown(file, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="brute-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_file_can_be_read_and_says_that_it_cannot_be_written(
    open_folder: Path, path: Path
) -> None:
    copy = open_folder / "agent.db"
    shutil.copy(path, copy)
    copy.chmod(0o444)

    with somebody(open_folder), EventLog.open(copy) as log:
        assert log.read_only
        assert texts(log.read("s")) == ["a", "b"]
        for session, expect in (("s", 1), ("new", -1), ("s~0", -1)):
            with pytest.raises(ReadOnly, match=r"agent\.db: .*reading only"):
                log.append(session, notes("c"), expect=expect)

    assert unchanged(copy)


def test_a_log_in_a_read_only_folder_can_be_read(open_folder: Path, path: Path) -> None:
    copy = open_folder / "agent.db"
    shutil.copy(path, copy)

    with somebody(open_folder):
        open_folder.chmod(0o555)
        with EventLog.open(copy) as log:
            assert texts(log.read("s")) == ["a", "b"]
            with pytest.raises(ReadOnly):
                log.append("s", notes("c"), expect=1)
        with pytest.raises(ReadOnly, match="folder cannot be written"):
            EventLog.open(open_folder / "new.db")
        open_folder.chmod(0o755)

    assert unchanged(copy)


def test_a_file_that_cannot_be_read_is_said_to_be_so(open_folder: Path, path: Path) -> None:
    copy = open_folder / "agent.db"
    shutil.copy(path, copy)
    copy.chmod(0)

    with somebody(open_folder), pytest.raises(StoreError, match="cannot be opened"):
        EventLog.open(copy)


def test_a_log_opened_for_reading_is_not_written(path: Path) -> None:
    before = path.read_bytes()

    with EventLog.open(path, read_only=True) as log:
        assert texts(log.read("s")) == ["a", "b"]
        with pytest.raises(ReadOnly, match="reading only"):
            log.append("s", notes("c"), expect=1)
        with pytest.raises(ReadOnly, match="reading only"):
            log.drop("s~0")
        with EventLog.open(path) as writer:
            writer.append("s", notes("c"), expect=1)
            assert texts(log.read("s")) == ["a", "b", "c"]
            assert log.read_only
            assert not writer.read_only

    assert path.read_bytes()[:16] == before[:16]


# -- no room ---------------------------------------------------------------------------------------


def large(size: int) -> list[Event]:
    """An event of about `size` bytes."""
    return [NoteAdded(text="x" * size)]


def fill(log: EventLog) -> int:
    """Append until there is no room; the last position that was acknowledged."""
    last = log.append("full", notes("begin"), expect=-1)[-1].position
    for size in (100_000, 1_000, 1):
        with suppress(StoreFull):
            for _ in range(10_000):
                last = log.append("full", large(size), expect=last)[-1].position
        with pytest.raises(StoreFull, match="no room"):
            log.append("full", large(size), expect=last)
    return last


def goes_on(log: EventLog, last: int) -> None:
    """Everything acknowledged is there, and the log works as before."""
    assert [e.position for e in log.read("full")] == list(range(last + 1))
    log.append("full", large(500_000), expect=last)
    assert texts(log.read("s")) == ["a", "b"]


def test_a_limit_on_the_size_of_files_is_an_error_and_then_the_log_goes_on(path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with EventLog.open(path, synchronous="NORMAL") as log:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
        try:
            last = fill(log)
            assert texts(log.read("s")) == ["a", "b"]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        goes_on(log, last)
    assert unchanged(path)


def test_a_full_disk_is_an_error_and_then_the_log_goes_on(path: Path, small_disk: Path) -> None:
    shutil.copy(path, small_disk / "agent.db")
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 12_000_000)

    with EventLog.open(small_disk / "agent.db") as log:
        last = fill(log)
        with EventLog.open(small_disk / "agent.db") as other:
            assert other.last("full") == last
        ballast.unlink()
        goes_on(log, last)

    assert unchanged(small_disk / "agent.db")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB; where none can be mounted, SQLite's own limit stands in for it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount a small disk; the limit on file sizes is tested")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


# -- other writers ---------------------------------------------------------------------------------


def test_a_lock_that_is_never_let_go_is_an_error_and_then_the_log_goes_on(path: Path) -> None:
    with (
        EventLog.open(path, lock_timeout=0.1) as log,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            with pytest.raises(StoreBusy, match="another writer"):
                log.append("s", notes("x"), expect=1)
        assert texts(log.read("s")) == ["a", "b"]
        other.execute("ROLLBACK")

        log.append("s", notes("c"), expect=1)

        assert texts(log.read("s")) == ["a", "b", "c"]


def test_a_short_lock_is_waited_for(path: Path) -> None:
    with (
        EventLog.open(path) as log,
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.1, other.execute, args=("ROLLBACK",))
        timer.start()

        log.append("s", notes("c"), expect=1)

        timer.join()
        assert log.last("s") == 2


def test_processes_never_lose_an_update_of_another(path: Path) -> None:
    positions = workers.together(workers.race, 3, str(path), "s", 40)

    with EventLog.open(path) as log:
        entries = list(log.read("s", after=1))
    assert [e.position for e in entries] == list(range(2, 122))
    for number, own in enumerate(positions):
        assert own == [e.position for e in entries if texts([e]) == [str(number)]]


def test_many_processes_can_make_one_new_log(tmp_path: Path) -> None:
    path = tmp_path / "new.db"

    assert workers.together(workers.open_and_append, 8, str(path)) == ["ok"] * 8

    with EventLog.open(path) as log:
        assert len(list(log.sessions())) == 8


def test_a_follower_sees_the_commits_of_another_process(path: Path) -> None:
    processes = workers.context()
    writer = processes.Process(target=workers.append_slowly, args=(1, str(path), "s", 60))
    with EventLog.open(path) as log:
        follower = log.follow("s", timeout=30)
        everything = log.follow(after=log.head(), timeout=30)
        writer.start()

        own = [next(follower) for _ in range(61)]
        all_of_it = [next(everything) for _ in range(59)]
        writer.join(30)

    assert texts(own) == ["a", "b", *[str(n) for n in range(2, 61)]]
    assert texts(all_of_it) == [str(n) for n in range(2, 61)]
    assert writer.exitcode == 0


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_log_does_not_pass_to_a_forked_child(path: Path) -> None:
    with EventLog.open(path) as log:
        log.append("s", notes("c"), expect=1)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover - in the child
            said = b"nothing was raised"
            try:
                log.append("s", notes("d"), expect=2)
            except LogClosed as error:
                said = str(error).encode()
            finally:
                os.write(writer, said)
                os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        with os.fdopen(reader, "rb") as pipe:
            assert b"the process that this one was forked from" in pipe.read()

        log.append("s", notes("d"), expect=2)
        assert texts(log.read("s")) == ["a", "b", "c", "d"]


# -- copies ----------------------------------------------------------------------------------------


def _vacuum(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("VACUUM")
    shutil.copy(source, target)


def _vacuum_into(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("VACUUM INTO ?", (str(target),))


def _backup(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as two:
        one.backup(two)


def _dump(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as two:
        two.executescript("\n".join(one.iterdump()))


@pytest.mark.parametrize("copy", [_vacuum, _vacuum_into, _backup, _dump])
def test_a_copy_is_the_same_log_with_the_same_order_of_commits(
    path: Path, tmp_path: Path, copy: Callable[[Path, Path], None]
) -> None:
    with EventLog.open(path) as log:
        log.append("s", [PromptAppended(message=Message.user(image()))], expect=1)
        log.append("s~0", notes("x"), expect=-1)
        log.drop("s~0")
        before = list(log.follow(timeout=0)), list(log.sessions())

    copy(path, tmp_path / "copy.db")

    with EventLog.open(tmp_path / "copy.db") as log:
        assert (list(log.follow(timeout=0)), list(log.sessions())) == before
        head = log.head()
        log.append("s", notes("c"), expect=2)
        assert log.head() > head + 1, "the id of the dropped row was given out again"
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def image() -> Media:
    """A media part whose bytes stand beside the log."""
    return Media(kind="image", data=b"x" * 10_000)


# -- size ------------------------------------------------------------------------------------------


def stored(path: Path) -> int:
    """Bytes of the file once the write-ahead log is in it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


@pytest.mark.parametrize("length", [10, 10_000])
def test_a_thousand_forks_add_less_than_a_kilobyte_each(tmp_path: Path, length: int) -> None:
    path = tmp_path / "agent.db"
    with EventLog.open(path, synchronous="NORMAL") as log:
        session = log.new_id()
        log.append(session, [NoteAdded(text="x" * 400)] * length, expect=-1)
        before = stored(path)

        for n in range(1000):
            log.fork(session, n % length)

        assert (stored(path) - before) / 1000 <= 1024


def test_size_grows_in_line_with_the_number_of_events(tmp_path: Path) -> None:
    sizes: list[int] = []
    with EventLog.open(tmp_path / "agent.db", synchronous="NORMAL") as log:
        session, last = log.new_id(), -1
        for _ in range(2):
            for _ in range(100):
                batch: list[Event] = [NoteAdded(text="x" * 300)] * 50
                last = log.append(session, batch, expect=last)[-1].position
            sizes.append(stored(tmp_path / "agent.db"))

    assert sizes[1] / sizes[0] <= 2.05


def test_large_media_are_stored_once(tmp_path: Path) -> None:
    event = PromptAppended(message=Message.user(Media(kind="image", data=b"x" * 1_000_000)))
    with EventLog.open(tmp_path / "agent.db", synchronous="NORMAL") as log:
        for n in range(20):
            log.append("s", [event], expect=n - 1)

    assert stored(tmp_path / "agent.db") < 1_200_000


# -- imports ---------------------------------------------------------------------------------------


def test_the_eventsourcing_library_is_loaded_when_a_log_is_opened_and_not_before() -> None:
    code = (
        "import sys, brute.events.log as log; assert 'eventsourcing' not in sys.modules;"
        " log.EventLog.open(':memory:').close(); assert 'eventsourcing' in sys.modules"
    )

    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_an_update_lost_between_two_logs_is_a_conflict(path: Path) -> None:
    with EventLog.open(path) as one, EventLog.open(path) as two:
        one.append("s", notes("c"), expect=1)
        with pytest.raises(Conflict):
            two.append("s", notes("c"), expect=1)
