"""The store in one SQLite file, on the recorder layer of the eventsourcing library.

The library's table keeps its four columns and gains an explicit notification id, because a bare
rowid is renumbered by a dump and given out again after a deletion. Beside it stand `sessions`, one
row a session, kept in the transaction that appends, and `blobs`.

Against the library's own recorder: one pinned writer connection, cached statements, BEGIN
IMMEDIATE, many rows in one INSERT, plain tuples out. Figures: docs/decisions/0003-the-store.md.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
from eventsourcing.persistence import IntegrityError as LibraryIntegrityError
from eventsourcing.persistence import Notification as LibraryNotification
from eventsourcing.persistence import OperationalError as LibraryOperationalError
from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import (
    SQLiteApplicationRecorder,
    SQLiteConnection,
    SQLiteConnectionPool,
    SQLiteDatastore,
    SQLiteFactory,
)
from eventsourcing.utils import Environment

from brute.events.errors import LogClosed, ReadOnly
from brute.events.store import sqlite_layout as layout
from brute.events.store.base import (
    PLAIN,
    Cells,
    Commit,
    Notification,
    Options,
    SessionInfo,
    StateRow,
    TopicRow,
)
from brute.events.store.sqlite_errors import DRIVER, translated

if TYPE_CHECKING:
    from eventsourcing.persistence import Subscription

WIDTHS = (128, 64, 32, 16, 8, 4, 2, 1)
"""Rows of the INSERT statements a batch is cut into."""

POLL = 0.02
"""Seconds between two looks for the commits of another process."""

IDLE_READERS = 8
"""Reader connections kept open when nobody reads."""

_INSERT = {
    width: "INSERT INTO stored_events (originator_id, originator_version, topic, state) VALUES "
    + ",".join(["(?,?,?,?)"] * width)
    for width in WIDTHS
}
_INSERT_ONE = _INSERT[1]

# One statement checks the expected position and moves it: no row changed means it was wrong.
_TOUCH = "UPDATE sessions SET last=?, updated=?, newest=last_insert_rowid() WHERE id=? AND last=?"
_TOUCH_PLAIN = _TOUCH + " AND critical IS NULL"
_OPEN = (
    "INSERT INTO sessions (id, created, updated, last, newest, link, parent, parent_position,"
    " agent, title, critical) VALUES (?,?,?,?,last_insert_rowid(),?,?,?,?,?,?)"
)
_SESSION = (
    "SELECT id, created, updated, last, newest, link, parent, parent_position, agent, title,"
    " critical FROM sessions"
)
_SESSION_FIELDS = (
    *("id", "created", "updated", "last", "order"),
    *("link", "parent", "parent_position", "agent", "title"),
)
_RANGE = " FROM stored_events WHERE originator_id=? AND originator_version BETWEEN ? AND ?"
_STATES = f"SELECT originator_version, state{_RANGE} ORDER BY originator_version LIMIT ?"
_STATES_BACK = f"SELECT originator_version, state{_RANGE} ORDER BY originator_version DESC LIMIT ?"
_TOPICS = f"SELECT originator_version, topic, state{_RANGE} ORDER BY originator_version LIMIT ?"
_LAST = "SELECT max(originator_version) FROM stored_events WHERE originator_id=?"
_NOTIFICATIONS = (
    "SELECT notification_id, originator_id, originator_version, topic, state FROM stored_events"
)


class Pool(SQLiteConnectionPool):
    """The library's pool, with connections set up for this store."""

    def __init__(self, uri: str, options: Options) -> None:
        super().__init__(db_name=uri, pool_timeout=options.lock_timeout)
        self.options = options

    def _create_connection(self) -> SQLiteConnection:
        connection = self.connect()
        connection.row_factory = sqlite3.Row
        return SQLiteConnection(connection, max_age=self.max_age)

    def connect(self) -> sqlite3.Connection:
        """A connection that gives tuples and commits when told. Raises `sqlite3.Error`."""
        connection = sqlite3.connect(
            self.db_name,
            uri=True,
            timeout=self.options.lock_timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=128,
        )
        try:
            connection.execute(f"PRAGMA synchronous={self.options.synchronous}")
            connection.execute("PRAGMA cache_size=-16384")  # KB
        except BaseException:
            connection.close()
            raise
        return connection


