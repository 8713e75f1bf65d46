"""The one door through which a session's facts go.

A live journal appends each fact. A served one (resume, replay) first compares it with what a run
recorded, lane by lane, and hands out the recorded outcome; where the recording ends, a resumed
run goes on live and a replay raises `Divergence`.
"""

from __future__ import annotations

import contextvars
import inspect
import secrets
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import Any, Protocol, TypeVar, cast

from brute.divergence import Divergence, Kind
from brute.events.entries import Entry
from brute.events.errors import AlreadyAnswered, Conflict, Fenced
from brute.events.events import (
    ApprovalAsked,
    EffectCalled,
    Event,
    EventClass,
    PromptAppended,
    RunEnded,
    RunStarted,
    ToolCalled,
    UnknownEvent,
    ValueRecorded,
    class_of,
    tag_of,
)
from brute.events.log import Draft, EventLog
from brute.projections.lanes import within

T = TypeVar("T")

LANE: contextvars.ContextVar[str] = contextvars.ContextVar("brute-lane", default="/")
"""The lane of the code that runs now."""

INDEPENDENT = (PromptAppended, ToolCalled, EffectCalled, ApprovalAsked, ValueRecorded)
"""Facts that do not depend on what the list of messages was when they were said."""

REBASES = 50
"""How often an append that may be rebased is tried again before `Conflict` reaches the caller."""


def new_run() -> str:
    """A name for a run, or for a writer outside a run."""
    return secrets.token_hex(6)


class Journal(Protocol):
    """What a session needs to know and to say its facts."""

    run: str
    entries: list[Entry]

    def fact(self, *drafts: Draft) -> list[tuple[Entry, bool]]:
        """Say facts in one commit. Each comes back as its entry, and whether it was recorded."""
        ...

    def outcome(self, draft: Draft) -> Entry:
        """Say the outcome of an intent (`draft.cause`)."""
        ...

    def recorded(self, intent: Entry) -> Entry | None:
        """The recorded outcome of an intent that was served, or None."""
        ...

    def observe(self, draft: Draft) -> None:
        """Say something that is never compared."""
        ...

    def refresh(self) -> list[Entry]:
        """Take in what other writers have appended; returns those entries."""
        ...

    def serves(self) -> bool:
        """Whether the next fact of this lane comes from a recording."""
        ...

    def inputs_only(self) -> bool:
        """Whether the last conflict brought in nothing that a turn would have to heed."""
        ...


