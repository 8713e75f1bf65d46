"""A turn: one request, its reply, and the settings it runs with."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast, overload

import msgspec

from brute.drive import (
    END,
    Do,
    Emit,
    Left,
    Next,
    Steps,
    iterate_async,
    iterate_sync,
    run_async,
    run_sync,
)
from brute.effects import AnyRun, AsyncRun, Run
from brute.events.entries import Entry
from brute.events.errors import (
    AlreadyAnswered,
    BruteError,
    Conflict,
    StoreError,
    UsageError,
    WrongType,
)
from brute.events.events import (
    Event,
    Lifetime,
    ReplyInterrupted,
    ReplyReceived,
    RequestFailed,
    RequestRetried,
    RequestSent,
    Settings,
    StreamChunked,
)
from brute.events.log import Draft
from brute.events.messages import AnyPart, Message, Role, Text
from brute.journal import body_lane, in_lane
from brute.prompt import Hook, Prompt, Target
from brute.replies import AsyncReply, Reply, RequestFailure, StreamCut, as_it_was
from brute.tools import failure_of
from brute.transports.base import Delta, MessageTransport, Request, StreamReader
from brute.transports.base import Reply as Received
from brute.transports.shapes import PlainView

if TYPE_CHECKING:
    from brute.session import Session

T = TypeVar("T")

RETRIES = 10

FEW = 50
"""Messages up to which building a request is quicker than handing it to a thread."""

SERVED = -1
"""`upto` of a request that is compared with a recording and not built."""

CHECKPOINT_SECONDS = 0.25
CHECKPOINT_BYTES = 4096
"""How much of a reply that is still arriving may be lost to a kill: what came since the last
checkpoint, which is taken when either is exceeded."""


class Turn:
    """One request/reply round of a session. Use it as a context manager, or through `complete`.

    Prompt changes made on a turn last for this request only, unless told otherwise.
    """

    def __init__(self, session: Session, settings: Settings, hooks: Sequence[Hook] = ()) -> None:
        self.session = session
        self.settings = settings
        """The settings this turn runs with."""
        self.journal = session.journal
        self._hooks = hooks
        for hook in hooks:
            check_hook(hook)
        self._started: Entry | None = None
        self._intent: Entry | None = None
        self._transport: type[MessageTransport] | None = None
        self._driven = False  # whether the exchange has begun: it records its own outcome
        self._prompt = Prompt(self, "person", "turn")

    # -- the view a transport renders --------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """The message list this turn will send, its own prompt changes included."""
        return self.session.messages

    @property
    def positions(self) -> list[int]:
        """The position behind each message."""
        return self.session.positions

    @property
    def position(self) -> int:
        """The position of the turn; starting the turn if it has not started."""
        return self._start().position

    # -- prompt mutators -----------------------------------------------------------------------

    def hook(self, name: str, lifetime: Lifetime = "turn") -> Prompt:
        """The prompt of this turn as the hook `name` edits it: its changes bear that name."""
        return Prompt(self, f"hook:{name}", lifetime)

    def append(
        self, role: Role | Message, *parts: str | AnyPart, lifetime: Lifetime | None = None
    ) -> Entry:
        """Add a message at the end of the prompt, for this request (see `Prompt.append`)."""
        return self._prompt.append(role, *parts, lifetime=lifetime)

    def prepend(
        self, role: Role | Message, *parts: str | AnyPart, lifetime: Lifetime | None = None
    ) -> Entry:
        """Add a message at the front of the prompt, for this request."""
        return self._prompt.prepend(role, *parts, lifetime=lifetime)

    def append_to(
        self, target: Target, *parts: str | AnyPart, lifetime: Lifetime | None = None
    ) -> Entry:
        """Add parts to a message of the prompt, for this request."""
        return self._prompt.append_to(target, *parts, lifetime=lifetime)

    def insert_before(
        self,
        target: Target,
        role: Role | Message,
        *parts: str | AnyPart,
        lifetime: Lifetime | None = None,
    ) -> Entry:
        """Add a message before another one, for this request."""
        return self._prompt.insert_before(target, role, *parts, lifetime=lifetime)

    def insert_after(
        self,
        target: Target,
        role: Role | Message,
        *parts: str | AnyPart,
        lifetime: Lifetime | None = None,
    ) -> Entry:
        """Add a message after another one, for this request."""
        return self._prompt.insert_after(target, role, *parts, lifetime=lifetime)

    def say(self, event: Event) -> Entry:
        """Append one event of this turn's prompt. Raises `UsageError` once the request has left."""
        if self._intent is not None:
            raise UsageError(
                f"the request of this turn left at position {self._intent.position}; "
                "change the prompt before the turn is sent, or in the next turn"
            )
        self._start()
        return self.journal.fact(Draft(event=event))[0][0]

    # -- sending -------------------------------------------------------------------------------

    @overload
    def send(self, run: AsyncRun[object]) -> Coroutine[Any, Any, AsyncReply]: ...
    @overload
    def send(self, run: Run[object]) -> Reply: ...
    def send(self, run: AnyRun[object]) -> Reply | Coroutine[Any, Any, Reply]:
        """Send the turn through a run function; its `Reply`, awaited if the function is async.

        Whatever the function raises is recorded as the outcome and raised as it was.
        Raises `StreamCut` when a streamed reply ended before it was done.
        """
        check_run(run)
        steps = self.steps(run)
        return run_async(steps) if run.is_async else run_sync(steps)

    @overload
    def stream(self, run: AsyncRun[object]) -> AsyncGenerator[Delta, None]: ...
    @overload
    def stream(self, run: Run[object]) -> Generator[Delta, None, Reply]: ...
    def stream(
        self, run: AnyRun[object]
    ) -> Generator[Delta, None, Reply] | AsyncGenerator[Delta, None]:
        """Send the turn and iterate over the deltas (`async for` if the function is async).

        The reply is recorded when the iteration ends; it is `turn.reply` then. Leaving the loop
        early records an interrupted reply once the iterator is closed.
        """
        check_run(run)
        steps = self.steps(run)
        if run.is_async:
            return cast("AsyncGenerator[Delta, None]", iterate_async(steps))
        return cast("Generator[Delta, None, Reply]", iterate_sync(steps))

    reply: Reply | None = None
    """The reply, once the turn has it."""

    def build(self, transport: type[MessageTransport], **options: object) -> Request:
        """Build this turn's request and record that it is sent. `transport.request(turn)` calls it.

        Raises `UsageError` in a replay, where the SDK call that follows would be a real one.
        """
        if self.journal.serves():
            raise UsageError(
                "this turn is being replayed, and a request built here would be sent by your own "
                "SDK call. Pair that call with its transport (@brute.run) and give it to "
                "session.complete or turn.send: on a replay it is not entered"
            )
        return run_sync(self._request_steps(transport, options))[2]

    @overload
    def receive(  # type: ignore[overload-overlap]
        self,
        transport: type[MessageTransport],
        result: AsyncIterable[object] | AbstractAsyncContextManager[object],
    ) -> Coroutine[Any, Any, AsyncReply]: ...
    @overload
    def receive(self, transport: type[MessageTransport], result: object) -> Reply: ...
    def receive(
        self, transport: type[MessageTransport], result: object
    ) -> Reply | Coroutine[Any, Any, Reply]:
        """Record what your own SDK call returned: a reply, or a stream (consumed here).

        Returns the `Reply`; awaited if the stream is an async one.
        Raises `UsageError` if no request was built from this turn.
        """
        if self._intent is None or self._transport is not transport:
            raise UsageError(
                f"no {transport.__name__} request was built from this turn; write "
                f"turn.receive({transport.__name__}, create(**{transport.__name__}.request(turn)))"
            )
        is_async = any(hasattr(result, name) for name in ("__anext__", "__aiter__", "__aenter__"))
        steps = self._finish(self._exchange(self._intent, transport, lambda: result), is_async)
        return run_async(steps) if is_async else run_sync(steps)

    def _start(self) -> Entry:
        if self._started is None:
            self._started = self._unhurried(lambda: self.journal.fact(self._opening()))[0][0]
            self._run_hooks()
        return self._started

    def _unhurried(self, say: Callable[[], T]) -> T:
        """Say something built from all that is known; again, if only inputs came in meanwhile."""
        for _ in range(RETRIES):
            self.session.refresh()
            try:
                return say()
            except Conflict:
                if not self.journal.inputs_only():
                    raise
        return say()

    def _opening(self) -> Draft:
        return Draft(event=self.session.settings.changes_to(self.settings))

    def _run_hooks(self) -> None:
        for hook in self._hooks:
            hook(self.hook(getattr(hook, "__name__", "hook")))

    def _request_steps(
        self, transport: type[MessageTransport], options: Mapping[str, object]
    ) -> Steps[tuple[Entry, bool, Request]]:
        """Build the request and record that it leaves; again, if inputs came in meanwhile."""
        if self._intent is not None:
            raise UsageError("this turn was sent already; start another one with session.turn()")
        if self._hooks:
            self._start()
        for attempt in range(RETRIES + 1):
            self.session.refresh()
            request, sent = yield from self._build_steps(transport, options)
            if sent.upto not in (SERVED, self._upto) and attempt < RETRIES:
                continue  # something was said in this very session while it was built
            try:
                return self._say_request(transport, request, sent)
            except Conflict:
                if attempt == RETRIES or not self.journal.inputs_only():
                    raise
        raise AssertionError("unreachable")

    def _build_steps(
        self, transport: type[MessageTransport], options: Mapping[str, object]
    ) -> Steps[tuple[Request, RequestSent]]:
        if self.journal.serves():  # the body is proven by the facts before it
            return Request(), RequestSent(transport=transport.__name__, upto=SERVED)
        if self._started is None and self.session.changed_for_turn:
            self._start()  # what another turn had changed for itself ends here
        view, upto = PlainView(self.messages, self.settings), self._upto

        def build() -> tuple[Request, RequestSent]:
            request = transport.render(view, **options)
            return request, self._sent(transport, options, request, upto)

        # A long prompt takes longer to build than a commit: an event loop has it done in a thread.
        built: tuple[Request, RequestSent] = yield Do(build, blocking=len(view.messages) > FEW)
        return built

    @property
    def _upto(self) -> int:
        # A turn without prompt changes and its request are one commit.
        return self.session.position + (self._started is None)

    def _say_request(
        self, transport: type[MessageTransport], request: Request, sent: RequestSent
    ) -> tuple[Entry, bool, Request]:
        drafts = [self._opening()] if self._started is None else []
        facts = self.journal.fact(*drafts, Draft(event=sent))
        if drafts:
            self._started = facts[0][0]
        self._intent, served = facts[-1]
        self._transport = transport
        return self._intent, served, request

    @staticmethod
    def _sent(
        transport: type[MessageTransport],
        options: Mapping[str, object],
        request: Request,
        upto: int,
    ) -> RequestSent:
        items, settings = transport.items(request), transport.settings(request)
        return RequestSent(
            transport=transport.__name__,
            version=transport.VERSION,
            options=dict(options) or None,
            upto=upto,
            settings=digest(settings),
            chain=digest(*items),
            items=len(items),
        )

    def steps(self, run: AnyRun[object]) -> Steps[Reply]:
        """The turn as a generator that a driver runs (`brute.drive`)."""
        intent, served, request = yield from self._request_steps(run.transport, run.options)
        outcome = self.journal.recorded(intent) if served else None
        if outcome is not None:
            return self._done(outcome, run.is_async, getattr(run.fn, "__globals__", None))
        if served:  # the process died between request and reply: ask again
            request = run.transport.render(self, **run.options)
            retried = RequestRetried(why="no outcome in the log")
            self.journal.observe(Draft(event=retried, cause=intent.position))
            self.session.log.events.drop(f"{self.session.id}~{intent.position}")
        call = in_lane(body_lane(intent), lambda: run(request))
        steps = self._exchange(intent, run.transport, call)
        return (yield from self._finish(steps, run.is_async))

    def _finish(self, steps: Steps[Entry], is_async: bool) -> Steps[Reply]:
        return self._done((yield from steps), is_async)

    def _exchange(
        self, intent: Entry, transport: type[MessageTransport], call: Callable[[], object]
    ) -> Steps[Entry]:
        """Make the call, read the reply or the stream, and record the one outcome."""
        self._driven = True
        checkpoint = _Checkpoint(self.session, intent.position)
        reader: StreamReader | None = None
        stream: object = None
        try:
            result = yield Do(call)
            if _is_async_manager(result):
                result = yield Do(result.__aenter__)
            stream = opened(result)
            if stream is None:
                event = received(transport.reply(result))
            else:
                reader = transport.stream()
                while (chunk := (yield Next(stream))) is not END:
                    frame = transport.plain(chunk)  # once: an SDK's object takes long to convert
                    for delta in reader.feed(frame):
                        yield Emit(delta)
                    checkpoint.add(frame)
                event = received(reader.finish())
        except BaseException as error:
            # An abandoned iterator may be collected when the log is closed: no one to tell.
            unseen = (BruteError,) if isinstance(error, (GeneratorExit, Left)) else ()
            try:
                with contextlib.suppress(*unseen):
                    self.journal.outcome(Draft(event=failed(reader, error), cause=intent.position))
                checkpoint.drop()
            finally:
                yield from _let_go(stream, error)
            raise
        try:
            outcome = self.journal.outcome(Draft(event=event, cause=intent.position))
        except StoreError as error:  # it was paid for: whoever catches this can still have it
            error.unsaved = event.message
            raise
        checkpoint.drop()
        return outcome

    def _done(
        self, outcome: Entry, is_async: bool, namespace: Mapping[str, object] | None = None
    ) -> Reply:
        event = outcome.event
        where = self.session.id, outcome.position
        if isinstance(event, RequestFailed):
            raise as_it_was(RequestFailure(*where, event.error), event.error, namespace)
        if isinstance(event, ReplyInterrupted):
            cut = StreamCut(*where, event.reason)
            raise as_it_was(cut, event.error, namespace) if event.error else cut
        assert isinstance(event, ReplyReceived)
        kind = AsyncReply if is_async else Reply
        self.reply = kind(outcome.position, event, self.session.calls.of(outcome.position))
        return self.reply

    def __enter__(self) -> Turn:
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """A request that was built here and never answered gets its outcome."""
        if self._intent is None or self._driven or self._answered(self._intent):
            return
        reason = error if error is not None else UsageError("the turn ended without receive()")
        failure = RequestFailed(error=failure_of(reason))
        with contextlib.suppress(AlreadyAnswered):  # another writer has given it one
            self.journal.outcome(Draft(event=failure, cause=self._intent.position))

    def _answered(self, intent: Entry) -> bool:
        return self.session.requests.outcome_of(intent.position) is not None


