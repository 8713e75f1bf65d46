"""Opening the log that the command line was told."""

from __future__ import annotations

from pathlib import Path

from brute.cli.app import options
from brute.cli.exits import NoSuchLog
from brute.events.store import resolve
from brute.log import Log
from brute.log import open as open_log


def log_to_read() -> Log:
    """The log, for reading only; a verb that reads never makes one.

    Raises `StoreError`.
    """
    return _existing(read_only=True)


def log_to_continue() -> Log:
    """The log, for writing into what is there.

    Raises `StoreError`.
    """
    return _existing(read_only=False)


def log_to_write() -> Log:
    """The log, made if there is none.

    Raises `StoreError`.
    """
    return open_log(options().db)


def _existing(*, read_only: bool) -> Log:
    db = options().db
    kind, path = resolve(db)
    if kind == "sqlite" and not Path(path).exists():
        raise NoSuchLog(db)
    return open_log(db, read_only=read_only, create=False)