class Live:
    """A journal that appends. Thread-safe; one for each session handle."""

    def __init__(
        self,
        log: EventLog,
        session: str,
        entries: list[Entry],
        *,
        run: str | None = None,
        epoch: int | None = None,
    ) -> None:
        self.log, self.session, self.entries = log, session, entries
        self.run = run or new_run()
        self.epoch = epoch
        """The epoch of the run this journal writes for; None outside a run."""
        self.lock = threading.RLock()
        self.fenced: Fenced | None = None
        self._answered: dict[int, int] | None = None
        self._looked = 0
        self.missed: list[Entry] = []
        """What other writers had appended when an append of ours last conflicted."""

    @property
    def last(self) -> int:
        """The last position this journal knows of."""
        return self.entries[-1].position if self.entries else -1

    def fact(self, *drafts: Draft) -> list[tuple[Entry, bool]]:
        """Append the drafts in one commit."""
        return [(entry, False) for entry in self.append(drafts)]

    def outcome(self, draft: Draft) -> Entry:
        """Append an outcome."""
        return self.append((draft,))[0]

    def observe(self, draft: Draft) -> None:
        """Append an observation."""
        self.append((draft,))

    def recorded(self, intent: Entry) -> Entry | None:
        """Nothing is served by a live journal."""
        return None

    def serves(self) -> bool:
        """Nothing is served by a live journal."""
        return False

    def refresh(self) -> list[Entry]:
        """Take in what other writers have appended."""
        with self.lock:
            new = list(self.log.read(self.session, after=self.last))
            self.entries.extend(new)
            for entry in new:
                if self.epoch is not None and _epoch(entry) > self.epoch:
                    self.fenced = Fenced(self.session, self.last, entry.position)
            return new

    def append(self, drafts: Sequence[Draft]) -> list[Entry]:
        """Append drafts in one commit, rebased over other writers' entries where that is safe.

        Raises `Conflict` where it is not, `Fenced` when a newer run took over, `AlreadyAnswered`
        for a second outcome. Nothing is written then.
        """
        drafts = [self._signed(draft) for draft in drafts]
        with self.lock:
            for attempt in range(REBASES):
                self._refuse(drafts)
                try:
                    entries = self.log.append(self.session, drafts, expect=self.last)
                except Conflict:
                    self.missed = self.refresh()
                    self._rebase(drafts, self.missed, attempt)
                else:
                    self.entries.extend(entries)
                    return entries
        raise Conflict(self.session, self.last, self.log.last(self.session))

    def append_exactly(self, drafts: Sequence[Draft]) -> list[Entry]:
        """Append drafts whose content depends on their positions; never rebased.

        Raises `Conflict` if another writer was faster.
        """
        with self.lock:
            self._refuse(drafts)
            signed = [self._signed(draft) for draft in drafts]
            entries = self.log.append(self.session, signed, expect=self.last)
            self.entries.extend(entries)
            return entries

    def inputs_only(self) -> bool:
        """Whether what the last conflict brought in was only inputs, outcomes and observations.

        A request that had not left may then be built again with them.
        """
        return self.fenced is None and all(
            isinstance(entry.event, PromptAppended)
            or class_of(entry.event) in (EventClass.OBSERVED, EventClass.OUTCOME)
            for entry in self.missed
        )

    def _signed(self, draft: Draft) -> Draft:
        lane = draft.lane if draft.lane != "/" else LANE.get()
        return Draft(
            event=draft.event,
            cause=draft.cause,
            lane=lane,
            run=draft.run or self.run,
            place=draft.place,
            critical=draft.critical,
        )

    def _rebase(self, drafts: Sequence[Draft], new: Sequence[Entry], attempt: int) -> None:
        """Whether the drafts still hold after `new`; raises if they do not."""
        if not new and attempt == REBASES - 1:
            return
        self._refuse(drafts)
        for draft in drafts:
            if not self._rebases(draft.event):
                raise Conflict(self.session, new[0].position - 1 if new else self.last, self.last)

    def _refuse(self, drafts: Sequence[Draft]) -> None:
        """Raise for what may not be appended at all: by a fenced writer, or a second outcome."""
        if self.fenced is not None:
            raise self.fenced
        for draft in drafts:
            if draft.cause is not None and class_of(draft.event) is EventClass.OUTCOME:
                found = self.answers.get(draft.cause)
                if found is not None:
                    raise AlreadyAnswered(self.session, draft.cause, found)

    @property
    def answers(self) -> dict[int, int]:
        """For each intent that has its outcome, the position of that outcome."""
        if self._answered is None:
            self._answered, self._looked = {}, 0
        for entry in self.entries[self._looked :]:
            if entry.cause is not None and class_of(entry.event) is EventClass.OUTCOME:
                self._answered.setdefault(entry.cause, entry.position)
        self._looked = len(self.entries)
        return self._answered

    def _rebases(self, event: Event) -> bool:
        """Whether the event holds behind what the last conflict brought in.

        Observed events, outcomes, a run's end, and prompts from outside a run hold anywhere. A
        run's own facts hold behind inputs that arrived meanwhile, unless they were built from the
        list.
        """
        if class_of(event) in (EventClass.OBSERVED, EventClass.OUTCOME):
            return True
        if isinstance(event, RunEnded):  # it has ended, whatever others say meanwhile
            return True
        if self.epoch is None and isinstance(event, PromptAppended):
            return True
        return isinstance(event, INDEPENDENT) and self.inputs_only()


def body_lane(intent: Entry) -> str:
    """The lane in which the body of a tool or effect runs: nothing it says is said again."""
    return f"{intent.lane.rstrip('/')}/@{intent.position}"


