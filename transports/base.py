"""The seam: canonical messages out to a library's request, its reply back in.

A transport is pure: values in, values out; no socket, no clock, no randomness, no vendor SDK.
Everything that is the same for all libraries is here and in `plan`: flattening whatever came
back, streams, planning a list so that the provider takes it. A transport file adds its table of
rules, how one message is read (`wrap`) and how one is written (`dump`).
"""

from __future__ import annotations

import re
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, ClassVar, TypeAlias, cast, overload

from msgspec.structs import replace

from brute.events.events import ModelRef, Settings, ToolSpec
from brute.events.jsontypes import JSON, JSONObject
from brute.events.messages import Finish, Message, Origin, ToolCall, Usage
from brute.transports.normal import normal
from brute.transports.plan import Plan, plan
from brute.transports.rules import Aim, Rules, fitting
from brute.transports.sdk_objects import without_objects
from brute.transports.shapes import (
    Buildable,
    Delta,
    Loss,
    NotSendable,
    PlainView,
    ProviderError,
    Received,
    Reply,
    Request,
    UnreadableReply,
    View,
    Violation,
)
from brute.transports.stream import StreamReader, error_in
from brute.transports.wire import is_object, objects, plain, read_json

__all__ = [
    "Buildable",
    "Delta",
    "Loss",
    "MessageTransport",
    "NotSendable",
    "ProviderError",
    "Received",
    "Reply",
    "Request",
    "StreamReader",
    "UnreadableReply",
    "View",
    "Violation",
]

Dumped: TypeAlias = "dict[str, Any] | list[dict[str, Any]]"

AIMS = frozenset({"provider", "platform", "now", "strict", "profile"})
"""Options that say where a request goes; every other option of `request` is a part of it."""

CLIENT_TOOLS = frozenset({"function", "custom"})
"""Kinds of tools that the client runs; any other is a provider's own."""

NOT_IN_BODY = frozenset({"extra_headers", "extra_query", "extra_body", "timeout"})
"""Arguments of an SDK's call that are no part of the body."""


class _WrapEach:
    """`wrap_each`: called on the class with a result, on an instance without."""

    @overload
    def __get__(
        self, instance: None, owner: type[MessageTransport]
    ) -> Callable[[object], Iterator[Message]]: ...
    @overload
    def __get__(
        self, instance: MessageTransport, owner: type[MessageTransport]
    ) -> Callable[[], Iterator[Message]]: ...
    def __get__(
        self, instance: MessageTransport | None, owner: type[MessageTransport]
    ) -> Callable[..., Iterator[Message]]:
        if instance is None:

            def wrap_each(result: object) -> Iterator[Message]:
                return owner(result).each()

            return wrap_each
        return instance.each