def check_run(run: object) -> None:
    """Raise `WrongType` unless `run` is a run function."""
    if not isinstance(run, AnyRun):
        raise WrongType("a run function", run, "a function decorated with @brute.run(Transport)")


def check_hook(hook: object) -> None:
    """Raise unless `hook` is a plain function: `WrongType`, or `UsageError` for an async one."""
    if not callable(hook):
        raise WrongType("a hook", hook, "a function that takes a brute.Prompt")
    if inspect.iscoroutinefunction(hook):
        raise UsageError(
            f"the hook {getattr(hook, '__name__', hook)!r} is async; a hook is a plain function: "
            "await what it needs before the turn"
        )


def received(reply: Received) -> ReplyReceived | ReplyInterrupted:
    """The event that a transport's reply is."""
    if reply.finish == "interrupted":
        return ReplyInterrupted(
            message=reply.message,
            reason="the stream ended without a stop record",
            usage=reply.usage,
            response_id=reply.response_id,
        )
    return ReplyReceived(
        message=reply.message,
        finish=reply.finish,
        finish_raw=reply.finish_raw,
        usage=reply.usage,
        response_id=reply.response_id,
    )


def failed(reader: StreamReader | None, error: BaseException) -> ReplyInterrupted | RequestFailed:
    """The outcome of a request whose call or stream raised."""
    failure = failure_of(GeneratorExit() if isinstance(error, Left) else error)
    partial = reader.cut() if reader is not None else None
    if partial is None or not says_something(partial.message):
        return RequestFailed(error=failure)
    return ReplyInterrupted(
        message=partial.message,
        reason=_REASONS.get(failure.kind, "the stream broke"),
        error=failure,
        usage=partial.usage,
        response_id=partial.response_id,
    )