def in_lane(lane: str, thunk: Callable[[], T]) -> Callable[[], T]:
    """`thunk`, run (and awaited, if it is async) in a lane."""

    def call() -> T:
        token = LANE.set(lane)
        try:
            result = thunk()
        finally:
            LANE.reset(token)
        return cast(T, _InLane(lane, result)) if inspect.isawaitable(result) else result

    return call


class _InLane(Awaitable[T]):
    """An awaitable that is awaited in a lane; closing it closes what is inside."""

    def __init__(self, lane: str, inner: Awaitable[T]) -> None:
        self._lane, self._inner = lane, inner

    def __await__(self) -> Generator[Any, Any, T]:
        token = LANE.set(self._lane)
        try:
            return (yield from self._inner.__await__())
        finally:
            LANE.reset(token)

    def close(self) -> None:
        if inspect.iscoroutine(self._inner):
            self._inner.close()


def _epoch(entry: Entry) -> int:
    return entry.event.epoch if isinstance(entry.event, RunStarted) else -1


# Fields that are supplied from the recording rather than compared: how the request was built may
# differ (another transport, another version), and a clock reading always does.
SUPPLIED: dict[str, frozenset[str]] = {
    "request.sent": frozenset(
        {"transport", "version", "options", "upto", "settings", "chain", "items"}
    ),
    "value.recorded": frozenset({"value"}),
    "tool.called": frozenset({"child"}),
}

COMPARED = (EventClass.INTENT, EventClass.VALUE)


def compared(entry: Entry) -> bool:
    """Whether a replay has to say the entry again: also a reply that was appended by hand."""
    kind = class_of(entry.event)
    return kind in COMPARED or (kind is EventClass.OUTCOME and entry.cause is None)


