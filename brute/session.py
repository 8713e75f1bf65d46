"""A session: its facts are said here, its state is read here."""

from __future__ import annotations

import asyncio
import datetime
import inspect
import os
import random as _random
import time
import uuid as _uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, cast, overload

import msgspec

from brute import transports
from brute.drive import Do, Steps, run_async, run_sync
from brute.effects import AnyRun, AsyncRun, Effect, Run
from brute.events.entries import Entry
from brute.events.errors import (
    AlreadyAnswered,
    Conflict,
    Fenced,
    UnknownPosition,
    UsageError,
    WrongType,
)
from brute.events.events import (
    EffectCalled,
    EffectReturned,
    Event,
    Failure,
    HistoryRewound,
    Lifetime,
    ModelRef,
    NoteAdded,
    PromptAppended,
    ReplyInterrupted,
    ReplyReceived,
    RequestFailed,
    RequestSent,
    StreamChunked,
    ToolCalled,
    ToolReturned,
    ToolSpec,
    ValueRecorded,
)
from brute.events.log import Draft
from brute.events.messages import (
    AnyPart,
    Finish,
    Message,
    Outcome,
    ResultPart,
    Role,
    Text,
    ToolCall,
    ToolResult,
    as_parts,
)
from brute.journal import LANE, Journal, Live, Served, body_lane, in_lane
from brute.projections.calls import Call
from brute.prompt import Hook, Prompt, Target
from brute.replies import AsyncReply, EffectFailure, OutcomeUnknown, Reply, as_it_was
from brute.tools import (
    Tool,
    ToolFunction,
    bind,
    canonical,
    describe,
    failure_of,
    name_of,
    to_content,
    unwrapped,
    words_of,
)
from brute.transports.base import MessageTransport
from brute.turn import Turn, check_hook, check_run, says_something
from brute.view import View

if TYPE_CHECKING:
    from brute.log import Log

T = TypeVar("T")
P = ParamSpec("P")

Places = dict[str | None, list[tuple[int, int]]]
"""The places (reply, part) of calls without a result, by the provider's id."""

UNKNOWN_TEXT = "The outcome is unknown: the process ended while the tool was running."