def says_something(message: Message) -> bool:
    """Whether anything had come of a reply: an empty text is nothing."""
    return any(part != EMPTY for part in message.parts)


EMPTY = Text(text="")

_REASONS = {
    "GeneratorExit": "the caller stopped reading",
    "KeyboardInterrupt": "interrupted by the user",
    "CancelledError": "the task was cancelled",
}


def opened(result: object) -> object | None:
    """The stream in what a run function returned, or None when it is a whole reply.

    An SDK's stream manager (`messages.stream(…)`) is entered; an async one was entered before.
    """
    if hasattr(result, "__next__") or hasattr(result, "__anext__"):
        return result
    if hasattr(result, "__enter__") and not hasattr(result, "__iter__"):
        return cast(object, cast(Any, result).__enter__())
    if isinstance(result, Awaitable) or not hasattr(result, "__aiter__"):
        return None
    return cast(object, cast(Any, result).__aiter__())


def _is_async_manager(result: object) -> TypeGuard[AbstractAsyncContextManager[object]]:
    """Whether a run function returned what an SDK's `messages.stream(…)` gives async code."""
    return hasattr(result, "__aenter__") and not hasattr(result, "__aiter__")


def _let_go(stream: object, error: BaseException) -> Steps[None]:
    """Close a stream that was not read to its end; that even this fails is not what matters."""
    with contextlib.suppress(Exception):
        if not hasattr(stream, "__anext__"):
            _close(stream)
        elif not isinstance(error, GeneratorExit):  # then nothing can be awaited any more
            yield Do(lambda: _close(stream))


