"""Agent functions, recorded, resumed after a crash, and replayed.

An agent function gets a session and its own arguments: `def agent(session, city): …`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from brute.effects import CURRENT
from brute.events.entries import Entry
from brute.events.errors import UsageError, WrongType
from brute.events.events import (
    EffectReturned,
    Failure,
    ReplyInterrupted,
    RequestFailed,
    RequestSent,
    RunEnded,
    RunStarted,
    TurnStarted,
)
from brute.events.log import Draft
from brute.journal import LANE, Live, Served, compared
from brute.log import Log
from brute.session import Session
from brute.tools import canonical, failure_of

T = TypeVar("T")

AgentFunction = Callable[..., Any]


def record(agent: Callable[..., T], log: Log, id: str | None = None, /, **args: object) -> T:
    """Run an agent function and record it, in session `id` (begun if there is none).

    The arguments are recorded too: a resumed or replayed run gets the same. Returns what the
    function returns; awaited if it is async.
    """
    _check_agent(agent, log)
    session_id = _ensure(log, id)
    entries = log.entries(session_id)
    recorded = canonical(args) if args else None
    live = Live(log.events, session_id, entries, epoch=_epoch(entries) + 1)
    started = RunStarted(agent=_name(agent), args=recorded, epoch=live.epoch or 0)
    live.append([Draft(event=started)])
    return _enter(agent, Session(log, session_id, live), recorded or {}, live, None)


def resume(agent: Callable[..., T], log: Log, id: str, /) -> T:
    """Go on with a run that did not end: its recorded part is served, the rest is live.

    What was started and has no outcome: a request is sent again, an effect or tool is run again
    only if it is declared idempotent, and is `unknown` otherwise. A run that ended well is not
    entered again; its recorded value is returned.

    Raises `UsageError` if nothing was recorded, `Divergence` if the function does not do again
    what it did.
    """
    _check_agent(agent, log)
    session_id = log.events.find(id)
    entries = log.entries(session_id)
    chain = _chain(entries)
    ended = _ended(entries, chain)
    if ended is not None and ended.error is None:
        return cast(T, _given(ended.value, agent))
    first = _started(chain[0])
    live = Live(log.events, session_id, list(entries), epoch=_epoch(entries) + 1)
    again = RunStarted(
        agent=_name(agent), args=first.args, continues=chain[-1].run, epoch=live.epoch or 0
    )
    live.append([Draft(event=again)])
    served = _serve(entries, chain, live)
    return _enter(agent, Session(log, session_id, served), first.args or {}, live, served)


def replay(agent: Callable[..., T], log: Log, id: str, /) -> T:
    """Run an agent function against its recording: no SDK, no tool, no effect is entered.

    Nothing is appended. Returns what the function returns; awaited if it is async. Raises
    `Divergence` at the first place where it does something else than was recorded, and
    `UsageError` if nothing was recorded.
    """
    _check_agent(agent, log)
    session_id = log.events.find(id)
    entries = log.entries(session_id)
    chain = _chain(entries)
    served = _serve(entries, chain, None)
    first = _started(chain[0])
    return _enter(agent, Session(log, session_id, served), first.args or {}, None, served)


def _check_agent(agent: object, log: object) -> None:
    if not callable(agent):
        raise WrongType("the agent", agent, "a function that takes a session")
    if not isinstance(log, Log):
        raise WrongType("the log", log, "what brute.open gives")


def _ensure(log: Log, id: str | None) -> str:
    if id is not None and log.has(id):
        return id
    return log.start(id=id).id


def _name(agent: AgentFunction) -> str:
    return getattr(agent, "__name__", type(agent).__name__)


def _epoch(entries: Sequence[Entry]) -> int:
    return max((e.event.epoch for e in entries if isinstance(e.event, RunStarted)), default=0)


def _started(entry: Entry) -> RunStarted:
    assert isinstance(entry.event, RunStarted)
    return entry.event


def _chain(entries: Sequence[Entry]) -> list[Entry]:
    """The last run and the runs it continues, oldest first, by their `run.started`."""
    starts = {e.run: e for e in entries if isinstance(e.event, RunStarted)}
    if not starts:
        raise UsageError("no run was recorded in this session; brute.record(agent, log) makes one")
    chain = [list(starts.values())[-1]]
    while (before := _started(chain[0]).continues) in starts:
        chain.insert(0, starts[before])
    return chain


def _ended(entries: Sequence[Entry], chain: Sequence[Entry]) -> RunEnded | None:
    last = chain[-1].run
    found = [e.event for e in entries if isinstance(e.event, RunEnded) and e.run == last]
    return found[-1] if found else None


def _serve(entries: Sequence[Entry], chain: Sequence[Entry], live: Live | None) -> Served:
    start = chain[0].position
    runs = frozenset(entry.run for entry in chain if entry.run is not None)
    continued = chain if live is not None else chain[:-1]
    dropped = {p for run in continued for p in _ended_by(entries, run.run)}
    prefix = [entry for entry in entries if entry.position < start]
    recording = [e for e in entries if e.position >= start and e.position not in dropped]
    return Served(prefix, recording, runs, live)


FAILURES = (RequestFailed, ReplyInterrupted)


def _ended_by(entries: Sequence[Entry], run: str | None) -> set[int]:
    """The positions of the turn or effect whose failure ended a run that another one continues.

    The continuing run says them again, for real; so they are not served.
    """
    said = [e for e in entries if e.run == run and compared(e)]
    ends = [e for e in entries if e.run == run and isinstance(e.event, RunEnded)]
    if not said or not ends or _error_of(ends[-1]) is None:
        return set()
    last = said[-1]
    outcome = next((e for e in entries if e.cause == last.position and _failed(e)), None)
    if outcome is None:
        return set()
    dropped = {last.position, outcome.position}
    if isinstance(last.event, RequestSent):  # the settings and changes of its turn go with it
        for entry in reversed(said[:-1]):
            if entry.lane == last.lane:
                dropped.add(entry.position)
                if isinstance(entry.event, TurnStarted):
                    break
    return dropped


def _error_of(entry: Entry) -> Failure | None:
    return entry.event.error if isinstance(entry.event, RunEnded) else None


def _failed(entry: Entry) -> bool:
    event = entry.event
    return isinstance(event, FAILURES) or (
        isinstance(event, EffectReturned) and event.outcome == "error"
    )


def _given(value: T, agent: AgentFunction) -> T | Awaitable[T]:
    if not _is_async(agent):
        return value

    async def give() -> T:
        return value

    return give()


def _is_async(agent: AgentFunction) -> bool:
    return inspect.iscoroutinefunction(agent) or bool(getattr(agent, "is_async", False))


@contextmanager
def _entered(session: Session) -> Generator[None]:
    tokens = CURRENT.set(session), LANE.set("/")
    try:
        yield
    finally:
        CURRENT.reset(tokens[0])
        LANE.reset(tokens[1])


def _enter(
    agent: Callable[..., T],
    session: Session,
    args: dict[str, Any],
    live: Live | None,
    served: Served | None,
) -> T:
    """Run the agent function in its session, and record how it ended."""
    end = _End(live, served)
    if not _is_async(agent):
        with _entered(session), end:
            return end.with_value(agent(session, **args))

    async def run() -> Any:
        with _entered(session), end:
            return end.with_value(await cast("Awaitable[Any]", agent(session, **args)))

    return cast(T, run())


class _End:
    """Appends `run.ended`, however the run ends; and lets no `Divergence` be swallowed."""

    def __init__(self, live: Live | None, served: Served | None) -> None:
        self._live, self._served = live, served
        self._value: object = None

    def with_value(self, value: T) -> T:
        """The value the agent function returned; it is kept if JSON has a word for it."""
        if self._served is not None:
            self._served.finish()
        try:
            self._value = canonical(value)
        except Exception:  # noqa: BLE001 - a value that cannot be stored is still returned
            self._value = None
        return value

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        diverged = self._served.diverged if self._served is not None else None
        if self._live is not None and diverged is None:
            failure: Failure | None = failure_of(error) if error is not None else None
            ended = RunEnded(value=self._value, error=failure)
            if self._live.fenced is None:
                self._live.append([Draft(event=ended)])
        if diverged is not None and error is not diverged:
            raise diverged