class Served:
    """A journal that serves what a run recorded, and then goes on live or refuses to.

    `entries` shows what the agent could have seen so far: the prefix before the run and
    everything up to the last fact it has said again.
    """

    def __init__(
        self,
        prefix: list[Entry],
        recording: Iterable[Entry],
        runs: frozenset[str],
        live: Live | None,
    ) -> None:
        self.entries = prefix
        self.live = live
        """Where to go on after the recording; None in a replay, which appends nothing."""
        self.session = live.session if live else (prefix[-1].session if prefix else "")
        self.run = live.run if live else "replay"
        self.lock = threading.RLock()
        self.lanes: dict[str, deque[Entry]] = {}
        self.outcomes: dict[int, Entry] = {}
        self.outside: deque[Entry] = deque()
        """What other writers said meanwhile; supplied at its place."""
        self.diverged: Divergence | None = None
        self.is_live = False
        self._in_bodies: list[Entry] = []
        for entry in recording:
            self._file(entry, runs)

    def _file(self, entry: Entry, runs: frozenset[str]) -> None:
        kind = class_of(entry.event)
        if "@" in entry.lane and entry.run in runs:
            self._in_bodies.append(entry)
        if entry.cause is not None and kind is EventClass.OUTCOME:
            self.outcomes.setdefault(entry.cause, entry)
        elif entry.run in runs and compared(entry):
            self.lanes.setdefault(entry.lane, deque()).append(entry)
        elif entry.run not in runs:
            self.outside.append(entry)

    @property
    def finished(self) -> bool:
        """Whether every recorded fact was said again."""
        return not any(self.lanes.values())

    def fact(self, *drafts: Draft) -> list[tuple[Entry, bool]]:
        """Compare facts with the recording; past its end, append them (or diverge)."""
        with self.lock:
            if self.is_live and self.live is not None:
                return self.live.fact(*drafts)
            said: list[tuple[Entry, bool]] = []
            for index, draft in enumerate(drafts):
                if self.diverged is not None:
                    raise self.diverged
                lane = LANE.get()
                queue = self.lanes.get(lane)
                if not queue:
                    return said + self._go_live(lane, drafts[index:])
                entry = queue[0]
                self._compare(entry, draft.event, lane)
                queue.popleft()
                self._see(entry)
                said.append((entry, True))
            return said

    def _go_live(self, lane: str, drafts: Sequence[Draft]) -> list[tuple[Entry, bool]]:
        if self.live is None:
            last = self.entries[-1].position + 1 if self.entries else 0
            raise self._diverge("extra", (last, lane), None, drafts[0].event)
        said = self.live.fact(*drafts)
        if self.finished:
            self.is_live = True
            self.entries = self.live.entries  # another list, so that folds start again
        else:  # other lanes still have recorded facts to say
            for entry, _ in said:
                self._see(entry)
        return said

    def _compare(self, recorded: Entry, now: Event, lane: str) -> None:
        was = recorded.event
        if tag_of(was) != tag_of(now) or isinstance(was, UnknownEvent):
            raise self._diverge("order", (recorded.position, lane), was, now)
        supplied = SUPPLIED.get(tag_of(now), frozenset())
        for field in now.__struct_fields__:
            if field not in supplied and getattr(was, field) != getattr(now, field):
                kind: Kind = "settings" if tag_of(now) == "turn.started" else "content"
                raise self._diverge(kind, (recorded.position, lane), was, now, field)

    def _diverge(
        self,
        kind: Kind,
        place: tuple[int, str],
        recorded: Event | UnknownEvent | None,
        now: Event | None,
        field: str | None = None,
    ) -> Divergence:
        self.diverged = Divergence(kind, self.session, place, recorded, now, field=field)
        return self.diverged

    def _see(self, entry: Entry) -> None:
        """Let the agent see `entry`, and what came from outside before it."""
        while self.outside and self.outside[0].position < entry.position:
            self._insert(self.outside.popleft())
        self._insert(entry)

    def _insert(self, entry: Entry) -> None:
        entries = self.entries
        index = len(entries)
        while index and entries[index - 1].position > entry.position:
            index -= 1
        if index == len(entries):
            entries.append(entry)
        else:  # lanes that finished in another order: a new list, so that folds start again
            self.entries = [*entries[:index], entry, *entries[index:]]

    def recorded(self, intent: Entry) -> Entry | None:
        """The recorded outcome of `intent`; in a replay one must be there."""
        outcome = self.outcomes.get(intent.position)
        if outcome is not None:
            with self.lock:
                self._skip_body(body_lane(intent))
                self._see(outcome)
        elif self.live is None:
            raise self._diverge("short", (intent.position, intent.lane), intent.event, None)
        return outcome

    def _skip_body(self, body: str) -> None:
        """See what a served tool or effect had said in its body; it is not entered again."""
        if not self._in_bodies:
            return
        for lane in [lane for lane in self.lanes if within(lane, body)]:
            del self.lanes[lane]
        for entry in self._in_bodies:
            if within(entry.lane, body):
                self._see(entry)

    def serves(self) -> bool:
        """Whether the next fact of this lane comes from the recording."""
        return not self.is_live and (self.live is None or bool(self.lanes.get(LANE.get())))

    def outcome(self, draft: Draft) -> Entry:
        """Append the outcome of an intent that had none when the recording ended."""
        if self.live is None:
            raise self._diverge("extra", (draft.cause or 0, LANE.get()), None, draft.event)
        entry = self.live.outcome(draft)
        if not self.is_live:
            self._see(entry)
        return entry

    def observe(self, draft: Draft) -> None:
        """Append an observation; a replay appends nothing."""
        if self.live is not None:
            self.live.observe(draft)

    def inputs_only(self) -> bool:
        """See `Live.inputs_only`; a recording has no conflicts."""
        return self.live is not None and self.live.inputs_only()

    def refresh(self) -> list[Entry]:
        """Take in what others appended, once live; what a replay sees does not change."""
        return self.live.refresh() if self.live is not None and self.is_live else []

    def finish(self) -> None:
        """The agent function has ended: nothing recorded may be left unsaid.

        Raises the `Divergence`, also one that was swallowed on its way.
        """
        if self.diverged is not None:
            raise self.diverged
        for lane, queue in self.lanes.items():
            if queue and self.live is None:
                raise self._diverge("short", (queue[0].position, lane), queue[0].event, None)