class Session(View):
    """One stream of events, open for reading and writing.

    Reading never blocks on the network; each fact is durable when the call that says it returns.
    """

    def __init__(self, log: Log, id: str, journal: Journal) -> None:
        super().__init__(id, [])
        self.log = log
        self.journal = journal
        """The door through which this session's facts go."""
        self._tools: dict[str, ToolFunction] = {}
        self._hooks: list[Hook] = []
        self._lanes: dict[str, int] = {}
        self._prompt = Prompt(self, "person", "session")
        self._random: _random.Random | None = None
        self._running: set[tuple[int, int]] = set()
        """The calls this handle is running now."""

    def _entries(self) -> list[Entry]:
        return self.journal.entries

    def refresh(self) -> Session:
        """Take in what other writers have appended since."""
        self.journal.refresh()
        return self

    # -- saying things -------------------------------------------------------------------------

    def system(self, *parts: str | AnyPart) -> Entry:
        """Append a system message."""
        return self._appended(Message(role="system", parts=as_parts(parts)))

    def developer(self, *parts: str | AnyPart) -> Entry:
        """Append a developer message."""
        return self._appended(Message(role="developer", parts=as_parts(parts)))

    def user(self, *parts: str | AnyPart) -> Entry:
        """Append a user message: texts and parts, e.g. `user("Look:", brute.Media(…))`."""
        return self._appended(Message(role="user", parts=as_parts(parts)))

    def _appended(self, message: Message) -> Entry:
        if not message.parts:
            raise UsageError(
                f"a {message.role} message says nothing; give at least one text or part"
            )
        return self.say(PromptAppended(message=message))

    def append(self, *messages: Message) -> list[Entry]:
        """Append messages that exist already, in one commit: a reply, results, a history.

        An assistant message is stored as `reply.received`, a tool message as the outcome of the
        call it answers, anything else as a prompt. Raises `UsageError` for what is no message.
        """
        _check_messages(messages)
        journal = self.journal
        if isinstance(journal, Live):
            return self._adopt(journal, messages)
        return [entry for message in messages for entry in self._append_served(message)]

    def _append_served(self, message: Message) -> list[Entry]:
        first, *outcome = self._drafts([message], self.position)
        if not outcome:
            return [self.journal.fact(first)[0][0]]
        return list(self._answer(first, outcome[0].event))

    def _answer(self, called: Draft, returned: Event) -> tuple[Entry, Entry]:
        """Say an intent and its outcome, where a recording may have both."""
        intent, served = self.journal.fact(called)[0]
        outcome = self.journal.recorded(intent) if served else None
        if outcome is None:
            outcome = self.journal.outcome(Draft(event=returned, cause=intent.position))
        return intent, outcome

    def _adopt(self, journal: Live, messages: Sequence[Message]) -> list[Entry]:
        # Results point at positions of this very commit, so a lost race is planned anew.
        while True:
            last = journal.last
            drafts = self._drafts(messages, last)
            try:
                with journal.lock:
                    if journal.last == last:
                        return journal.append_exactly(drafts)
            except Fenced:
                raise
            except Conflict:
                journal.refresh()

    def _drafts(self, messages: Iterable[Message], last: int) -> list[Draft]:
        """The events of messages that are appended after position `last`."""
        drafts: list[Draft] = []
        open_calls: Places = {}
        for call in self.calls.open:
            open_calls.setdefault(call.call.id, []).append((call.reply, call.part))
        for message in messages:
            position = last + 1 + len(drafts)
            if message.role == "assistant":
                for index, part in enumerate(message.parts):
                    if isinstance(part, ToolCall):
                        open_calls.setdefault(part.id, []).append((position, index))
                finish: Finish = "tool_calls" if message.tool_calls else "stop"
                drafts.append(Draft(event=ReplyReceived(message=message, finish=finish)))
            elif (answered := _answers(message, open_calls)) is not None:
                drafts.append(Draft(event=ToolCalled(reply=answered[0], part=answered[1])))
                drafts.append(Draft(event=_returned(message), cause=position))
            else:
                drafts.append(Draft(event=PromptAppended(message=message)))
        return drafts

    def say(self, event: Event) -> Entry:
        """Append one fact, as it is.

        Raises `UsageError` for a prompt change that lasts for a turn: only a turn can make one.
        """
        if getattr(event, "lifetime", None) == "turn":
            raise UsageError(
                "a change that lasts for a turn is made on the turn (session.turn(), or a hook); "
                "give lifetime='task' or 'session' here"
            )
        return self.journal.fact(Draft(event=event))[0][0]

    def note(self, text: str, data: object = None) -> None:
        """Leave a remark for people; it is never sent and never compared."""
        self.journal.observe(Draft(event=NoteAdded(text=text, data=canonical(data))))

    # -- prompt mutators -----------------------------------------------------------------------

    def prompt(self, author: str = "person", lifetime: Lifetime = "session") -> Prompt:
        """The prompt as `author` (`person`, `hook:NAME`, `agent:NAME`, `compactor`) edits it."""
        return Prompt(self, author, lifetime)

    def hook(self, fn: Hook) -> Hook:
        """Let a function edit the prompt of every turn from now on. Usable as a decorator.

        It gets a `Prompt`; its changes bear its name and last for the turn unless told otherwise.
        """
        check_hook(fn)
        self._hooks.append(fn)
        return fn

    def prepend(
        self, role: Role | Message, *parts: str | AnyPart, lifetime: Lifetime = "session"
    ) -> Entry:
        """Add a message at the front."""
        return self._prompt.prepend(role, *parts, lifetime=lifetime)

    def append_to(
        self, target: Target, *parts: str | AnyPart, lifetime: Lifetime = "session"
    ) -> Entry:
        """Add parts to a message that is there."""
        return self._prompt.append_to(target, *parts, lifetime=lifetime)

    def insert_before(
        self,
        target: Target,
        role: Role | Message,
        *parts: str | AnyPart,
        lifetime: Lifetime = "session",
    ) -> Entry:
        """Add a message before one that is there."""
        return self._prompt.insert_before(target, role, *parts, lifetime=lifetime)

    def insert_after(
        self,
        target: Target,
        role: Role | Message,
        *parts: str | AnyPart,
        lifetime: Lifetime = "session",
    ) -> Entry:
        """Add a message after one that is there."""
        return self._prompt.insert_after(target, role, *parts, lifetime=lifetime)

    # -- turns ---------------------------------------------------------------------------------

    def turn(
        self,
        *,
        model: str | ModelRef | None | msgspec.UnsetType = msgspec.UNSET,
        tools: Iterable[Tool] | None | msgspec.UnsetType = msgspec.UNSET,
        system: str | None | msgspec.UnsetType = msgspec.UNSET,
        format: Mapping[str, Any] | None | msgspec.UnsetType = msgspec.UNSET,
        variant: str | None | msgspec.UnsetType = msgspec.UNSET,
        agent: str | None | msgspec.UnsetType = msgspec.UNSET,
        hooks: Sequence[Hook] = (),
        **parameters: object,
    ) -> Turn:
        """Begin a turn. Settings that are not given stay as they were; None takes one away.

        tools: functions, `ToolSpec`s or mappings; functions are also what `run_calls` runs.
        parameters: whatever else goes into the request (`max_tokens=1_000`, `temperature=0`).
        """
        given: dict[str, Any] = {
            "model": _model(model),
            "tools": tools if tools is None or tools is msgspec.UNSET else self._offer(tools),
            "system": system,
            "format": _format(format),
            "variant": variant,
            "agent": agent,
        }
        now = self.settings
        if parameters:
            merged = {**(now.parameters or {}), **cast("dict[str, object]", canonical(parameters))}
            given["parameters"] = {k: v for k, v in merged.items() if v is not None} or None
        changes = {name: value for name, value in given.items() if value is not msgspec.UNSET}
        return Turn(self, msgspec.structs.replace(now, **changes), [*self._hooks, *hooks])

    def _offer(self, tools: Iterable[Tool]) -> tuple[ToolSpec, ...] | None:
        """What the model is told of the tools; the functions among them can be run from now on."""
        offered = _tools_in(tools)
        _refuse_twins(offered)
        for tool in offered:
            if callable(tool):
                self._tools[name_of(tool)] = tool
        return tuple(describe(tool) for tool in offered) or None

    @overload
    def complete(
        self, run: AsyncRun[object], **settings: Any
    ) -> Coroutine[Any, Any, AsyncReply]: ...
    @overload
    def complete(self, run: Run[object], **settings: Any) -> Reply: ...
    def complete(self, run: AnyRun[object], **settings: Any) -> Reply | Coroutine[Any, Any, Reply]:
        """One whole turn: begin it, send it, record the reply. Awaited if the run is async.

        Takes the settings of `turn`. Returns the `Reply`.
        """
        check_run(run)
        steps = self.turn(**settings).steps(run)
        return run_async(steps) if run.is_async else run_sync(steps)

    # -- tool calls ----------------------------------------------------------------------------

    @overload
    def run_calls(  # type: ignore[overload-overlap]
        self, reply: AsyncReply, tools: Iterable[Tool] = (), *, is_async: bool = True
    ) -> Coroutine[Any, Any, list[ToolResult]]: ...
    @overload
    def run_calls(  # type: ignore[overload-overlap]
        self, reply: Reply | None = None, tools: Iterable[Tool] = (), *, is_async: Literal[True]
    ) -> Coroutine[Any, Any, list[ToolResult]]: ...
    @overload
    def run_calls(
        self, reply: Reply | None = None, tools: Iterable[Tool] = (), *, is_async: bool = False
    ) -> list[ToolResult]: ...
    def run_calls(
        self, reply: Reply | None = None, tools: Iterable[Tool] = (), *, is_async: bool = False
    ) -> list[ToolResult] | Coroutine[Any, Any, list[ToolResult]]:
        """Run the calls of a reply (default: all that wait), each in a lane of its own.

        A call that cannot be run (malformed, cut off, of a tool that is not offered any more) is
        answered with an error; one that a dead process had started is `unknown`, unless its tool
        is an idempotent effect.

        Sync: one after the other. Async (the reply came from an async run function, or `is_async`
        says so): at once, plain functions in threads. A tool's exception becomes its outcome.
        Returns the results, in call order; awaited in the async case.

        Raises `UsageError` for an async tool that plain code would have to run.
        """
        given = [tool.name for tool in self._offer(tools) or ()]
        waiting = self._to_run(reply)
        runnable = {*given, *(tool.name for tool in self.settings.tools or ())}
        functions = [
            self._tools.get(call.call.name) if call.call.name in runnable else None
            for call in waiting
        ]
        in_loop = is_async or isinstance(reply, AsyncReply)
        if not in_loop:
            _refuse_async(functions)
        lanes = [self._child_lane() for _ in waiting]
        steps = [self._run_call(call, fn) for call, fn in zip(waiting, functions, strict=True)]
        if in_loop:
            return self._run_calls_async(lanes, steps)
        return [_in_lane(lane, step) for lane, step in zip(lanes, steps, strict=True)]

    def _to_run(self, reply: Reply | None) -> list[Call]:
        """The calls without an outcome: of a reply, or all that are not closed."""
        if reply is not None:
            if not isinstance(reply, Reply):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise WrongType("run_calls", reply, "a Reply, or nothing for all that wait")
            return [call for call in reply.calls if call.outcome is None]
        calls = self.calls
        unknown = self.unknown_calls(self.journal.run)
        waiting = [*calls.open, *calls.unrunnable, *unknown]
        return sorted(waiting, key=lambda call: (call.reply, call.part))

    async def _run_calls_async(
        self, lanes: list[str], steps: list[Steps[ToolResult]]
    ) -> list[ToolResult]:
        async def one(lane: str, step: Steps[ToolResult]) -> ToolResult:
            LANE.set(lane)  # the task has a context of its own
            return await run_async(step)

        tasks = [asyncio.create_task(one(*pair)) for pair in zip(lanes, steps, strict=True)]
        try:
            return list(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    def _child_lane(self) -> str:
        parent = LANE.get()
        number = self._lanes.get(parent, 0)
        self._lanes[parent] = number + 1
        return f"{parent.rstrip('/')}/{number}"

    @overload
    def call(  # type: ignore[overload-overlap]
        self, what: Call, tool: Callable[..., Awaitable[Any]]
    ) -> Coroutine[Any, Any, ToolResult]: ...
    @overload
    def call(self, what: Call, tool: Tool | None = None) -> ToolResult: ...
    @overload
    def call(self, what: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...
    def call(self, what: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a tool call of a reply, or any function as an effect.

        Its intent is durable before it runs, its outcome after; awaited if the function is async.
        `call(call, tool)` returns the `ToolResult`, `call(fn, *args)` the value, as JSON gives it
        back. Raises `OutcomeUnknown` for an effect that a crash left without an outcome.
        """
        if isinstance(what, Call):
            tool = args[0] if args else self._tools.get(what.call.name)
            steps: Steps[Any] = self._run_call(what, tool)
            return run_async(steps) if _is_async(tool) else run_sync(steps)
        if not callable(what):
            raise WrongType("session.call", what, "a call of a reply, or a function")
        effect = cast("Effect[..., Any]", what if isinstance(what, Effect) else Effect(what))
        steps = self._run_effect(effect, args, kwargs)
        return run_async(steps) if _is_async(effect) else run_sync(steps)

    def returned(self, call: Call, value: object) -> ToolResult:
        """Record the result of a call that was run elsewhere, in one commit with its intent."""
        if not isinstance(call, Call):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise WrongType("the call", call, "one of session.calls or reply.calls")
        content = to_content(value)
        returned = ToolReturned(content=content)
        called = Draft(event=ToolCalled(reply=call.reply, part=call.part))
        journal = self.journal
        while (intent := self._unanswered(call)) is None:
            if not isinstance(journal, Live):
                said = self._answer(called, returned)[1].event
                assert isinstance(said, ToolReturned)
                return _result(call, said.content, said.outcome)
            outcome = Draft(event=returned, cause=journal.last + 1)
            try:
                journal.append_exactly([called, outcome])
                return _result(call, content, "ok")
            except Fenced:
                raise
            except Conflict:  # another writer was faster; it may have been about this very call
                journal.refresh()
        journal.outcome(Draft(event=returned, cause=intent))
        return _result(call, content, "ok")

    def _unanswered(self, call: Call) -> int | None:
        """The position of the intent to run a call, if there is one.

        Raises `AlreadyAnswered` if it has its outcome.
        """
        known = self.calls.get(call.reply, call.part)
        if known is None:
            raise UsageError(
                f"{self.id}: no call stands at part {call.part} of position {call.reply}; "
                "session.calls lists the calls of this session"
            )
        if known.outcome is not None:
            answered = known.result if known.result is not None else self.position
            raise AlreadyAnswered(self.id, known.intent or known.reply, answered)
        return known.intent

    def _run_call(self, call: Call, tool: object) -> Steps[ToolResult]:
        intent, served = self._tool_intent(call)
        outcome = self.journal.recorded(intent) if served else None
        if outcome is None and served and not getattr(tool, "idempotent", False):
            event = ToolReturned(outcome="unknown", content=(Text(text=UNKNOWN_TEXT),))
            outcome = self.journal.outcome(Draft(event=event, cause=intent.position))
        if outcome is None:
            self._running.add((call.reply, call.part))
            try:
                event = yield from self._perform_call(call, tool, intent)
                outcome = self.journal.outcome(Draft(event=event, cause=intent.position))
            finally:
                self._running.discard((call.reply, call.part))
        said = outcome.event
        assert isinstance(said, ToolReturned)
        return _result(call, said.content, said.outcome)

    def _tool_intent(self, call: Call) -> tuple[Entry, bool]:
        """The intent to run a call; one whose writer is gone is taken up as served.

        Raises `UsageError` for a call that this handle is running already.
        """
        if (call.reply, call.part) in self._running:
            raise UsageError(
                f"{self.id}@{call.reply}: the call of {call.call.name} is being run already; "
                "wait for its result"
            )
        intent = self._unanswered(call)
        if intent is not None:
            return self._entry(intent), True
        return self.journal.fact(Draft(event=ToolCalled(reply=call.reply, part=call.part)))[0]

    def _entry(self, position: int) -> Entry:
        for entry in reversed(self._entries()):
            if entry.position == position:
                return entry
        raise UnknownPosition(self.id, position, self.position)

    def _perform_call(self, call: Call, tool: object, intent: Entry) -> Steps[ToolReturned]:
        refusal = _refusal(call, tool)
        if refusal is not None:
            return ToolReturned(outcome="error", content=(Text(text=refusal),))
        function = unwrapped(tool)
        try:
            arguments = bind(function, call.call)
            body = in_lane(body_lane(intent), lambda: function(**arguments))
            value = yield Do(body, blocking=not _is_async(tool))
            return ToolReturned(content=to_content(value))
        except Exception as error:  # noqa: BLE001 - a tool's error is its outcome
            text = f"{type(error).__name__}: {words_of(error)}"
            return ToolReturned(outcome="error", content=(Text(text=text),))
        except BaseException as error:
            text = f"interrupted by {type(error).__name__}"
            event = ToolReturned(outcome="interrupted", content=(Text(text=text),))
            self.journal.outcome(Draft(event=event, cause=intent.position))
            raise

    # -- effects and values ----------------------------------------------------------------------

    def _run_effect(
        self, effect: Effect[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Steps[object]:
        asked = canonical({"args": list(args), "kwargs": kwargs})
        called = EffectCalled(name=effect.__name__, args=asked, idempotent=effect.idempotent)
        intent, served = self.journal.fact(Draft(event=called))[0]
        outcome = self.journal.recorded(intent) if served else None
        if outcome is None and served and not effect.idempotent:
            event = EffectReturned(outcome="unknown")
            outcome = self.journal.outcome(Draft(event=event, cause=intent.position))
        if outcome is None:
            try:
                body = in_lane(body_lane(intent), lambda: effect.fn(*args, **kwargs))
                value = yield Do(body)
                event = EffectReturned(value=canonical(value))
            except BaseException as error:
                event = EffectReturned(error=failure_of(error), outcome=_ended(effect, error))
                self.journal.outcome(Draft(event=event, cause=intent.position))
                raise
            outcome = self.journal.outcome(Draft(event=event, cause=intent.position))
        said = outcome.event
        assert isinstance(said, EffectReturned)
        if said.outcome == "unknown":
            raise OutcomeUnknown(self.id, outcome.position, effect.__name__)
        if said.error is not None:
            failure = EffectFailure(effect.__name__, said.error)
            raise as_it_was(failure, said.error, getattr(effect.fn, "__globals__", None))
        return said.value

    def value(self, name: str, read: Callable[[], T]) -> T:
        """A value from outside: read once, recorded, and served on a replay.

        What comes back is its JSON form, live as well as on a replay.
        """
        if not callable(read):
            raise WrongType(f"the value {name!r}", read, "a function that reads it")
        if self.journal.serves():
            event: Event = ValueRecorded(name=name)
        else:
            event = ValueRecorded(name=name, value=canonical(read()))
        said = self.say(event).event
        assert isinstance(said, ValueRecorded)
        return cast(T, said.value)

    def now(self) -> datetime.datetime:
        """The time (UTC), recorded."""
        return datetime.datetime.fromtimestamp(self.value("now", time.time), datetime.UTC)

    def today(self) -> str:
        """Today's date (local), as YYYY-MM-DD, recorded."""
        return self.value("today", lambda: datetime.date.today().isoformat())  # noqa: DTZ011

    def uuid(self) -> str:
        """A random UUID, recorded."""
        return self.value("uuid", lambda: str(_uuid.uuid4()))

    def random(self) -> _random.Random:
        """A random generator whose seed is recorded, once a session handle."""
        if self._random is None:
            seed = self.value("random", lambda: _random.SystemRandom().getrandbits(53))
            self._random = _random.Random(seed)
        return self._random

    def env(self, name: str) -> str | None:
        """An environment variable, recorded. Mind that its value is stored."""
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise WrongType("the environment variable", name, "its name as a str")
        return self.value(f"env:{name}", lambda: os.environ.get(name))

    # -- time travel -----------------------------------------------------------------------------

    def at(self, position: int) -> View:
        """The session as it stood when `position` had just happened.

        Raises `UnknownPosition` for a position the session does not have.
        """
        entries = self._entries()
        check_position(position)
        if not entries or not entries[0].position <= position <= entries[-1].position:
            raise UnknownPosition(self.id, position, self.position)
        upto = [entry for entry in entries if entry.position <= position]
        return View(self.id, upto)

    def fork(self, at: int | None = None, *, id: str | None = None) -> Session:
        """A new session that shares this one's entries up to `at` (default: all), by reference.

        Its own entries go on at position `at` + 1. Raises `UnknownPosition`, and `UsageError` in a
        run that is being replayed or resumed, where the fork is not recorded.
        """
        if isinstance(self.journal, Served) and not self.journal.is_live:
            raise UsageError(
                f"{self.id}: a fork made by an agent function is not recorded, so it cannot be "
                "replayed; fork the session outside the function"
            )
        position = self.position if at is None else at
        check_position(position)
        return self.log.fork(self.id, position, id=id)

    def rewind(self, to: int) -> Session:
        """Go back: what came after position `to` is no longer said. It stays in the log.

        Raises `UnknownPosition`.
        """
        self.at(to)
        self.say(HistoryRewound(to=to))
        return self

    # -- what a killed writer left -----------------------------------------------------------------

    def recover(self) -> list[Entry]:
        """Give what a dead writer left open its outcome; the entries that were appended.

        A request without one becomes an interrupted reply with what had streamed of it (at most
        the last 250 ms or 4 KB are lost), or a failed request; a started call becomes `unknown`.
        Nothing else needs it: requests built from a session with open ends are valid anyway.

        Call it only when no other writer is at work on the session: a live one's outcome would
        be refused afterwards.
        """
        self.refresh()
        appended: list[Entry] = []
        for request in self.requests.open:
            left, stream = self._left_of(request.position)
            appended.append(self.journal.outcome(Draft(event=left, cause=request.position)))
            if stream is not None:
                self.log.events.drop(stream)
        for call in self.unknown_calls(self.journal.run):
            event = ToolReturned(outcome="unknown", content=(Text(text=UNKNOWN_TEXT),))
            appended.append(self.journal.outcome(Draft(event=event, cause=call.intent)))
        return appended

    def _left_of(self, position: int) -> tuple[ReplyInterrupted | RequestFailed, str | None]:
        """The outcome of a request whose writer is gone, out of its sibling stream.

        With the stream, if nobody needs it once the outcome is durable.
        """
        request = self._entry(position).event
        assert isinstance(request, RequestSent)
        (stored,) = self.log.events.states(self.id, after=position - 1, upto=position)
        owner = stored[0]  # a fork's request may be its parent's
        stream = f"{owner}~{position}"
        gone = Failure(kind="WriterGone", message="the process ended while it waited for the reply")
        transport = getattr(transports, request.transport, None)
        if not (isinstance(transport, type) and issubclass(transport, MessageTransport)):
            return RequestFailed(error=gone), None  # the user's own; its chunks stay where they are
        reader = transport.stream()
        for entry in self.log.events.read(stream):
            if isinstance(entry.event, StreamChunked):
                for frame in entry.event.frames:
                    reader.feed(frame)
        reply = reader.cut()
        used_up = stream if owner == self.id else None
        if not says_something(reply.message):
            return RequestFailed(error=gone), used_up
        event = ReplyInterrupted(
            message=reply.message,
            reason=gone.message,
            error=gone,
            usage=reply.usage,
            response_id=reply.response_id,
        )
        return event, used_up

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def check_position(position: object) -> None:
    """Raise `WrongType` unless `position` is an int."""
    if isinstance(position, bool) or not isinstance(position, int):
        raise WrongType("a position", position, "an int; session.entries have theirs")


def _format(format: object) -> object:
    if isinstance(format, Mapping):
        return canonical(cast("Mapping[str, Any]", format))
    if format is None or format is msgspec.UNSET:
        return format
    raise WrongType("format", format, "a JSON schema as a mapping")


def _model(model: object) -> object:
    if isinstance(model, str):
        return ModelRef(id=model)
    if model is None or model is msgspec.UNSET or isinstance(model, ModelRef):
        return model
    raise WrongType("model", model, "the model's id as a str, or a brute.ModelRef")


def _tools_in(tools: object) -> list[Tool]:
    is_list = isinstance(tools, Iterable) and not isinstance(tools, (str, Mapping))
    if not is_list:
        give = "a list of functions, or None"
        raise WrongType("tools", tools, give)  # pyright: ignore[reportUnknownArgumentType]
    return list(cast("Iterable[Tool]", tools))


def _refuse_twins(tools: Sequence[Tool]) -> None:
    names = [name_of(tool) for tool in tools]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(
            f"two tools have the name {twice[0]!r}; the model could not tell them apart, so give "
            "one of them another name"
        )


def _check_messages(messages: Sequence[object]) -> None:
    for message in messages:
        if not isinstance(message, Message):
            raise UsageError(
                f"append takes messages, found {type(message).__name__}; "
                "session.user(text) says a text"
            )


def _answers(message: Message, places: Places) -> tuple[int, int] | None:
    """The call that a tool message answers, taken out of `places`; None if there is none."""
    if message.role != "tool" or len(message.parts) != 1:
        return None
    part = message.parts[0]
    found = places.get(part.call_id) if isinstance(part, ToolResult) else None
    return found.pop(0) if found else None


def _returned(message: Message) -> ToolReturned:
    """The outcome that a tool message is; whole where it says more than content and outcome."""
    part = message.parts[0]
    assert isinstance(part, ToolResult)
    return ToolReturned(content=part.content, outcome=part.outcome, message=message)


def _result(call: Call, content: tuple[ResultPart, ...], outcome: Outcome) -> ToolResult:
    return ToolResult(
        call_id=call.call.id,
        name=call.call.name,
        kind=call.call.kind,
        content=content,
        outcome=outcome,
    )


def _refuse_async(functions: Sequence[ToolFunction | None]) -> None:
    for function in functions:
        if _is_async(function):
            raise UsageError(
                f"the tool {name_of(cast(Tool, function))} is async and nothing here awaits it; "
                "write `await session.run_calls(reply, is_async=True)`"
            )


def _is_async(tool: object) -> bool:
    function = getattr(tool, "fn", tool)
    return inspect.iscoroutinefunction(function)


def _ended(effect: Effect[..., Any], error: BaseException) -> Literal["error", "unknown"]:
    """How an effect that raised has ended.

    Ctrl-C and cancellation come from outside: what the effect had done by then nobody knows.
    """
    return "error" if isinstance(error, Exception) or effect.idempotent else "unknown"


def _in_lane(lane: str, steps: Steps[ToolResult]) -> ToolResult:
    token = LANE.set(lane)
    try:
        return run_sync(steps)
    finally:
        LANE.reset(token)


def _refusal(call: Call, tool: object) -> str | None:
    """Why a call is answered with an error instead of being run."""
    if call.call.malformed is not None:
        return f"The call was not run: {call.call.malformed}."
    if not call.runnable:
        return "The call was not run: the reply that asks for it was cut off."
    if tool is None:
        return f"The call was not run: there is no tool named {call.call.name!r}."
    return None