class Datastore(SQLiteDatastore):
    """The library's datastore over our pool."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool.db_name, originator_id_type="text")
        self.pool: Pool = pool


class Factory(SQLiteFactory):
    """The library's factory; it looks at no variable of the process environment."""

    def __init__(self, pool: Pool, where: str, file: layout.Whereabouts) -> None:
        environment = {
            self.SQLITE_DBNAME: pool.db_name,
            self.ORIGINATOR_ID_TYPE: "text",
            self.CREATE_TABLE: "no",
        }
        super().__init__(Environment("", environment))
        self.datastore = self.ours = Datastore(pool)
        self.where, self.file = where, file

    def application_recorder(self) -> SQLiteStore:
        """The recorder, which is the store."""
        return SQLiteStore(self.ours, self.where, self.file)


class SQLiteStore(SQLiteApplicationRecorder):
    """A `Store`, and to the eventsourcing library an application recorder over the same rows."""

    datastore: Datastore

    def __init__(
        self, datastore: Datastore, where: str, file: layout.Whereabouts | None = None
    ) -> None:
        super().__init__(datastore)
        self.where = where
        self._file = file
        self.look = file.look_now_and_then if file is not None else _nothing
        # FULL promises that what is acknowledged stays, so it looks each time: 1 % of a commit.
        full = file is not None and datastore.pool.options.synchronous == "FULL"
        self._look_to_write = file.look if file is not None and full else self.look
        self.read_only = datastore.pool.options.read_only
        self._closed: str | None = None
        self._lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._readers: deque[sqlite3.Connection] = deque()
        self._watches: tuple[SQLiteWatch, ...] = ()
        _open_stores.add(self)

    def construct_create_table_statements(self) -> list[str]:
        """The tables of the layout."""
        return list(layout.TABLES)

    @property
    def closed(self) -> bool:
        """See `Store.closed`."""
        return self._closed is not None

    # -- writing -----------------------------------------------------------------------------

    def commit(
        self, stream: str, expect: int, cells: Cells, last: int, at: int, *, extra: Commit = PLAIN
    ) -> bool:
        """See `Store.commit`."""
        with self._lock:
            writer = self._writer or self._open_writer()
            self._look_to_write()
            try:
                execute = writer.execute
                execute("BEGIN IMMEDIATE")
                if len(cells) == 4:
                    execute(_INSERT_ONE, cells)
                else:
                    _insert(writer, cells)
                if extra is PLAIN:
                    touch = execute(_TOUCH_PLAIN, (last, at, stream, expect))
                    ok = touch.rowcount == 1
                else:
                    ok = _commit_extra(writer, stream, expect, (last, at), extra)
                execute("COMMIT" if ok else "ROLLBACK")
            except (sqlite3.IntegrityError, UnicodeEncodeError, OverflowError):
                self._roll_back(writer)  # taken, or a place that no stream has
                return False
            except BaseException as error:
                self._roll_back(writer)
                if isinstance(error, DRIVER):
                    raise translated(error, self.where) from error
                raise
        if self._watches:
            self._wake()
        return ok

    def append_sibling(self, stream: str, expect: int, cells: Cells) -> bool:
        """See `Store.append_sibling`."""
        with self._lock:
            writer = self._writer or self._open_writer()
            self._look_to_write()
            try:
                writer.execute("BEGIN IMMEDIATE")
                found = writer.execute(_LAST, (stream,)).fetchone()[0]
                ok = (-1 if found is None else found) == expect
                if ok:
                    _insert(writer, cells)
                writer.execute("COMMIT" if ok else "ROLLBACK")
            except BaseException as error:
                self._roll_back(writer)
                if isinstance(error, DRIVER):
                    raise translated(error, self.where) from error
                raise
        if self._watches:
            self._wake()
        return bool(ok)

    def drop(self, stream: str) -> None:
        """See `Store.drop`."""
        with self._lock:
            writer = self._writer or self._open_writer()
            self._look_to_write()
            try:
                writer.execute("DELETE FROM stored_events WHERE originator_id=?", (stream,))
            except DRIVER as error:
                raise translated(error, self.where) from error

    def _open_writer(self) -> sqlite3.Connection:
        if self._closed:
            raise LogClosed(self.where, self._closed)
        if self.read_only:
            raise ReadOnly(
                self.where,
                "the log is open for reading only",
                "open it without read_only, as a user who may write the file and its folder",
            )
        self._writer = self._connect()
        return self._writer

    def _connect(self) -> sqlite3.Connection:
        if self._file is not None:
            self._file.look()  # where there is none, SQLite would make one
        try:
            return self.datastore.pool.connect()
        except DRIVER as error:
            raise translated(error, self.where) from error

    def _roll_back(self, writer: sqlite3.Connection) -> None:
        # A connection that cannot roll back is given up; the next commit opens a new one.
        try:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
        except DRIVER:
            self._writer = None
            writer.close()

    def _wake(self) -> None:
        for watch in self._watches:
            watch.wake()

    # -- reading -----------------------------------------------------------------------------

    def _select(self, sql: str, parameters: Sequence[str | int]) -> list[Any]:
        try:
            reader = self._readers.pop()
        except IndexError:
            reader = self._open_reader()
        try:
            self.look()
            rows = reader.execute(sql, parameters).fetchall()
        except BaseException as error:
            reader.close()
            if isinstance(error, DRIVER):
                raise translated(error, self.where) from error
            raise
        if self._closed or len(self._readers) >= IDLE_READERS:
            reader.close()
        else:
            self._readers.append(reader)
        return rows

    def _open_reader(self) -> sqlite3.Connection:
        if self._closed:
            raise LogClosed(self.where, self._closed)
        return self._connect()

    def states(self, stream: str, low: int, high: int, limit: int) -> list[StateRow]:
        """See `Store.states`."""
        return self._select(_STATES, (stream, low, high, limit))

    def states_back(self, stream: str, low: int, high: int, limit: int) -> list[StateRow]:
        """See `Store.states_back`."""
        return self._select(_STATES_BACK, (stream, low, high, limit))

    def topics(self, stream: str, low: int, high: int, limit: int) -> list[TopicRow]:
        """See `Store.topics`."""
        return self._select(_TOPICS, (stream, low, high, limit))

    def last(self, stream: str) -> int:
        """See `Store.last`."""
        found = self._select(_LAST, (stream,))[0][0]
        return -1 if found is None else found

    def notifications(self, after: int, limit: int) -> list[Notification]:
        """See `Store.notifications`."""
        where = " WHERE notification_id>? ORDER BY notification_id LIMIT ?"
        return self._select(_NOTIFICATIONS + where, (after, limit))

    def head(self) -> int:
        """See `Store.head`."""
        return self._select("SELECT max(notification_id) FROM stored_events", ())[0][0] or 0

    def session(self, id: str) -> SessionInfo | None:
        """See `Store.session`."""
        rows = self._select(f"{_SESSION} WHERE id=?", (id,))
        return _info(rows[0]) if rows else None

    def sessions(self, before: int | None, limit: int) -> list[SessionInfo]:
        """See `Store.sessions`."""
        where = " WHERE newest<? ORDER BY newest DESC LIMIT ?"
        rows = self._select(_SESSION + where, (2**63 - 1 if before is None else before, limit))
        return [_info(row) for row in rows]

    def matching(self, address: str, limit: int) -> list[str]:
        """See `Store.matching`."""
        sql = (
            "SELECT id FROM sessions WHERE id>=? AND id<?||char(1114111)"
            " UNION SELECT id FROM sessions WHERE substr(id,-length(?))=? LIMIT ?"
        )
        return [row[0] for row in self._select(sql, (*[address] * 4, limit))]

    def blob(self, hash: str) -> bytes | None:
        """See `Store.blob`."""
        rows = self._select("SELECT data FROM blobs WHERE hash=?", (hash,))
        return rows[0][0] if rows else None

    # -- following and closing ---------------------------------------------------------------

    def watch(self) -> SQLiteWatch:
        """See `Store.watch`."""
        return self._watching(SQLiteWatch(self, self._open_reader()))

    def _watching(self, watch: SQLiteWatch) -> SQLiteWatch:
        with self._lock:
            self._watches = (*self._watches, watch)
        return watch

    def forget(self, watch: SQLiteWatch) -> None:
        """Wake `watch` no more."""
        with self._lock:
            self._watches = tuple(w for w in self._watches if w is not watch)

    def close(self) -> None:
        """See `Store.close`."""
        with self._lock:
            self._closed = self._closed or "the log is closed"
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.close()
            with suppress(IndexError):  # other threads may take some meanwhile
                while True:
                    self._readers.pop().close()
        self._wake()
        self.datastore.close()

    def abandon(self) -> None:
        """In a forked child: touch no connection of the parent's, and say so from now on."""
        self._closed = "the log was opened in the process that this one was forked from"
        self._abandoned = (self._writer, self._readers)  # kept, for closing them is touching them
        self._writer, self._readers = None, deque()
        self._lock = threading.Lock()  # another thread of the parent may have held it

    # -- what the eventsourcing library asks of a recorder -------------------------------------

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Insert events of the library's kind; sessions rows follow. Checks uniqueness only."""
        if not stored_events:
            return []
        at = time.time_ns() // 1_000_000
        ids: list[int] = []
        with self._lock:
            writer = self._writer or self._open_writer()
            self._look_to_write()
            try:
                writer.execute("BEGIN IMMEDIATE")
                for event in stored_events:
                    stream, position = _text_id(event.originator_id), event.originator_version
                    row = (stream, position, event.topic, event.state)
                    ids.append(writer.execute(_INSERT_ONE, row).lastrowid or 0)
                    if not _is_sibling(stream):
                        writer.execute(_UPSERT, (stream, at, at, position))
                writer.execute("COMMIT")
            except BaseException as error:
                self._roll_back(writer)
                if isinstance(error, sqlite3.IntegrityError):
                    raise LibraryIntegrityError(error) from error
                if isinstance(error, DRIVER):
                    raise LibraryOperationalError(error) from error
                raise
        self._wake()
        return ids

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """The library's events of one stream."""
        stream = _text_id(originator_id)
        low = -(2**63) if gt is None else gt + 1
        high = 2**63 - 1 if lte is None else lte
        order = "DESC" if desc else "ASC"
        sql = f"SELECT originator_version, topic, state{_RANGE} ORDER BY originator_version {order}"
        rows = self._select(f"{sql} LIMIT ?", (stream, low, high, -1 if limit is None else limit))
        return [StoredEvent(stream, *row) for row in rows]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[LibraryNotification]:
        """The library's notifications, in commit order."""
        first = 0 if start is None else start if inclusive_of_start else start + 1
        wanted = f" AND topic IN ({','.join('?' * len(topics))})" if topics else ""
        sql = f"{_NOTIFICATIONS} WHERE notification_id BETWEEN ? AND ?{wanted}"
        last = 2**63 - 1 if stop is None else stop
        rows = self._select(
            f"{sql} ORDER BY notification_id LIMIT ?", (first, last, *topics, limit)
        )
        return [
            LibraryNotification(
                id=number,
                originator_id=stream,
                originator_version=position,
                topic=topic,
                state=state,
            )
            for number, stream, position, topic, state in rows
        ]

    def max_notification_id(self) -> int | None:  # type: ignore[override] # as in its base's base
        """The highest notification id, or None in an empty store."""
        return self.head() or None

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[SQLiteApplicationRecorder]:
        """Not offered: `EventLog.follow` is."""
        raise NotImplementedError("follow a log with EventLog.follow")


