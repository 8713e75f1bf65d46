"""Exit codes, the same for every verb."""

from __future__ import annotations

from typing import Final

from brute.events.errors import BruteError, CorruptStore, StoreError, UsageError

EXIT_ERROR: Final = 1
EXIT_USAGE: Final = 2
"""What was typed cannot mean anything: an unknown option, session or position."""
EXIT_CORRUPT: Final = 5
EXIT_INTERRUPTED: Final = 130
"""128 + SIGINT, as shells say it."""


def exit_code_of(error: BruteError) -> int:
    """The exit code that says what kind of error it was."""
    if isinstance(error, CorruptStore):
        return EXIT_CORRUPT
    return EXIT_USAGE if isinstance(error, UsageError) else EXIT_ERROR


class NoSuchLog(StoreError):
    """There is no file where the log was to be."""

    def __init__(self, db: str) -> None:
        super().__init__(
            db,
            "there is no such file",
            "say where the log is with --db FILE or BRUTE_DB; `brute demo --db FILE` makes one",
        )
        self.args = (db,)


class BadFile(BruteError):
    """A file that was given cannot be used."""

    def __init__(self, where: str, found: str, now: str) -> None:
        super().__init__(where, found, now)
        self.where, self.found, self.now = where, found, now

    def __str__(self) -> str:
        return f"{self.where}: {self.found}; {self.now}"
