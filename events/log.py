"""The log: sessions of events, appended under an expected position and read at any.

`EventLog` turns events into rows and rows into entries; what keeps the rows is a store
(`brute.events.store`). Reading and appending are the hot paths of Brute; what is unusual (unknown
content, large bytes, critical events, conflicts) is kept off them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TypeAlias

import msgspec

from brute.events import blobs, codec, tail
from brute.events.blobs import mentions, references
from brute.events.entries import Entry, Record
from brute.events.errors import (
    Conflict,
    CorruptStore,
    CriticalUnknown,
    UnknownPosition,
    UnknownSession,
    UsageError,
    WrongType,
)
from brute.events.events import EVENTS, TAGS, Event, Link, SessionOpened, tag_of
from brute.events.ids import (
    append_ids,
    check_number,
    check_session_id,
    check_sibling,
    check_text,
    is_sibling,
    new_id,
)
from brute.events.lineages import END, Lineages, Segment
from brute.events.store import open_store
from brute.events.store.base import (
    PLAIN,
    Cells,
    Commit,
    Opening,
    Options,
    SessionInfo,
    Store,
    Synchronous,
)

CHUNK = 1000
"""Rows fetched at a time: no statement stays open between two entries, so a slow reader holds no
snapshot, and a session of any length is read in constant memory."""

State: TypeAlias = tuple[str, int, str, bytes]
"""One stored row: the session it is stored under, position, topic (the event's tag), state."""

_record: Callable[..., Record] = Record  # its fields are typed by what the codec reads back
_decode = msgspec.json.Decoder(Record).decode
_encode = codec.encode
_MEDIA = blobs.MEDIA


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An event about to be appended, with what its envelope says beside the log's own words."""

    event: Event
    cause: int | None = None
    """The position of the intent that this outcome answers."""
    lane: str = "/"
    run: str | None = None
    place: str | None = None
    critical: bool = False


class Notice(Entry, frozen=True, gc=False):
    """An entry that `EventLog.follow` met in the order of commits."""

    id: int = 0
    """Its place in that order; `follow(after=id)` goes on behind it."""


def milliseconds() -> int:
    """The time now, in milliseconds since 1970 (UTC)."""
    return time.time_ns() // 1_000_000


class EventLog:
    """All sessions in one store. Threads may share it; each process opens its own."""

    new_id = staticmethod(new_id)

    def __init__(self, store: Store, *, clock: Callable[[], int] = milliseconds) -> None:
        self._store = store
        self._clock = clock
        self._append_ids = append_ids()
        self._lineages = Lineages(self.info)

    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str],
        *,
        synchronous: Synchronous = "FULL",
        read_only: bool = False,
        create: bool = True,
        lock_timeout: float = 30.0,
        clock: Callable[[], int] = milliseconds,
    ) -> EventLog:
        """Open the log at `url`: a path, `sqlite:///PATH` or `:memory:`.

        With `synchronous="NORMAL"` a power cut may take the last commits. `lock_timeout`:
        seconds to wait for another writer. `clock`: gives milliseconds since 1970.

        Raises `UsageError` for a URL that no store answers to, `CorruptStore` for a file that is
        no log, `StoreError` for one that cannot be opened.
        """
        options = Options(
            synchronous=synchronous,
            read_only=read_only,
            create=create,
            lock_timeout=lock_timeout,
        )
        return cls(open_store(url, options), clock=clock)

    @property
    def store(self) -> Store:
        """What keeps the rows; to the eventsourcing library it is an application recorder."""
        return self._store

    @property
    def where(self) -> str:
        """The name of the store, as errors give it."""
        return self._store.where

    @property
    def read_only(self) -> bool:
        """Whether every append is refused."""
        return self._store.read_only

    def close(self) -> None:
        """Let go of the store. What was appended is in it already; closing twice is fine."""
        self._store.close()

    def __enter__(self) -> EventLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # -- appending ---------------------------------------------------------------------------

    def append(
        self,
        session: str,
        drafts: Sequence[Draft | Event],
        *,
        expect: int,
        append_id: str | None = None,
    ) -> list[Entry]:
        """Append events in one transaction; they are durable when this returns.

        `expect` is the last position the writer knows, -1 for a new session. `append_id` names
        the commit: appending it again gives the entries that are there already.

        Raises `Conflict` if the session does not end at `expect`, `UnknownSession`,
        `EncodingError` for what JSON has no word for, `CriticalUnknown`, `ReadOnly`, `StoreFull`
        or `StoreBusy`; nothing is written then.

        That an intent has one outcome is not looked into here, for it would take a query: whoever
        appends outcomes knows the entries up to `expect` (a `brute.Session` does), and that
        nothing else has come since is what `expect` makes sure of.
        """
        if type(expect) is not int or type(session) is not str:
            check_text("a session's id", session)
            check_number("expect", expect)
        if not drafts:
            raise UsageError(f"{session}: nothing to append; give at least one event")
        name = append_id or next(self._append_ids)
        first: str | None = name
        at = self._clock()
        position = expect
        odd = expect < 0 or "~" in session
        cells: Cells = []
        entries: list[Entry] = []
        for draft in drafts:
            if type(draft) is Draft:
                record = _record(
                    at=at,
                    append_id=first,
                    event=draft.event,
                    run=draft.run,
                    lane=draft.lane,
                    cause=draft.cause,
                    place=draft.place,
                    critical=draft.critical,
                )
            else:
                record = _record(at=at, append_id=first, event=draft)
            first = None
            position += 1
            tag = TAGS.get(type(record.event))
            if tag is None:
                raise _no_event(session, position, record.event)
            state = _encode(record)
            odd = odd or record.critical or tag == "session.opened"
            odd = odd or (len(state) > blobs.LIMIT and _MEDIA in state)
            cells += (session, position, tag, state)
            entries.append(Entry(session, position, record))
        if odd:
            if is_sibling(session):
                return self._append_sibling(session, expect, cells, entries)
            large = self._take_out(cells, entries)
            return self._append_rare(session, expect, cells, entries, large)
        if self._store.commit(session, expect, cells, position, at):
            return entries
        return self._append_again(session, expect, cells, entries, PLAIN)

    def _append_sibling(
        self, stream: str, expect: int, cells: Cells, entries: list[Entry]
    ) -> list[Entry]:
        check_sibling(stream)
        if self._store.append_sibling(stream, expect, cells):
            return entries
        raise Conflict(stream, expect, self._store.last(stream))

    def _append_rare(
        self,
        session: str,
        expect: int,
        cells: Cells,
        entries: list[Entry],
        large: dict[str, bytes],
    ) -> list[Entry]:
        """Append what may begin a session, be critical or have large bytes beside it."""
        if not entries:
            raise UsageError(f"{session}: nothing to append; give at least one event")
        if expect < -1:
            raise UsageError(f"{session}: {expect} is no position; -1 begins a session")
        records = [entry.record for entry in entries]
        parent = self._parent(session, expect, records[0])
        begins = expect == -1 or parent is not None
        extra = Commit(
            opening=_opening(session, records[0], parent) if begins else None,
            critical=self._critical(session, expect, records, parent),
            blobs=large or None,
        )
        last, at = entries[-1].position, _fits(entries[-1].at)
        if self._store.commit(session, expect, cells, last, at, extra=extra):
            return entries
        return self._append_again(session, expect, cells, entries, extra)

    def _append_again(
        self, session: str, expect: int, cells: Cells, entries: list[Entry], extra: Commit
    ) -> list[Entry]:
        """The store refused: find the commit already there, or raise what stands in its way."""
        name, last, at = entries[0].append_id, entries[-1].position, _fits(entries[-1].at)
        for _ in range(2):
            info = self.info(session)
            there = list(self.read(session, after=expect, upto=last)) if expect < info.last else []
            if name and len(there) == len(entries) and there[0].append_id == name:
                return there
            if info.last != expect:
                raise Conflict(session, expect, info.last)
            if extra.opening is not None:
                raise UsageError(f"{session}: the session has begun already; a fork needs a new id")
            for tag, position in info.critical.items():
                if tag not in EVENTS or self.entry(session, position).raw is not None:
                    raise CriticalUnknown(f"{session}@{position}", tag)
            extra = msgspec.structs.replace(extra, despite_critical=True)
            if self._store.commit(session, expect, cells, last, at, extra=extra):
                return entries
        raise CorruptStore(
            self.where,
            f"{session}: the list of sessions says that it ends at {expect}, its rows go further",
            "something else than a log wrote into the store; restore it from a backup",
        )

    def _parent(self, session: str, expect: int, first: Record) -> SessionInfo | None:
        """The session that these events fork from; None if they begin no fork."""
        link = first.event.link if isinstance(first.event, SessionOpened) else None
        if link is None or link.kind != "fork":
            return None
        if link.session is None or link.position != expect:
            raise UsageError(
                f"{session}: an event says that the session forks from "
                f"{link.session}@{link.position}, but it is appended behind position {expect}; "
                "use log.fork(session, at)"
            )
        parent = self.info(link.session)
        if not 0 <= expect <= parent.last:
            raise UnknownPosition(parent.id, expect, parent.last)
        return parent

    def _critical(
        self, session: str, expect: int, records: Sequence[Record], parent: SessionInfo | None
    ) -> dict[str, int] | None:
        """All critical tags of the session with these records; None: they add none."""
        added: dict[str, int] = {}
        for position, record in enumerate(records, expect + 1):
            if record.critical:
                added.setdefault(tag_of(record.event), position)
        before: dict[str, int] = {}
        if parent is not None:  # what was critical before the fork stays critical in it
            before = {tag: at for tag, at in parent.critical.items() if at <= expect}
        elif added and (info := self._store.session(session)):
            before = info.critical
        return {**added, **before} or None

    def _take_out(self, cells: Cells, entries: Sequence[Entry]) -> dict[str, bytes]:
        """Put references in place of large bytes, in `cells`; the bytes by their hash."""
        taken: dict[str, bytes] = {}
        for cell, entry in zip(range(3, len(cells), 4), entries, strict=True):
            smaller, found = blobs.take_out(entry.record)
            if found:
                taken.update(found)
                cells[cell] = _encode(smaller)
        return taken

    def _check_references(
        self, session: str, names: Iterable[str], given: Mapping[str, bytes]
    ) -> None:
        for name in names:
            if name not in given and self._store.blob(name) is None:
                raise UsageError(
                    f"{session}: the rows refer to bytes {name}, which were not given and are not "
                    "in this log; give them in `blobs`"
                )

    # -- reading -----------------------------------------------------------------------------

    def read(self, session: str, *, after: int = -1, upto: int | None = None) -> Iterator[Entry]:
        """The entries with positions above `after`, to the end or to `upto` (included).

        A fork's entries before the fork are its parent's. Raises `UnknownSession`; positions
        that do not exist (yet) are left out.
        """
        return self._read(session, self._lineages.segments(session, after, upto))

    def _read(self, session: str, segments: Iterable[Segment]) -> Iterator[Entry]:
        store = self._store
        torn: int | None = None
        for stream, start, high in segments:
            low = start
            rows = store.states(stream, low, high, CHUNK)
            if torn is not None:
                raise _missing(self.where, session, torn)
            while rows:
                if rows[0][0] != low or rows[-1][0] - low != len(rows) - 1:
                    raise _missing(self.where, stream, low)
                for position, state in rows:
                    try:
                        record = _decode(state)
                    except (msgspec.DecodeError, RecursionError):
                        yield self._unusual(session, stream, position, state)
                        continue
                    if record.large:
                        yield self._unusual(session, stream, position, state)
                    else:
                        yield Entry(session, position, record)
                low = rows[-1][0] + 1
                rows = store.states(stream, low, high, CHUNK) if len(rows) == CHUNK else []
            torn = low if low <= high else None

    def read_back(
        self, session: str, *, before: int | None = None, after: int = -1
    ) -> Iterator[Entry]:
        """The entries with positions below `before` (default: all) and above `after`, newest first.

        Raises `UnknownSession`.
        """
        if before is not None:
            check_number("before", before)
        upto = None if before is None else before - 1
        return self._read_back(session, self._lineages.segments(session, after, upto)[::-1])

    def _read_back(self, session: str, segments: Iterable[Segment]) -> Iterator[Entry]:
        limit = 32  # whoever reads backwards mostly wants the last few
        for stream, low, end in segments:
            high = end
            rows = self._store.states_back(stream, low, high, limit)
            while rows:
                for position, state in rows:
                    yield self._entry(session, stream, position, state)
                high = rows[-1][0] - 1
                limit = min(2 * limit, CHUNK)
                rows = self._store.states_back(stream, low, high, limit) if low <= high else []

    def entry(self, session: str, position: int) -> Entry:
        """The entry at `position`. Raises `UnknownSession` and `UnknownPosition`."""
        check_number("a position", position)
        for stream, low, high in self._lineages.segments(session, position - 1, position):
            for found, state in self._store.states(stream, low, high, 1):
                return self._entry(session, stream, found, state)
        raise UnknownPosition(session, position, self.last(session))

    def last(self, session: str) -> int:
        """The last position of the session. Raises `UnknownSession`.

        Of a sibling stream, which comes and goes: -1 if there is none.
        """
        check_text("a session's id", session)
        if is_sibling(session):
            return self._store.last(session)
        return self.info(session).last

    def _entry(self, session: str, stream: str, position: int, state: bytes) -> Entry:
        try:
            record = _decode(state)
        except (msgspec.DecodeError, RecursionError):
            return self._unusual(session, stream, position, state)
        if record.large:
            return self._unusual(session, stream, position, state)
        return Entry(session, position, record)

    def _unusual(self, session: str, stream: str, position: int, state: bytes) -> Entry:
        """An entry with content this version does not know, escapes, or large bytes."""
        rows = self._store.topics(stream, position, position, 1)
        topic = rows[0][1] if rows else ""
        record, raw = codec.decode(topic, state, f"{self.where}: {stream}@{position}")
        if record.large:
            record = blobs.put_back(record, self.blob)
        return Entry(session, position, record, raw)

    # -- sessions ----------------------------------------------------------------------------

    def info(self, session: str) -> SessionInfo:
        """What the list of sessions says of this one. Raises `UnknownSession`."""
        check_text("a session's id", session)
        try:
            info = self._store.session(session)
        except UnicodeEncodeError:  # a lone surrogate; no id has one
            info = None
        if info is None:
            raise UnknownSession(session)
        return info

    def sessions(
        self, *, limit: int | None = None, before: SessionInfo | None = None
    ) -> Iterator[SessionInfo]:
        """The sessions, the one with the newest event first; `before`: those behind that one.

        Raises `UsageError` for a limit that is no number of sessions.
        """
        if limit is not None:
            check_number("a limit", limit)
            if limit < 0:
                raise UsageError(f"no {limit} sessions can be listed; leave the limit out for all")
        order: object = getattr(before, "order", None)
        if before is not None and type(order) is not int:
            raise WrongType("before", before, "a session, as `sessions` gave it")
        return self._sessions(before.order if before else None, END if limit is None else limit)

    def _sessions(self, order: int | None, left: int) -> Iterator[SessionInfo]:
        while left > 0:
            page = self._store.sessions(order, min(left, CHUNK))
            yield from page
            if not page:
                return
            order, left = page[-1].order, left - len(page)

    def find(self, address: str) -> str:
        """The id of the session that `address` means.

        An address is an id, the beginning or end of exactly one, or `last` for the session with
        the newest event. Raises `UnknownSession` with the ids that fit.
        """
        check_text("an address", address)
        if address == "last":
            for info in self._store.sessions(None, 1):
                return info.id
            raise UnknownSession(address)
        try:
            if self._store.session(address) is not None:
                return address
            found = self._store.matching(address, 100) if address else []
        except UnicodeEncodeError:
            found = []
        if len(found) == 1:
            return found[0]
        raise UnknownSession(address, tuple(found))

    def fork(
        self,
        session: str,
        at: int,
        *,
        event: SessionOpened | None = None,
        id: str | None = None,
    ) -> str:
        """Begin a session that shares the entries of `session` up to position `at` (included).

        Nothing is copied; the first event of its own stands at `at + 1`. Returns its id. Raises
        `UnknownSession`, `UnknownPosition`, `Conflict` if there is a session `id` already, and
        `CorruptStore` if the entry at `at` is gone. A fork changes nothing of what is there, so
        that earlier entries cannot be read any more does no further harm.
        """
        check_number("at", at)
        child = new_id() if id is None else id
        check_session_id(child)
        last = self.last(session)
        if not 0 <= at <= last:
            raise UnknownPosition(session, at, last)
        for stream, low, high in self._lineages.segments(session, at - 1, at):
            if not self._store.topics(stream, low, high, 1):
                raise _missing(self.where, stream, at)
        link = Link(kind="fork", session=session, position=at)
        opened = msgspec.structs.replace(event or SessionOpened(), link=link)
        self.append(child, [opened], expect=at)
        return child

    # -- following ---------------------------------------------------------------------------

    def follow(
        self,
        session: str | None = None,
        *,
        after: int = -1,
        stop: threading.Event | None = None,
        timeout: float | None = None,
    ) -> Iterator[Entry]:
        """The entries above `after`, then each new one as it is committed, by any process.

        Without a session: the entries of all sessions in the order of commits, as `Notice`s;
        `after` is then the `id` of one (-1: from the beginning; `log.head()`: from now on).

        Ends when `stop` is set (noticed within 50 ms), when nothing came for `timeout` seconds,
        or when the log is closed. Raises `UnknownSession`.
        """
        return tail.follow(self._store, self._more(session, after), stop, timeout)

    def afollow(
        self, session: str | None = None, *, after: int = -1, timeout: float | None = None
    ) -> AsyncIterator[Entry]:
        """`follow` for an event loop: it is never blocked for longer than one look takes."""
        return tail.afollow(self._store, self._more(session, after), timeout)

    def head(self) -> int:
        """The `id` of the newest entry in the order of commits; 0 in an empty log."""
        return self._store.head()

    def _more(self, session: str | None, after: int) -> tail.More:
        """What gives a follower its next entries."""
        check_number("after", after)
        if session is not None:
            self._lineages.segments(session, -1, None)
        place = min(after, END)

        def of_session() -> list[Entry]:
            nonlocal place
            assert session is not None
            segments = self._lineages.segments(session, place, place + CHUNK)
            found = list(self._read(session, segments))
            place = found[-1].position if found else place
            return found

        def of_all() -> list[Entry]:
            nonlocal place
            found: list[Entry] = []
            while not found and (rows := self._store.notifications(place, CHUNK)):
                for number, stream, position, _, state in rows:
                    if not is_sibling(stream):
                        entry = self._entry(stream, stream, position, state)
                        found.append(Notice(stream, position, entry.record, entry.raw, number))
                place = rows[-1][0]
            return found

        return of_all if session is None else of_session

    # -- rows and bytes as they are stored -----------------------------------------------------

    def states(self, session: str, *, after: int = -1, upto: int | None = None) -> Iterator[State]:
        """The rows behind `read`, byte for byte; large media are references (see `blobs`)."""
        return self._states(self._lineages.segments(session, after, upto))

    def _states(self, segments: Iterable[Segment]) -> Iterator[State]:
        for stream, start, high in segments:
            low = start
            while rows := self._store.topics(stream, low, high, CHUNK):
                for position, topic, state in rows:
                    yield stream, position, topic, state
                low = rows[-1][0] + 1

    def import_states(
        self,
        session: str,
        rows: Iterable[tuple[int, str, bytes]],
        *,
        expect: int,
        blobs: Mapping[str, bytes] | None = None,
    ) -> int:
        """Append rows as another log gave them (`states`), byte for byte, in one transaction.

        `blobs` holds the large bytes they refer to, by hash. Returns the last position. Raises
        what `append` raises, `CorruptStore` for a state that is no record, and `UsageError` for
        a position out of order or bytes that are missing or not those of their hash.
        """
        check_text("a session's id", session)
        check_number("expect", expect)
        # It may grow while the rows are read.
        given: Mapping[str, bytes] = {} if blobs is None else blobs
        cells: Cells = []
        entries: list[Entry] = []
        large: dict[str, bytes] = {}
        for position, (found, topic, state) in enumerate(rows, expect + 1):
            if found != position:
                raise UsageError(f"{session}@{position}: the row to import says position {found}")
            record, raw = codec.decode(topic, state, f"the row for {session}@{position}")
            if tag_of(record.event) != topic or _shown(topic) != topic:
                raise UsageError(f"{session}@{position}: the topic {topic!r} is not its event's")
            if record.large:
                needed = references(record)
                self._check_references(session, needed, given)
                names = needed if raw is None else needed + mentions(raw)
                large.update((name, given[name]) for name in names if name in given)
            cells += (session, position, topic, state)
            entries.append(Entry(session, position, record, raw))
        _check_hashes(session, large)
        self._append_rare(session, expect, cells, entries, large)
        return expect + len(entries)

    def blob(self, hash: str) -> bytes:
        """Large bytes by their content hash, `sha256:…`. Raises `CorruptStore` if they are gone."""
        check_text("a hash", hash)
        data = self._store.blob(hash)
        if data is None:
            raise CorruptStore(self.where, f"the bytes {hash} are missing", "restore a backup")
        return data

    def blobs(self, session: str) -> Iterator[tuple[str, bytes]]:
        """The large bytes that the rows of the session refer to, each once, with their hash."""
        seen: set[str] = set()
        for row in self.states(session):
            for name in self.references(row):
                if name not in seen:
                    seen.add(name)
                    yield name, self.blob(name)

    def references(self, row: State) -> list[str]:
        """The hashes of the large bytes that a row of `states` refers to.

        Raises `CorruptStore` for a row that is no record.
        """
        stream, position, topic, state = row
        record, raw = codec.decode(topic, state, f"{self.where}: {stream}@{position}")
        names = references(record)
        if record.large and raw is not None:
            names += [name for name in mentions(raw) if self._store.blob(name) is not None]
        return names

    def drop(self, stream: str) -> None:
        """Delete a sibling stream (`SESSION~POSITION`). Entries of a session are never deleted."""
        check_sibling(stream)
        self._store.drop(stream)


