"""What SQLite's error codes mean to somebody who keeps a log."""

from __future__ import annotations

import resource
import shutil
import sqlite3
from pathlib import Path

from brute.events.errors import (
    CorruptStore,
    LogClosed,
    ReadOnly,
    StoreBusy,
    StoreError,
    StoreFull,
)

DRIVER = (sqlite3.Error, UnicodeDecodeError)
"""What the sqlite3 module raises; the second when a message quotes a damaged file."""

_BUSY = (StoreBusy, "another writer kept it locked for too long", "append again; nothing is lost")
_CORRUPT = "restore it from a backup, or save what can be read with `sqlite3 FILE .recover`"
_FULL = "make room and append again; the log goes on as if nothing had happened"

# https://sqlite.org/rescode.html
_MEANING: dict[int, tuple[type[StoreError], str, str]] = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_READONLY: (
        ReadOnly,
        "the file or its folder cannot be written",
        "open it with read_only=True, or give this user the right to write",
    ),
    sqlite3.SQLITE_FULL: (StoreFull, "there is no room left; the append was rolled back", _FULL),
    sqlite3.SQLITE_CORRUPT: (CorruptStore, "the file is damaged", _CORRUPT),
    sqlite3.SQLITE_ERROR: (CorruptStore, "its tables are not those of a log", _CORRUPT),
    sqlite3.SQLITE_NOTADB: (
        CorruptStore,
        "the file is not a log: it is no SQLite database, or its first page is damaged",
        "give the path of a log, or " + _CORRUPT,
    ),
    sqlite3.SQLITE_CANTOPEN: (
        StoreError,
        "the file cannot be opened",
        "look at the path and at the rights of the file and its folder",
    ),
    sqlite3.SQLITE_TOOBIG: (
        StoreError,
        "an event is larger than SQLite's limit of 1,000,000,000 bytes",
        "store a reference to the data instead",
    ),
}

_ROOM = 1 << 20
"""Bytes: with less left, a failed write is put down to the lack of room."""


def translated(error: Exception, where: str) -> StoreError | LogClosed:
    """Our error for one of the sqlite3 module's."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return _without_code(error, where)
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_IOERR and _no_room(where):
        primary = sqlite3.SQLITE_FULL
    if primary in _MEANING:
        kind, found, now = _MEANING[primary]
        return kind(where, f"{found} ({error})", now)
    name = getattr(error, "sqlite_errorname", "an unnamed error")
    now = "look at the disk; nothing was written"
    return StoreError(where, f"SQLite reports {name}: {error}", now)


def _without_code(error: Exception, where: str) -> StoreError | LogClosed:
    """Our error for what the sqlite3 module itself finds."""
    if "closed" in str(error):
        return LogClosed(where, "the log is closed")
    if isinstance(error, UnicodeDecodeError) or "decode" in str(error):
        return CorruptStore(where, f"the file is damaged ({error})", _CORRUPT)
    return StoreError(where, f"sqlite3 refuses: {error}", "this is a bug of brute; report it")


def _no_room(where: str) -> bool:
    """Whether a write error (SQLITE_IOERR: EFBIG, EDQUOT) comes from a limit on size."""
    wal = Path(f"{where}-wal")
    try:
        if shutil.disk_usage(wal.parent).free < _ROOM:
            return True
        size = max(wal.stat().st_size if wal.exists() else 0, Path(where).stat().st_size)
    except OSError:
        return False
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return limit != resource.RLIM_INFINITY and size + _ROOM > limit
