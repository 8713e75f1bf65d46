"""The logic of a turn is one generator; here it is driven, once for sync and once for async code.

A generator that does something in the world yields an operation and is sent its result (or has
its error thrown in). Everything else in it is plain code, the same for both.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any, TypeAlias, TypeVar, cast

from msgspec import Struct

from brute.events.errors import UsageError

T = TypeVar("T")


class Do(Struct, frozen=True):
    """Run `thunk`; its result is sent back, awaited if it is awaitable."""

    thunk: Callable[[], object]
    blocking: bool = False
    """The thunk is plain code that may take long: an event loop runs it in a thread."""


class Next(Struct, frozen=True):
    """Take the next chunk of `stream`; `END` is sent back after the last one."""

    stream: object


class Emit(Struct, frozen=True):
    """Hand `delta` to whoever iterates; a caller that does not iterate never sees it."""

    delta: object


class Left(BaseException):
    """Whoever iterated stopped reading; the driver is still there, to close what was opened.

    A `GeneratorExit` says the same and more: the driver is gone too, and awaits nothing. (Thrown
    into steps it would also reach those they delegate to as a `close`.)
    """


Operation: TypeAlias = Do | Next | Emit
Steps: TypeAlias = Generator[Operation, Any, T]


class _End:
    def __repr__(self) -> str:
        return "END"


END = _End()


def run_sync(steps: Steps[T]) -> T:
    """Drive `steps` to their end on this thread; returns their result."""
    stepper = iterate_sync(steps)
    while True:
        try:
            next(stepper)
        except StopIteration as stop:
            return cast(T, stop.value)


def iterate_sync(steps: Steps[T]) -> Generator[object, None, T]:
    """Drive `steps` on this thread and yield what they emit."""
    result: object = None
    error: BaseException | None = None
    while True:
        try:
            operation = steps.throw(error) if error is not None else steps.send(result)
        except StopIteration as stop:
            return cast(T, stop.value)
        except Left as left:
            raise GeneratorExit from left
        result = error = None
        try:
            if isinstance(operation, Emit):
                try:
                    yield operation.delta
                except GeneratorExit as left:
                    raise Left from left
            else:
                result = _perform(operation)
        except BaseException as raised:  # noqa: BLE001 - thrown into the steps, which decide
            error = raised


def _perform(operation: Do | Next) -> object:
    if isinstance(operation, Do):
        result = operation.thunk()
        if inspect.isawaitable(result):
            _discard(result)
            raise UsageError(
                "an async function was given where plain code drives; "
                "declare the run function and the agent `async def` and await the call"
            )
        return result
    try:
        return next(cast("Iterator[object]", operation.stream))
    except StopIteration:
        return END


def _discard(awaitable: Awaitable[object]) -> None:
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()  # otherwise Python warns that it was never awaited


async def run_async(steps: Steps[T]) -> T:
    """Drive `steps` to their end on the event loop; returns their result."""
    result: object = None
    error: BaseException | None = None
    while True:
        try:
            operation = steps.throw(error) if error is not None else steps.send(result)
        except StopIteration as stop:
            return cast(T, stop.value)
        result = error = None
        if isinstance(operation, Emit):
            continue
        try:
            result = await _perform_async(operation)
        except BaseException as raised:  # noqa: BLE001 - thrown into the steps, which decide
            error = raised


async def iterate_async(steps: Steps[T]) -> AsyncIterator[object]:
    """Drive `steps` on the event loop and yield what they emit."""
    result: object = None
    error: BaseException | None = None
    while True:
        try:
            operation = steps.throw(error) if error is not None else steps.send(result)
        except StopIteration:
            return
        except Left as left:
            raise GeneratorExit from left
        result = error = None
        try:
            if isinstance(operation, Emit):
                try:
                    yield operation.delta
                except GeneratorExit as left:
                    raise Left from left
            else:
                result = await _perform_async(operation)
        except BaseException as raised:  # noqa: BLE001 - thrown into the steps, which decide
            error = raised


async def _perform_async(operation: Do | Next) -> object:
    if isinstance(operation, Do):
        if operation.blocking:
            return await asyncio.to_thread(operation.thunk)
        result = operation.thunk()
        return await result if inspect.isawaitable(result) else result
    if hasattr(operation.stream, "__anext__"):
        try:
            return await cast("AsyncIterator[object]", operation.stream).__anext__()
        except StopAsyncIteration:
            return END
    # A plain iterator handed out by an async run function: its next chunk may block.
    return await asyncio.to_thread(next, cast("Iterator[object]", operation.stream), END)
