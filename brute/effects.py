"""`@brute.run` and `@brute.effect`: what is not entered again on a replay."""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import Callable, Coroutine, Mapping
from types import MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Never,
    ParamSpec,
    Protocol,
    TypeVar,
    overload,
)

from brute.transports.base import MessageTransport

if TYPE_CHECKING:
    from brute.session import Session

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

CURRENT: contextvars.ContextVar[Session | None] = contextvars.ContextVar(
    "brute-session", default=None
)
"""The session of the agent function that is running."""


class AnyRun(Generic[R_co]):
    """What a plain and an async run function share."""

    is_async: ClassVar[bool]

    def __init__(
        self,
        transport: type[MessageTransport],
        fn: Callable[[dict[str, Any]], R_co],
        options: Mapping[str, Any],
    ) -> None:
        self.transport, self.fn, self.options = transport, fn, dict(options)
        self.__name__ = getattr(fn, "__name__", "run")
        self.__doc__ = fn.__doc__

    def __call__(self, request: dict[str, Any]) -> R_co:
        """Make the call."""
        return self.fn(request)

    def __repr__(self) -> str:
        return f"<run {self.__name__} through {self.transport.__name__}>"


class Run(AnyRun[R_co]):
    """A run function: your SDK call, paired with the transport that speaks its library.

    Calling it calls your function. On a replay it is not entered.
    """

    is_async = False


class AsyncRun(AnyRun[R_co]):
    """A run function that is `async def`; what it is given to is awaited."""

    is_async = True


class Pairing(Protocol):
    """What `brute.run(transport)` gives: a decorator for the function that makes the call.

    A coroutine is an object too; the first signature that fits is meant. (A function that says
    it returns `Any` fits the very first one only for that reason: it is taken for a plain one.)
    """

    @overload
    def __call__(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
        self, fn: Callable[[dict[str, Any]], Never], /
    ) -> Run[Any]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
        self, fn: Callable[[dict[str, Any]], Coroutine[Any, Any, R]], /
    ) -> AsyncRun[Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, fn: Callable[[dict[str, Any]], R], /) -> Run[R]: ...


def run(transport: type[MessageTransport], **options: object) -> Pairing:
    """Pair a function that makes the SDK call with its transport.

    The function gets the keyword arguments of the SDK's method and returns its reply or stream;
    `async def` works alike. `options` go to the transport each time a request is built.

        @brute.run(Anthropic)
        def claude(request):
            return client.messages.create(**request)
    """

    def pair(fn: Callable[[dict[str, Any]], Any], /) -> Any:
        if inspect.iscoroutinefunction(fn):
            return AsyncRun(transport, fn, options)
        return Run(transport, fn, options)

    return pair


class Effect(Generic[P, R]):
    """A function whose outcome is recorded when an agent function calls it.

    Outside an agent function it is the plain function.
    """

    def __init__(self, fn: Callable[P, R], *, idempotent: bool = False) -> None:
        self.fn, self.idempotent = fn, idempotent
        self.__name__ = getattr(fn, "__name__", "effect")
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function, recorded when an agent function calls it."""
        session = CURRENT.get()
        if session is None:
            return self.fn(*args, **kwargs)
        return session.call(self, *args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Effect[..., R]:
        """The effect itself, or bound to an instance when it is a method."""
        if instance is None:
            return self
        return Effect(MethodType(self.fn, instance), idempotent=self.idempotent)

    def __repr__(self) -> str:
        return f"<effect {self.__name__}>"


@overload
def effect(fn: Callable[P, R], /) -> Effect[P, R]: ...
@overload
def effect(*, idempotent: bool = False) -> Callable[[Callable[P, R]], Effect[P, R]]: ...
def effect(fn: Callable[..., Any] | None = None, /, *, idempotent: bool = False) -> Any:
    """Record what a function does to, or learns from, the world.

    In an agent function its intent is durable before it runs and its outcome after; a replay is
    served the outcome. After a crash between the two nobody knows whether it ran: the outcome is
    `unknown` and it is not run again, unless it is declared `idempotent`.

    In a thread of your own Python does not know the session any more: call it there as
    `session.call(fn, …)`.
    """
    if fn is not None:
        return Effect(fn)

    def declare(function: Callable[P, R]) -> Effect[P, R]:
        return Effect(function, idempotent=idempotent)

    return declare
