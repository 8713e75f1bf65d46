"""The tables of the SQLite store, and the checks before a file is taken for a log."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from brute.events.errors import CorruptStore, ReadOnly, StoreError, shown
from brute.events.store.base import Options
from brute.events.store.sqlite_errors import DRIVER, translated

APPLICATION_ID = 0x42525554
"""`BRUT`, in the file's header: https://sqlite.org/fileformat2.html#application_id"""

LAYOUT = 1
"""Raised when an older version must not write into the file any more."""

SMALLEST = 512
"""Bytes of the smallest page, so of the smallest database. The file is never opened to look into
it: closing it again would let go of the locks that SQLite has on it in this process
(https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_)."""

LOOK = 0.1
"""Seconds between two looks at whether the file is still there, where one at every turn would be
felt: it takes 1.4 us, an append in NORMAL 30."""

TABLES = (
    """CREATE TABLE IF NOT EXISTS stored_events (
  originator_id TEXT NOT NULL,
  originator_version INTEGER NOT NULL,
  topic TEXT NOT NULL,
  state BLOB NOT NULL,
  notification_id INTEGER PRIMARY KEY AUTOINCREMENT,
  UNIQUE (originator_id, originator_version)
)""",
    """CREATE TABLE IF NOT EXISTS sessions (
  id TEXT PRIMARY KEY,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  last INTEGER NOT NULL,
  newest INTEGER NOT NULL,
  link TEXT,
  parent TEXT,
  parent_position INTEGER,
  agent TEXT,
  title TEXT,
  critical TEXT
) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS sessions_newest ON sessions (newest)",
    "CREATE TABLE IF NOT EXISTS blobs (hash TEXT NOT NULL UNIQUE, data BLOB NOT NULL)",
)

_NAMES = {"stored_events", "sessions", "blobs"}
_COLUMNS = ["originator_id", "originator_version", "topic", "state", "notification_id"]


def check_path(path: str, options: Options) -> Options:
    """The options that fit what is at `path`: read-only where it cannot be written.

    Raises `StoreError` where no log can be.
    """
    try:
        return _checked(path, options)
    except OSError as error:  # a name that is too long, a loop of links
        raise StoreError(
            shown(path), f"no file can be there ({error.strerror})", "give another path"
        ) from error


def _checked(path: str, options: Options) -> Options:
    file = Path(path)
    if file.is_dir():
        raise StoreError(path, "this is a folder", "give the path of a file in it")
    if not file.parent.is_dir():
        raise StoreError(path, f"there is no folder {str(file.parent)!r}", "make it first")
    if not file.exists():
        if options.read_only or not options.create:
            raise StoreError(path, "there is no such file", "look at the path, or let it be made")
        if not _writable(file.parent):
            raise ReadOnly(path, "its folder cannot be written", "make the log somewhere else")
        return options
    if 0 < file.stat().st_size < SMALLEST:  # SQLite would take it for an empty file
        raise CorruptStore(path, "the file is not a log", "give the path of a log")
    beside = _writable(file.parent) or Path(f"{path}-wal").exists()
    if not (_writable(file) and beside):
        return replace(options, read_only=True)
    return options


class Whereabouts:
    """Notices that the file of an open log was deleted or replaced.

    SQLite would go on writing into a file that no path leads to any more. While it has the file
    open, no other file is given its inode.
    """

    def __init__(self, path: str) -> None:
        self._where, self._path = path, Path(path).absolute()
        self._file = self._found()
        self._due = 0.0

    def look(self) -> None:
        """Raise `StoreError` unless the file is where it was."""
        self._due = time.monotonic() + LOOK
        found = self._found()
        if found == self._file or found is None or self._file is None:
            return
        happened = "replaced by another" if found else "deleted"
        raise StoreError(
            self._where,
            f"the file was {happened} while the log was open; nothing more is written",
            "put the file back, or open the log again to begin a new one there; what was appended "
            "last may be only in the file that is gone",
        )

    def look_now_and_then(self) -> None:
        """`look`, unless that was a moment ago."""
        if time.monotonic() >= self._due:
            self.look()

    def _found(self) -> tuple[int, ...] | None:
        """What names the file at the path: empty if there is none, None if that is not known."""
        try:
            found = os.stat(self._path)  # noqa: PTH116 - half the time of Path.stat
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError:
            return None
        return found.st_dev, found.st_ino


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def uri_of(path: str, options: Options) -> str:
    """SQLite's URI for the file."""
    file = Path(path).absolute()
    uri = "file:" + quote(os.fsencode(file))
    if not options.read_only:
        return f"{uri}?mode=rwc"
    # Beside a WAL file SQLite keeps a -shm file; where it cannot make one and nobody writes, the
    # file does not change while it is open.
    frozen = not _writable(file.parent) and not Path(f"{file}-wal").exists()
    return f"{uri}?mode=ro&immutable=1" if frozen else f"{uri}?mode=ro"


def prepare(connect: Callable[[], sqlite3.Connection], where: str, options: Options) -> None:
    """Make sure that a log is behind `connect`; make one in an empty file.

    Two processes may do this at once on one new file, and SQLite's busy timeout does not cover
    the switch to WAL, so all of it is tried again until the lock timeout is over.
    """
    deadline = time.monotonic() + options.lock_timeout
    while True:
        try:
            connection = connect()
            try:
                return _prepare(connection, where, options)
            finally:
                connection.close()
        except DRIVER as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            busy = code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or time.monotonic() > deadline:
                raise translated(error, where) from error
        time.sleep(random.uniform(0.005, 0.05))


def _prepare(connection: sqlite3.Connection, where: str, options: Options) -> None:
    state = _recognise(connection, where)
    if state == "ours":
        if not options.read_only:
            connection.execute("PRAGMA journal_mode=WAL")  # a copy by VACUUM INTO is not in WAL
        return
    if options.read_only or (state == "empty" and not options.create):
        raise CorruptStore(where, "there is no log in this file", "give the path of a log")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("BEGIN IMMEDIATE")
    state = _recognise(connection, where)  # again, now that nobody else can make it
    if state == "empty":
        create(connection)
    elif state == "reloaded":
        _sign(connection)
    connection.execute("COMMIT")


def create(connection: sqlite3.Connection) -> None:
    """Make the tables."""
    for statement in TABLES:
        connection.execute(statement)
    _sign(connection)


def _sign(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={LAYOUT}")


def _recognise(connection: sqlite3.Connection, where: str) -> str:
    """`ours`, `empty`, or `reloaded`: ours from a dump, which does not keep the header's ids.

    Raises `CorruptStore` for a database of another program, `StoreError` for a newer layout.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    query = "SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite%'"
    tables = {name for (name,) in connection.execute(query)}
    if application == APPLICATION_ID and version > LAYOUT:
        raise StoreError(
            where,
            f"the log was written by a newer version (layout {version}; this one knows {LAYOUT})",
            "upgrade brute-log",
        )
    if not tables and application in (0, APPLICATION_ID):
        return "empty"
    if tables >= _NAMES:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(stored_events)")]
        if columns == _COLUMNS and application in (0, APPLICATION_ID):
            return "ours" if application else "reloaded"
    some = ", ".join(sorted(tables)[:5])
    raise CorruptStore(
        where,
        f"the database holds something else than a log (tables: {some})",
        "give another path; nothing was written into this one",
    )