class SQLiteWatch:
    """Woken at once by a commit of this process, within `POLL` seconds by one of another.

    `PRAGMA data_version` of one connection changes when any other connection has committed; it
    costs about 3 us.
    """

    def __init__(self, store: SQLiteStore, connection: sqlite3.Connection | None) -> None:
        self._store, self._connection = store, connection
        self._event = threading.Event()
        self._event.set()  # whoever begins to watch has not looked yet
        self._version: int | None = None
        self.wake = self._event.set

    def changed(self) -> bool:
        """See `Watch.changed`."""
        changed = self._event.is_set()
        self._event.clear()
        if self._connection is not None:
            self._store.look()
            try:
                version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            except DRIVER as error:
                raise translated(error, self._store.where) from error
            changed = changed or version != self._version
            self._version = version
        return changed

    def wait(self, timeout: float) -> bool:
        """See `Watch.wait`."""
        deadline = time.monotonic() + timeout
        while not self.changed():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._event.wait(min(left, POLL))
        return True

    def close(self) -> None:
        """See `Watch.close`."""
        self._store.forget(self)
        if self._connection is not None:
            self._connection.close()


_UPSERT = (
    "INSERT INTO sessions (id, created, updated, last, newest) VALUES (?,?,?,?,last_insert_rowid())"
    " ON CONFLICT (id) DO UPDATE SET updated=excluded.updated, newest=excluded.newest,"
    " last=max(last, excluded.last)"
)