def _close(stream: object) -> object:
    close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
    return close() if close is not None else None


class _Checkpoint:
    """Keeps what has come of a streaming reply in a sibling stream of the session.

    It is read only when the request never gets an outcome, and dropped when it does.
    """

    def __init__(self, session: Session, position: int) -> None:
        self._events, self._stream = session.log.events, f"{session.id}~{position}"
        self._frames: list[Any] = []
        self._bytes, self._count, self._works = 0, 0, True
        self._since = time.monotonic()

    def add(self, frame: object) -> None:
        if not self._works:
            return
        self._frames.append(frame)
        self._bytes += len(str(frame))
        due = time.monotonic() - self._since >= CHECKPOINT_SECONDS
        if due or self._bytes >= CHECKPOINT_BYTES:
            self._take()
            self._frames, self._bytes, self._since = [], 0, time.monotonic()

    def _take(self) -> None:
        chunk = Draft(event=StreamChunked(frames=tuple(self._frames)))
        try:
            if not self._count:  # what an earlier try of this request left
                self._events.drop(self._stream)
            self._events.append(self._stream, [chunk], expect=self._count - 1)
            self._count += 1
        except BruteError:  # a reply that arrives is worth more than its checkpoint
            self._works = False

    def drop(self) -> None:
        if self._count:
            with contextlib.suppress(BruteError):  # it is never read once there is an outcome
                self._events.drop(self._stream)


_encode = msgspec.json.Encoder().encode


def digest(*values: object) -> str:
    """A chain digest over values: 16 hex digits, the same in every process."""
    state = hashlib.blake2b(digest_size=8)
    for value in values:
        try:
            data = _encode(value)
        except UnicodeEncodeError:  # a lone surrogate; the digest still has to name the body
            data = repr(value).encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.hexdigest()