def _opening(session: str, first: Record, parent: SessionInfo | None) -> Opening:
    """What the session's row says of its beginning."""
    check_session_id(session)
    event, created = first.event, _fits(first.at)
    if not isinstance(event, SessionOpened):
        return Opening(created=created)
    agent = event.agent or (parent.agent if parent else None)
    title = (event.metadata or {}).get("title")
    link = event.link or Link(kind="import")
    return Opening(
        created=created,
        link=link.kind if event.link else None,
        parent=_shown(link.session),
        parent_position=None if link.position is None else _fits(link.position),
        agent=_shown(agent),
        title=_shown(title) if isinstance(title, str) else None,
    )


def _shown(text: str | None) -> str | None:
    """A text for the list of sessions; the event has it as it is, lone surrogates included."""
    return text if text is None else text.encode(errors="backslashreplace").decode()


def _fits(number: int) -> int:
    """A number for the list of sessions, of 64 bits."""
    return max(-(2**63), min(number, 2**63 - 1))


def _no_event(session: str, position: int, found: object) -> UsageError:
    return UsageError(
        f"{session}@{position}: a {type(found).__name__} cannot be appended; give an event of "
        "brute.events.events, or a Draft of one"
    )


def _missing(where: str, stream: str, position: int) -> CorruptStore:
    return CorruptStore(
        where,
        f"{stream}: entries from position {position} on are missing",
        "restore the file from a backup, or read up to the position before it",
    )


def _check_hashes(session: str, large: Mapping[str, bytes]) -> None:
    for name, data in large.items():
        if blobs.hash_of(data) != name:
            raise UsageError(f"{session}: the bytes given as {name} have another hash")