class MessageTransport:
    """The translator between messages and one library's shapes.

    To support a library that has no shipped transport, subclass it and override `wrap` (inbound)
    and `dump` (outbound); flattening, iteration and the pairing of calls with results are here.
    """

    api: ClassVar[str] = ""
    """The API whose shapes these are; the key of what only it says."""
    VERSION: ClassVar[int] = 1
    """Rises when the same messages are written differently than before."""
    rules: ClassVar[Rules] = Rules()
    reader: ClassVar[type[StreamReader] | None] = None
    finishes: ClassVar[Mapping[str, Finish]] = {}
    """The provider's words for why a reply ended."""

    sent = False
    """Whether the messages in hand were sent (a request's), not received."""

    def __init__(self, result: object = None) -> None:
        self.result = result

    # -- in: what a subclass overrides -----------------------------------------------------------

    def wrap(self, message: Any) -> Message:
        """One message of the library as a `Message`. A subclass says how."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to wrap a message")

    @classmethod
    def pieces(cls, body: JSONObject) -> Iterator[Received]:
        """The messages in a response, a request, a transcript, or one message by itself."""
        if "messages" in body:
            found = objects(body["messages"])
        elif "choices" in body:
            found = [m for c in objects(body["choices"]) if is_object(m := c.get("message"))]
        else:
            found = [body]
        for message in found:
            yield Received(message, Origin(api=cls.api))

    @classmethod
    def is_event(cls, body: JSONObject) -> bool:
        """Whether a dict is an event of a stream."""
        return False

    @classmethod
    def is_body(cls, body: JSONObject) -> bool:
        """Whether a dict is a whole response."""
        return False

    @classmethod
    def read_finish(cls, body: JSONObject) -> str | None:
        """The provider's word for why the reply ended."""
        return None

    @classmethod
    def read_usage(cls, body: JSONObject) -> Usage | None:
        """The tokens that a response reports, or None."""
        return None

    # -- in: the surface -------------------------------------------------------------------------

    @property
    def messages(self) -> list[Any]:
        """The reply flattened to a list, before `wrap`."""
        return list(self._flat(self.result))

    wrap_each = _WrapEach()
    """Each message of a reply, lazily: `Transport.wrap_each(result)`, or on an instance
    `transport.wrap_each()`. Takes a message, a list, anything with `.messages` or choices, JSON,
    a stream; None gives nothing."""

    def each(self) -> Iterator[Message]:
        """What `wrap_each` yields."""
        for message in self._flat(self.result):
            yield self.wrap(message)

    @classmethod
    async def awrap_each(cls, result: object) -> AsyncIterator[Message]:
        """`wrap_each` for what is read with `async for`."""
        if not isinstance(result, AsyncIterable):
            for message in cls(result).each():
                yield message
            return
        collected = [item async for item in cast("AsyncIterable[object]", result)]
        for message in cls(collected).each():
            yield message

    @classmethod
    def load_all(cls, request_or_messages: object) -> list[Message]:
        """The messages of a request that exists already: the inverse of `dump_all`.

        Takes the list of its messages or the whole body; system text that has a place of its own
        comes back as marked system messages.
        """
        given = request_or_messages
        if isinstance(given, (dict, list, tuple)):
            given = without_objects(cast(object, given))
        self = cls(given)
        self.sent = True
        return [self.wrap(message) for message in self._flat(given)]

    @classmethod
    def reply(cls, result: object) -> Reply:
        """The reply in what an SDK's call returned: an object, JSON, or a stream (consumed here).

        Of several choices the first is the reply.
        Raises `ProviderError` for an error body, `UnreadableReply` for what is no reply.
        """
        body, complete = cls._whole(result)
        return cls.read(body, complete=complete)

    @classmethod
    def read(cls, body: JSONObject, complete: bool = True) -> Reply:
        """The reply in a whole response body; `complete` is False for what a cut stream left."""
        error = error_in(cls.api, body)
        if error is not None and complete:
            raise error
        raw = cls.read_finish(body)
        first = next(cls.pieces(body), None)
        if first is None:
            if complete:
                raise UnreadableReply(cls.api, f"an object with the keys {sorted(body)[:8]}")
            first = Received({"role": "assistant"}, Origin(api=cls.api), "interrupted")
        if not complete:
            first.finish = "interrupted"
        message = cls(body).wrap(first)
        finish = first.finish or "other"
        return Reply(
            message=message,
            finish=finish,
            finish_raw=raw,
            usage=cls.read_usage(body),
            response_id=_text(body.get("id")),
        )

    @classmethod
    def usage(cls, result: object) -> Usage | None:
        """Tokens of a reply, or None where it does not say."""
        return cls.read_usage(cls._whole(result)[0])

    @classmethod
    def finish(cls, result: object) -> tuple[Finish, str | None]:
        """Why a reply ended: our word, and the provider's own."""
        reply = cls.reply(result)
        return reply.finish, reply.finish_raw

    @classmethod
    def stream(cls) -> StreamReader:
        """A reader of one streamed reply: `feed` chunks, then `finish` (or `cut`).

        Raises `NotImplementedError` for a transport without streams.
        """
        if cls.reader is None:
            raise NotImplementedError(f"{cls.__name__} does not read streams")
        return cls.reader(cls)

    @staticmethod
    def plain(value: object) -> JSON:
        """A library's object as plain JSON data (bytes as text)."""
        data = plain(value)
        return (
            bytes(data).decode("utf-8", "replace") if isinstance(data, (bytes, bytearray)) else data
        )

    # -- out: what a subclass overrides ----------------------------------------------------------

    @classmethod
    def dump(cls, message: Message) -> Dumped:
        """One message in the library's format. A subclass says how."""
        raise NotImplementedError(f"{cls.__name__} does not say how to dump a message")

    @classmethod
    def tool(cls, spec: ToolSpec) -> JSONObject:
        """One tool in the library's shape."""
        raise NotImplementedError(f"{cls.__name__} does not say how tools are offered")

    @classmethod
    def tools(
        cls,
        specs: Iterable[ToolSpec | Mapping[str, Any]] | None,
        losses: list[Loss] | None = None,
    ) -> list[JSONObject]:
        """Tools in the library's shape; what is in that shape already stays as it is.

        A tool that only another API offers stays behind; `losses` gets a line for it, and for each
        name that had to change.
        """
        report = losses if losses is not None else []
        out: list[JSONObject] = []
        for spec in specs or ():
            if not isinstance(spec, ToolSpec):
                out.append(dict(spec))
            elif spec.kind not in CLIENT_TOOLS and spec.extras and cls.api not in spec.extras:
                what = f"the tool {spec.name!r} ({spec.kind}) of another API"
                report.append(Loss(kind="omitted", rule="U8", what=what))
            else:
                out.append(cls.tool(spec))
                if spec.kind in CLIENT_TOOLS and (made := fitting(spec.name)) != spec.name:
                    report.append(Loss(kind="renamed", rule="names", what=spec.name, became=made))
        return out

    @classmethod
    def compose(cls, settings: Settings, planned: Plan, aim: Aim, losses: list[Loss]) -> JSONObject:
        """The arguments of the SDK's call out of settings and planned messages.

        What the call needs beyond them, or cannot be told, goes into `losses`.
        """
        raise NotImplementedError(f"{cls.__name__} does not build requests; use dump_all")

    # -- out: the surface ------------------------------------------------------------------------

    @classmethod
    def dump_all(cls, messages: Iterable[Message], **options: Any) -> list[dict[str, Any]]:
        """The whole list in the library's format, valid by construction.

        `model`, `provider`, `platform`, `profile` say where it goes; `strict=True` raises
        `NotSendable` instead of repairing. Options that a transport does not know are ignored.
        """
        return cls.written(cls.plan(messages, **options), cls.aim(**options))

    @classmethod
    def written(cls, planned: Plan, aim: Aim) -> list[dict[str, Any]]:
        """Planned messages, dumped one by one."""
        out: list[dict[str, Any]] = []
        dump = cls.dump
        for message in planned.messages:
            dumped = dump(message)
            if isinstance(dumped, dict):
                out.append(dumped)
            else:
                out += dumped
        return out

    @classmethod
    def plan(cls, messages: Iterable[Message], *, deep: bool = False, **options: Any) -> Plan:
        """The list as the target takes it: merged, paired, renamed, repaired.

        `deep` also looks into what is repaired while it is written (arguments), for the report.
        """
        aim = cls.aim(**options)
        planned = plan(list(messages), aim, deep=deep or aim.strict)
        if aim.strict and planned.losses:
            raise NotSendable(cls.api, planned.losses)
        return planned

    @classmethod
    def aim(cls, **options: Any) -> Aim:
        """What the options say about the target."""
        if not options:
            return _aim(cls.rules)
        known = {k: v for k, v in options.items() if k in AIMS or k == "model"}
        return Aim(rules=cls.rules, **known)

    @classmethod
    def normal(cls, messages: Iterable[Message], **options: Any) -> list[Message]:
        """The messages as the target carries them.

        `load_all(dump_all(m)) == normal(m)`. It says what the target merges, moves, renames and
        cannot carry; see `losses`.
        """
        aim = cls.aim(**options)
        return normal(plan(list(messages), aim).messages, aim.rules)

    @classmethod
    def losses(cls, messages: Iterable[Message], **options: Any) -> list[Loss]:
        """What the target would not get as it stands in the messages."""
        return cls.plan(messages, deep=True, **options).losses

    @classmethod
    def request(cls, x: Buildable | View | Iterable[Message], **options: Any) -> Request:
        """The keyword arguments of the SDK's call, out of a turn, a session view or a plain list.

        A turn records the request (see `Buildable`); nothing else is recorded. For a plain list
        the options give `model`, `tools`, `max_tokens` and whatever else the call takes.
        """
        build = getattr(x, "build", None)
        if callable(build):
            return cast(Buildable, x).build(cls, **options)
        if hasattr(x, "messages") and hasattr(x, "settings"):
            return cls.render(cast(View, x), **options)
        return cls.render(PlainView(list(cast("Iterable[Message]", x)), Settings()), **options)

    @classmethod
    def render(cls, view: View, **options: Any) -> Request:
        """The request for a view, recorded by nobody: what `request` does for all but a turn."""
        settings = settled(view.settings, options)
        aims: dict[str, Any] = {k: v for k, v in options.items() if k in AIMS}
        if settings.model is not None:
            aims = {"model": settings.model.id, "provider": settings.model.provider, **aims}
        aim = cls.aim(**aims)
        messages = list(view.messages)
        if settings.system is not None and cls.rules.system == "inline":
            messages.insert(0, Message.system(settings.system))
        planned = cls.plan(messages, **aims)
        losses: list[Loss] = []
        arguments = cls.compose(settings, planned, aim, losses)
        if aim.strict and losses:
            raise NotSendable(cls.api, losses)

        def report() -> list[Loss]:
            found = plan(messages, aim, deep=True).losses
            return [loss for loss in found if loss.rule != "system"] + losses

        return Request(arguments, report)

    @classmethod
    def check(cls, request: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[Violation]:
        """Where a request (or its list of messages) breaks the provider's rules."""
        body = request if isinstance(request, Mapping) else {"messages": list(request)}
        plain_body = without_objects(dict(body))
        return [found for rule in cls.rules.check for found in rule.check(plain_body)]

    @classmethod
    def body(cls, request: Mapping[str, Any]) -> JSONObject:
        """The JSON body that the SDK sends for a request."""
        body = {k: v for k, v in request.items() if k not in NOT_IN_BODY}
        return {**body, **(request.get("extra_body") or {})}

    @classmethod
    def items(cls, request: Mapping[str, Any]) -> list[JSONObject]:
        """The messages of a request, for a chain digest."""
        return list(request.get("messages") or [])

    @classmethod
    def settings(cls, request: Mapping[str, Any]) -> JSONObject:
        """The rest of a request: everything but its messages."""
        return {k: v for k, v in cls.body(request).items() if k != "messages"}

    # -- how -------------------------------------------------------------------------------------

    def _flat(self, result: object) -> Iterator[Any]:
        """The messages in whatever came back."""
        value = plain(result)
        if isinstance(value, (bytes, bytearray, str)):
            yield from self._flat_text(value)
        elif is_object(value):
            yield from self._flat_object(value)
        elif isinstance(value, Iterable):
            yield from self._flat_many(cast("Iterable[object]", value))
        elif value is not None:
            yield from self._flat_foreign(value)

    def _flat_object(self, body: JSONObject) -> Iterator[Any]:
        if self._is_streamed(body):
            yield from self._flat_many([body])
            return
        error = error_in(self.api, body) if self.api else None
        if error is not None and "role" not in body and not body.get("choices"):
            raise error
        yield from type(self).pieces(body)

    def _flat_text(self, text: bytes | bytearray | str) -> Iterator[Any]:
        if not self.api:  # a library of the user's own, which may well answer with a text
            yield text
            return
        value = read_json(text)
        if value is not None:
            yield from self._flat(value)
        elif self.reader is not None and _looks_streamed(text):
            yield from self._flat_many([text])
        elif text.strip():
            raise UnreadableReply(self.api, f"a text of {len(text):,} characters")

    def _flat_foreign(self, value: object) -> Iterator[Any]:
        """An object that is no JSON data: something with messages or choices, or one message."""
        inner = getattr(value, "messages", None)
        if callable(inner):
            inner = None
        if inner is None:
            choices = cast("Iterable[object] | None", getattr(value, "choices", None))
            inner = [getattr(c, "message", c) for c in choices] if choices is not None else None
        if inner is None:
            yield value
        else:
            yield from self._flat_many(cast("Iterable[object]", inner))

    def _flat_many(self, items: Iterable[object]) -> Iterator[Any]:
        """A list or a stream: events are read into one reply, anything else stands for itself."""
        reader: StreamReader | None = None
        held: JSONObject | None = None  # a response of which the same one may come again, grown
        for item in items:
            value = plain(item)
            if self._is_streamed(value):
                reader = reader or self.stream()
                reader.feed(value)
                continue
            if held is not None and not _grown(held, value):
                yield from self._flat_object(held)
            held = None
            if reader is not None:
                yield from self._read(reader)
                reader = None
            if is_object(value) and type(self).is_body(value):
                held = value
            else:
                yield from self._flat(value)
        if held is not None:
            yield from self._flat_object(held)
        if reader is not None:
            yield from self._read(reader)

    def _read(self, reader: StreamReader) -> Iterator[Received]:
        yield from reader.received()

    def _is_streamed(self, value: JSON) -> bool:
        if self.reader is None:
            return False
        if isinstance(value, (bytes, bytearray, str)):
            return True
        if not is_object(value):
            return False
        if "role" not in value and "choices" not in value:
            aws = value.get("chunk")
            if value.get("data") is not None or (is_object(aws) and "bytes" in aws):
                return True
        return type(self).is_event(value)

    @classmethod
    def _whole(cls, result: object) -> tuple[JSONObject, bool]:
        """The response body in whatever an SDK's call returned, and whether it is whole."""
        value = plain(result)
        if isinstance(value, (bytes, bytearray, str)):
            said = read_json(value)
            value = [value] if said is None else said
        if is_object(value):
            if not cls(result)._is_streamed(value):
                return value, True
            value = [value]
        if cls.reader is None or not isinstance(value, Iterable):
            raise UnreadableReply(cls.api, f"a {type(result).__name__}")
        reader = cls.stream()
        for item in cast("Iterable[object]", value):
            reader.feed(item)
        body, complete = reader.whole()
        if not reader.taken:
            raise UnreadableReply(cls.api, f"a {type(result).__name__} without a single event")
        return body, complete


_FIELD = re.compile(rb"^\s*(data|event|id|retry)?:", re.MULTILINE)


def _looks_streamed(text: bytes | bytearray | str) -> bool:
    """Whether a text is server-sent events: a line of it names a field."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    return _FIELD.search(data.removeprefix(b"\xef\xbb\xbf")) is not None


def _grown(held: JSONObject, value: JSON) -> bool:
    """Whether a response is the one before, further on (a stream of snapshots)."""
    return is_object(value) and bool(held.get("id")) and held.get("id") == value.get("id")


def _text(value: JSON) -> str | None:
    return value if isinstance(value, str) and value else None


def settled(settings: Settings, options: Mapping[str, Any]) -> Settings:
    """The settings with what the options of a call say over them."""
    given = {k: v for k, v in options.items() if k not in AIMS and v is not None}
    changes: dict[str, Any] = {k: given.pop(k) for k in ("system", "format") if k in given}
    if "model" in given:
        model = given.pop("model")
        changes["model"] = ModelRef(id=model) if isinstance(model, str) else model
    if "tools" in given:
        changes["tools"] = tuple(given.pop("tools"))
    said: JSONObject = given.pop("parameters", None) or {}
    parameters: JSONObject = {**(settings.parameters or {}), **said, **given}
    if parameters:
        changes["parameters"] = parameters
    return replace(settings, **changes) if changes else settings


_aims: dict[int, Aim] = {}


def _aim(rules: Rules) -> Aim:
    found = _aims.get(id(rules))
    if found is None or found.rules is not rules:
        found = _aims[id(rules)] = Aim(rules=rules)
    return found


def normal_finish(word: Finish, called: bool) -> Finish:
    """A finish, brought in line with what the reply holds.

    With pending calls it is `tool_calls`, except for a reply that was cut; a reason that speaks of
    calls where there are none is `stop`.
    """
    if word in {"length", "interrupted", "error"}:
        return word
    if called:
        return "tool_calls"
    return "stop" if word == "tool_calls" else word


def sealed(message: Message, finish: Finish | None) -> Message:
    """The message with its unfinished calls marked: all of a cut reply, the last of a long one."""
    if finish not in {"length", "interrupted"}:
        return message
    indexes = [i for i, part in enumerate(message.parts) if type(part) is ToolCall]
    if not indexes:
        return message
    cut = set(indexes if finish == "interrupted" else indexes[-1:])
    parts = tuple(
        replace(part, cut=True) if i in cut else part for i, part in enumerate(message.parts)
    )
    return replace(message, parts=parts)
