"""Opening the log that the command line was told."""

from __future__ import annotations

import os

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


def is_there() -> bool:
    """Whether there is something where the log is to be."""
    kind, path = resolve(options().db)
    return kind != "sqlite" or os.path.exists(path)  # noqa: PTH110 - False for a name that is too long


def _existing(*, read_only: bool) -> Log:
    db = options().db
    if not is_there():
        raise NoSuchLog(db)
    return open_log(db, read_only=read_only, create=False)
