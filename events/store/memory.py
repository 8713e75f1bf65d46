"""The store in memory: the SQLite store over one connection that nothing else can open.

SQLite's `:memory:` is one database a connection, and in its shared cache readers and the writer
refuse each other, so all threads take turns on one connection. Two opens are two logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brute.events.errors import LogClosed, UsageError
from brute.events.store import sqlite_layout as layout
from brute.events.store.base import Options
from brute.events.store.sqlite import Datastore, Pool, SQLiteStore, SQLiteWatch
from brute.events.store.sqlite_errors import DRIVER, translated


class MemoryStore(SQLiteStore):
    """A `Store` that is gone when it is closed."""

    def __init__(self, datastore: Datastore, where: str) -> None:
        super().__init__(datastore, where)
        self._writer = self.datastore.pool.connect()
        layout.create(self._writer)

    def _select(self, sql: str, parameters: Sequence[str | int]) -> list[Any]:
        with self._lock:
            if self._writer is None:
                raise LogClosed(self.where, self._closed or "the log is closed")
            try:
                return self._writer.execute(sql, parameters).fetchall()
            except DRIVER as error:
                raise translated(error, self.where) from error

    def watch(self) -> SQLiteWatch:
        """See `Store.watch`; every commit is one of this process."""
        return self._watching(SQLiteWatch(self, None))


def open_memory(name: str, options: Options) -> MemoryStore:
    """Open a new log in memory. Raises `UsageError` for read-only, which would stay empty."""
    if options.read_only:
        raise UsageError("a log in memory is new, so read_only=True would leave it empty for ever")
    return MemoryStore(Datastore(Pool(name, options)), name)
