"""What goes in and out of a transport besides messages: requests, replies, deltas, reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from msgspec import Struct

from brute.events.errors import TransportError
from brute.events.events import Settings
from brute.events.jsontypes import JSON, JSONObject
from brute.events.messages import Finish, Message, Origin, Usage

if TYPE_CHECKING:
    from brute.transports.base import MessageTransport

Grade = Literal["hard", "conservative"]
"""Hard: refused, whoever wrote the message. Conservative: it shapes what is ours."""


# -- out -----------------------------------------------------------------------------------------


@runtime_checkable
class View(Protocol):
    """What a request is rendered from: a list of messages and the settings they go with."""

    @property
    def messages(self) -> Sequence[Message]:
        """The canonical message list."""
        ...

    @property
    def settings(self) -> Settings:
        """Model, tools, parameters, system text and format."""
        ...


@runtime_checkable
class Buildable(Protocol):
    """A turn: it records that a request is sent and calls the transport's `render` itself."""

    def build(self, transport: type[MessageTransport], **options: Any) -> Request:
        """The request, recorded."""
        ...


class PlainView(Struct, frozen=True):
    """A view of a plain list."""

    messages: Sequence[Message]
    settings: Settings


class Loss(Struct, frozen=True, kw_only=True):
    """One thing that the target does not get as it stands in the messages."""

    kind: Literal["added", "changed", "renamed", "moved", "omitted"]
    rule: str
    """The rule behind it, as `check` names it."""
    message: int | None = None
    """Index in the list that was given; None when it is not about one message."""
    part: int | None = None
    what: str = ""
    became: str | None = None
    """For a rename: the word on the wire."""

    def __str__(self) -> str:
        place = "the request" if self.message is None else f"message {self.message}"
        if self.part is not None:
            place += f", part {self.part}"
        return f"{place}: {self.kind}: {self.what} ({self.rule})"


class Violation(Struct, frozen=True, kw_only=True):
    """One place where a request breaks a rule of its provider."""

    rule: str
    pointer: str
    """JSON pointer into the request."""
    found: str
    now: str
    """What to do."""
    grade: Grade

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.found}; {self.now} ({self.rule}, {self.grade})"


class Request(dict[str, Any]):
    """The keyword arguments of the SDK's call: `client.messages.create(**request)`."""

    __slots__ = ("_losses", "_report")

    def __init__(
        self,
        arguments: Mapping[str, JSON] | None = None,
        report: Callable[[], list[Loss]] | None = None,
    ) -> None:
        super().__init__(arguments or {})
        self._report = report
        self._losses: list[Loss] | None = None

    @property
    def losses(self) -> list[Loss]:
        """What was repaired, renamed, moved or left out (found out when first asked for)."""
        if self._losses is None:
            self._losses = self._report() if self._report is not None else []
        return self._losses

    @property
    def renamed(self) -> dict[str, str]:
        """Names of tools that the provider's pattern refuses: the name on the wire -> ours."""
        return {
            loss.became: loss.what
            for loss in self.losses
            if loss.kind == "renamed" and loss.became is not None and loss.part is None
        }


# -- in ------------------------------------------------------------------------------------------


class Received(dict[str, Any]):
    """One message of a library, with what the response around it says about it."""

    __slots__ = ("finish", "marks", "origin")

    def __init__(
        self,
        message: Mapping[str, JSON],
        origin: Origin,
        finish: Finish | None = None,
        marks: JSONObject | None = None,
    ) -> None:
        super().__init__(message)
        self.origin = origin
        self.finish: Finish | None = finish
        """For a reply: why it ended."""
        self.marks = marks or {}
        """What the place of the message says (system text at the top, a new wire message)."""


class Delta(Struct, frozen=True, kw_only=True, gc=False):
    """A piece of a reply that is arriving; enough to print it."""

    text: str = ""
    reasoning: str = ""
    call: int | None = None
    """Which call of the reply this is a piece of, counted from 0."""
    name: str = ""
    arguments: str = ""


class Reply(Struct, frozen=True, kw_only=True):
    """A whole reply, or what had come of one that was interrupted."""

    message: Message
    finish: Finish
    finish_raw: str | None = None
    """The provider's own word."""
    usage: Usage | None = None
    response_id: str | None = None


class ProviderError(TransportError):
    """The provider answered with an error instead of a reply, or broke a stream off with one."""

    def __init__(
        self, api: str, kind: str, message: str, status: int | None = None, body: JSON = None
    ) -> None:
        super().__init__(api, kind, message, status, body)
        self.api, self.kind, self.message, self.status, self.body = api, kind, message, status, body
        self.reply: Reply | None = None
        """What had come before, when a stream was broken off."""

    def __str__(self) -> str:
        status = f" (HTTP {self.status})" if self.status is not None else ""
        return f"{self.api}: the provider answered {self.kind}{status}: {self.message}"


class UnreadableReply(TransportError):
    """The bytes or the object are no reply of this API."""

    def __init__(self, api: str, found: str) -> None:
        super().__init__(api, found)
        self.api, self.found = api, found

    def __str__(self) -> str:
        return (
            f"{self.api}: {self.found} is no reply of this API; give the response, its JSON, "
            "its stream, or check that the transport is the one of the library you called"
        )


class NotSendable(TransportError):
    """`strict=True`, and the messages could only be sent with repairs."""

    def __init__(self, api: str, losses: list[Loss]) -> None:
        super().__init__(api, losses)
        self.api, self.losses = api, losses

    def __str__(self) -> str:
        more = f" (and {len(self.losses) - 1} more)" if len(self.losses) > 1 else ""
        return (
            f"{self.api}: {self.losses[0]}{more}; mend the messages, or leave strict out and "
            "the request is repaired and the losses reported"
        )
