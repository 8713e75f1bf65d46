"""Every error Brute raises, under one base.

An error says where, what was found, and what to do now. Arguments are kept as attributes and
passed to `Exception.__init__`, so that errors survive pickling.
"""

from __future__ import annotations


class BruteError(Exception):
    """The base of all errors of Brute. `except brute.BruteError` catches every one of them."""


class UsageError(BruteError):
    """The call cannot mean anything: a wrong argument, a wrong order, an unknown name."""


class WrongType(UsageError, TypeError):
    """An argument is of a type that cannot mean anything here."""

    def __init__(self, what: str, found: object, give: str) -> None:
        words = found if isinstance(found, _Words) else _Words(_a(found))
        super().__init__(what, words, give)
        self.what, self.found, self.give = what, words, give

    def __str__(self) -> str:
        return f"{self.what}: found {self.found}; give {self.give}"


class _Words(str):
    """What was found, in words already: an error that was sent elsewhere has no more."""

    __slots__ = ()


def _a(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} {shown(value)}"


def shown(value: object) -> str:
    """A value as a message quotes it, in at most 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


class EncodingError(UsageError):
    """A value cannot be stored so that it comes back the same (NaN, a set, a wrong type)."""

    def __init__(self, pointer: str, found: str) -> None:
        super().__init__(pointer, found)
        self.pointer, self.found = pointer, found

    def __str__(self) -> str:
        return (
            f"{self.pointer or '/'}: {self.found} cannot be stored so that it comes back the same; "
            "give a value that JSON has (a text, a number, true, null, a list, a dict with texts "
            "as keys), of the type the field names"
        )


class MissingExtra(UsageError, ImportError):
    """A part of Brute needs a library that was not installed with it."""

    def __init__(self, part: str, library: str, extra: str) -> None:
        super().__init__(part, library, extra)
        self.part, self.library, self.extra = part, library, extra

    def __str__(self) -> str:
        return (
            f"{self.part} needs {self.library}, which is not installed; "
            f"pip install 'brute-log[{self.extra}]'"
        )


class UnknownSession(UsageError):
    """No session, or more than one, answers to the address."""

    def __init__(self, address: str, found: tuple[str, ...] = ()) -> None:
        super().__init__(address, found)
        self.address, self.found = address, found

    def __str__(self) -> str:
        if self.found:
            some = ", ".join(self.found[:4])
            return (
                f"{shown(self.address)} fits {len(self.found)} sessions ({some}…); "
                "give more letters of the id"
            )
        return (
            f"no session {shown(self.address)} in this log; log.sessions() or `brute ls` lists them"
        )


class UnknownPosition(UsageError):
    """The position does not exist in the session."""

    def __init__(self, session: str, position: int, last: int) -> None:
        super().__init__(session, position, last)
        self.session, self.position, self.last = session, position, last

    def __str__(self) -> str:
        return (
            f"{self.session}@{self.position}: there is no such position; "
            f"the session's positions end at {self.last}"
        )


class Conflict(BruteError):
    """Another writer took the position this append expected; nothing was written."""

    def __init__(self, session: str, expected: int, found: int) -> None:
        super().__init__(session, expected, found)
        self.session, self.expected, self.found = session, expected, found

    def __str__(self) -> str:
        return (
            f"{self.session}: this append expected the session to end at {self.expected}, "
            f"but another writer has taken it to {self.found}; nothing was written. Read the new "
            "entries (session.refresh()), decide whether the append still holds, and append again"
        )


class Fenced(Conflict):
    """A newer run has taken the session over; this writer's appends are refused from now on."""

    def __str__(self) -> str:
        return (
            f"{self.session}: a newer run took this session over at {self.found}, so this older "
            "writer may not append any more; open the session again to go on from its end"
        )


class AlreadyAnswered(BruteError):
    """The intent has an outcome already; an intent has exactly one."""

    def __init__(self, session: str, intent: int, outcome: int) -> None:
        super().__init__(session, intent, outcome)
        self.session, self.intent, self.outcome = session, intent, outcome

    def __str__(self) -> str:
        return (
            f"{self.session}@{self.intent} was answered already at position {self.outcome}; "
            "an intent has exactly one outcome. Nothing was written"
        )


class StoreError(BruteError):
    """The store cannot do what was asked: it is read-only, full, locked, corrupt or not ours."""

    def __init__(self, where: str, found: str, now: str) -> None:
        super().__init__(where, found, now)
        self.where, self.found, self.now = where, found, now
        self.unsaved: object = None
        """A reply's message that had arrived and could not be stored, if there was one."""

    def __str__(self) -> str:
        return f"{self.where}: {self.found}; {self.now}"


class CorruptStore(StoreError):
    """The file is not a log of ours, or no longer a whole one."""


class ReadOnly(StoreError):
    """The store, or this session, can be read but not written."""


class StoreFull(StoreError):
    """There is no room left; the append was rolled back whole."""


class StoreBusy(StoreError):
    """Another writer held the store for longer than the lock timeout; nothing was written."""


class LogClosed(UsageError):
    """The log was closed, or was opened in the process that this one was forked from."""

    def __init__(self, where: str, found: str) -> None:
        super().__init__(where, found)
        self.where, self.found = where, found

    def __str__(self) -> str:
        return f"{self.where}: {self.found}; open the log again (brute.open) to go on"


class CriticalUnknown(ReadOnly):
    """A newer version wrote an event this version must not ignore; the session is read-only."""

    def __init__(self, where: str, tag: str) -> None:
        super().__init__(
            where,
            f"an event {tag!r} that this version does not know and that is marked critical",
            "the session can be read but not continued; upgrade brute-log to go on",
        )
        self.args = (where, tag)
        self.tag = tag


class TransportError(BruteError):
    """A library's reply or request cannot be translated."""


class NotRunnable(BruteError):
    """The tool call must not be run: its arguments are not one whole JSON object."""