def _insert(writer: sqlite3.Connection, cells: Cells) -> None:
    done, end = 0, len(cells)
    for width in WIDTHS:
        step = 4 * width
        while end - done >= step:
            writer.execute(_INSERT[width], cells[done : done + step])
            done += step


def _commit_extra(
    writer: sqlite3.Connection, stream: str, expect: int, end: tuple[int, int], extra: Commit
) -> bool:
    """The session row of a commit that is not plain, and its blobs."""
    critical = msgspec.json.encode(extra.critical).decode() if extra.critical else None
    last, at = end
    if (opening := extra.opening) is not None:
        origin = (opening.link, opening.parent, opening.parent_position)
        about = (opening.agent, opening.title, critical)
        writer.execute(_OPEN, (stream, opening.created, at, last, *origin, *about))
    else:
        touch = _TOUCH if extra.despite_critical else _TOUCH_PLAIN
        if writer.execute(touch, (last, at, stream, expect)).rowcount != 1:
            return False
        if critical:
            writer.execute("UPDATE sessions SET critical=? WHERE id=?", (critical, stream))
    if extra.blobs:
        statement = "INSERT INTO blobs (hash, data) VALUES (?,?) ON CONFLICT (hash) DO NOTHING"
        writer.executemany(statement, extra.blobs.items())
    return True


def _info(row: Sequence[Any]) -> SessionInfo:
    *fields, critical = row
    return SessionInfo(
        **dict(zip(_SESSION_FIELDS, fields, strict=True)),
        critical=msgspec.json.decode(critical) if critical else {},
    )


def _nothing() -> None:
    """A log in memory has no file to look at."""


def _text_id(id: UUID | str) -> str:
    return id.hex if isinstance(id, UUID) else id


def _is_sibling(stream: str) -> bool:
    return "~" in stream


# -- opening ---------------------------------------------------------------------------------


def open_sqlite(path: str, options: Options) -> SQLiteStore:
    """Open the log in the file `path`, creating it if there is none and `options` allow it."""
    options = layout.check_path(path, options)
    uri = layout.uri_of(path, options)
    pool = Pool(uri, options)
    layout.prepare(pool.connect, path, options)
    return Factory(pool, path, layout.Whereabouts(path)).application_recorder()


_open_stores: weakref.WeakSet[SQLiteStore] = weakref.WeakSet()


def _after_fork() -> None:
    for store in list(_open_stores):
        store.abandon()


os.register_at_fork(after_in_child=_after_fork)
