"""What happened: the events, each an immutable past-tense fact.

An event holds only facts that its envelope does not know (`brute.events.entries`), and nothing
twice. Its class (`EventClass`) stands beside its tag, once: replay, resume, conflict handling and
diff all follow from it.

Tags are words we chose and keep for ever. A new field gets a default; a changed meaning gets a
new tag and one upcast.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import msgspec
from msgspec import UNSET, UnsetType

from brute.events.jsontext import identical
from brute.events.jsontypes import JSONObject
from brute.events.messages import Finish, Message, Outcome, ResultPart, Usage, Value, Verbatim


class EventClass(Enum):
    """What an event is to a replay."""

    INTENT = "intent"
    """Compared, in order within its lane."""
    OUTCOME = "outcome"
    """Supplied from the log; exactly one for an intent, by its `cause`."""
    VALUE = "value"
    """The name is compared, the value supplied."""
    OBSERVED = "observed"
    """Never compared."""
    BOUNDARY = "boundary"
    """The frame of a session or a run."""


Lifetime: TypeAlias = Literal["turn", "task", "session"]
"""How long a prompt change lasts: this request; until a reply leaves no open call; for good."""


class Event(Value, tag_field="type", frozen=True, kw_only=True):
    """One immutable fact."""

    event_class: ClassVar[EventClass]
    answered_by: ClassVar[tuple[str, ...]] = ()
    """For an intent that has outcomes: their tags."""


# -- boundaries ------------------------------------------------------------------------------------


class Link(Value, frozen=True, kw_only=True):
    """Where a session comes from."""

    kind: Literal["fork", "sub-agent", "import"]
    session: str | None = None
    position: int | None = None
    source: str | None = None
    """For an import: what was imported (a format word, never a path of the machine)."""


class SessionOpened(Event, tag="session.opened", frozen=True, kw_only=True):
    """A session began."""

    event_class: ClassVar[EventClass] = EventClass.BOUNDARY
    agent: str | None = None
    cwd: str | None = None
    root: str | None = None
    metadata: JSONObject | None = None
    link: Link | None = None


class SessionClosed(Event, tag="session.closed", frozen=True, kw_only=True):
    """Nothing more was expected in this session."""

    event_class: ClassVar[EventClass] = EventClass.BOUNDARY


class RunStarted(Event, tag="run.started", frozen=True, kw_only=True):
    """An agent function was entered."""

    event_class: ClassVar[EventClass] = EventClass.BOUNDARY
    agent: str
    args: JSONObject | None = None
    continues: str | None = None
    """The run that this one resumes."""
    epoch: int = 0
    """Rises with each run of the session; it fences an older writer."""


class RunEnded(Event, tag="run.ended", frozen=True, kw_only=True):
    """The agent function returned or raised."""

    event_class: ClassVar[EventClass] = EventClass.BOUNDARY
    value: Any = None
    error: Failure | None = None


class Failure(Value, frozen=True, kw_only=True):
    """An error as a fact: the class by its name (never imported from it), and its words."""

    kind: str
    message: str = ""
    status: int | None = None
    """HTTP status where there was one."""
    body: Any = None


# -- turns, requests, replies ----------------------------------------------------------------------


class ModelRef(Value, frozen=True, kw_only=True):
    """A model by provider and the provider's id of it."""

    id: str
    provider: str | None = None


class ToolSpec(Value, frozen=True, kw_only=True):
    """A tool as it was offered to the model."""

    name: str
    description: str | None = None
    schema: JSONObject | None = None
    """JSON schema of the arguments, as sent."""
    kind: str = "function"
    extras: dict[str, JSONObject] | None = None


class TurnStarted(Event, tag="turn.started", frozen=True, kw_only=True):
    """A turn began. It carries the settings that changed since the last turn.

    An unchanged setting is absent (UNSET), one that was taken away is None.
    """

    event_class: ClassVar[EventClass] = EventClass.INTENT
    agent: str | None | UnsetType = UNSET
    model: ModelRef | None | UnsetType = UNSET
    variant: str | None | UnsetType = UNSET
    format: JSONObject | None | UnsetType = UNSET
    parameters: JSONObject | None | UnsetType = UNSET
    system: str | None | UnsetType = UNSET
    tools: tuple[ToolSpec, ...] | None | UnsetType = UNSET


class Settings(Value, frozen=True, kw_only=True):
    """The settings a turn runs with: what all `turn.started` events so far add up to."""

    agent: str | None = None
    model: ModelRef | None = None
    variant: str | None = None
    format: JSONObject | None = None
    """JSON schema of the structured output that was asked for."""
    parameters: JSONObject | None = None
    """Everything else that goes into the request (`max_tokens`, `temperature`, …)."""
    system: str | None = None
    tools: tuple[ToolSpec, ...] | None = None

    def after(self, turn: TurnStarted) -> Settings:
        """These settings with the changes of `turn`."""
        changed = {n: v for n in SETTINGS if (v := getattr(turn, n)) is not UNSET}
        return msgspec.structs.replace(self, **changed) if changed else self

    def changes_to(self, new: Settings) -> TurnStarted:
        """The event that leads from these settings to `new`: only what would be sent otherwise.

        1, 1.0 and true are different words to a provider, and a schema in another order too.
        """
        changed = {n: v for n in SETTINGS if not identical(v := getattr(new, n), getattr(self, n))}
        return TurnStarted(**changed)


SETTINGS: tuple[str, ...] = tuple(f for f in Settings.__struct_fields__ if f != "rest")
"""The names of the settings."""


class RequestSent(Event, tag="request.sent", frozen=True, kw_only=True):
    """A request was about to leave; durable before it left."""

    event_class: ClassVar[EventClass] = EventClass.INTENT
    answered_by: ClassVar[tuple[str, ...]] = (
        "reply.received",
        "reply.interrupted",
        "request.failed",
    )
    transport: str
    version: int = 1
    options: JSONObject | None = None
    upto: int
    """The position up to which the prompt was built."""
    settings: str | None = None
    """Digest of the settings of the body."""
    chain: str | None = None
    """Chain digest over the body's items."""
    items: int = 0
    """Number of items in the body."""


class ReplyReceived(Event, tag="reply.received", frozen=True, kw_only=True):
    """A whole reply arrived. `cause`: its request, or none for a reply added by hand."""

    event_class: ClassVar[EventClass] = EventClass.OUTCOME
    message: Message
    finish: Finish = "stop"
    finish_raw: str | None = None
    usage: Usage | None = None
    kind: Literal["reply", "summary"] = "reply"
    response_id: str | None = None


class ReplyInterrupted(Event, tag="reply.interrupted", frozen=True, kw_only=True):
    """A reply was cut; what had come of it. Its last call may be incomplete and is never run."""

    event_class: ClassVar[EventClass] = EventClass.OUTCOME
    message: Message | None = None
    reason: str = ""
    error: Failure | None = None
    usage: Usage | None = None
    response_id: str | None = None


class RequestFailed(Event, tag="request.failed", frozen=True, kw_only=True):
    """No reply came."""

    event_class: ClassVar[EventClass] = EventClass.OUTCOME
    error: Failure


class RequestRetried(Event, tag="request.retried", frozen=True, kw_only=True):
    """The request was sent again."""

    event_class: ClassVar[EventClass] = EventClass.OBSERVED
    why: str = ""
    error: Failure | None = None


# -- prompts ---------------------------------------------------------------------------------------


class PromptAppended(Event, tag="prompt.appended", frozen=True, kw_only=True):
    """A message was added at the end of the list."""

    event_class: ClassVar[EventClass] = EventClass.INTENT
    message: Message
    author: str = "person"
    """person, hook:NAME, agent:NAME or compactor."""
    synthetic: bool = False
    lifetime: Lifetime = "session"


class PromptEdited(Event, tag="prompt.edited", frozen=True, kw_only=True):
    """A message or parts were added elsewhere than at the end."""

    event_class: ClassVar[EventClass] = EventClass.INTENT
    op: Literal["prepend", "append_to", "insert_before", "insert_after"]
    message: Message
    """The message, or for `append_to` the parts under the role of the message they join."""
    anchor: int | None = None
    """Position of the entry behind the message meant, resolved when it was said."""
    author: str = "person"
    synthetic: bool = False
    lifetime: Lifetime = "turn"


class HistoryRewound(Event, tag="history.rewound", frozen=True, kw_only=True):
    """The session went back: what came after position `to` is no longer said (but stays logged)."""

    event_class: ClassVar[EventClass] = EventClass.INTENT
    to: int


class HistoryCompacted(Event, tag="history.compacted", frozen=True, kw_only=True):
    """The messages behind positions `start` to `end` (inclusive) gave way to a summary."""

    event_class: ClassVar[EventClass] = EventClass.INTENT
    start: int
    end: int
    summary: int
    """Position of the summary: a reply of kind summary, or an appended prompt."""


# -- tools and effects -----------------------------------------------------------------------------


class ToolCalled(Event, tag="tool.called", frozen=True, kw_only=True):
    """A call of a reply was about to be run; by reference, never a copy of its arguments."""

    event_class: ClassVar[EventClass] = EventClass.INTENT
    answered_by: ClassVar[tuple[str, ...]] = ("tool.returned",)
    reply: int
    """Position of the reply."""
    part: int
    """Index of the call among the reply's parts."""
    child: str | None = None
    """The session of the sub-agent that runs it."""


class ToolReturned(Event, tag="tool.returned", frozen=True, kw_only=True):
    """A call has its outcome. `cause`: its `tool.called`."""

    event_class: ClassVar[EventClass] = EventClass.OUTCOME
    content: tuple[ResultPart, ...] = ()
    outcome: Outcome = "ok"
    message: Message | None = None
    """The whole message, only where it says more than content and outcome (one that was adopted
    from elsewhere). It is then said where it was appended; other results stand in call order."""


class EffectCalled(Event, tag="effect.called", frozen=True, kw_only=True):
    """An effect was about to be run."""

    event_class: ClassVar[EventClass] = EventClass.INTENT
    answered_by: ClassVar[tuple[str, ...]] = ("effect.returned",)
    name: str
    args: Any = None
    idempotent: bool = False


class EffectReturned(Event, tag="effect.returned", frozen=True, kw_only=True):
    """An effect has its outcome: a value, an error, or `unknown` (nobody can know any more)."""

    event_class: ClassVar[EventClass] = EventClass.OUTCOME
    value: Any = None
    error: Failure | None = None
    outcome: Literal["ok", "error", "unknown"] = "ok"


class ApprovalAsked(Event, tag="approval.asked", frozen=True, kw_only=True):
    """A person was asked whether something may be done."""

    event_class: ClassVar[EventClass] = EventClass.INTENT
    answered_by: ClassVar[tuple[str, ...]] = ("approval.given",)
    about: str
    reply: int | None = None
    part: int | None = None


class ApprovalGiven(Event, tag="approval.given", frozen=True, kw_only=True):
    """The person's answer."""

    event_class: ClassVar[EventClass] = EventClass.OUTCOME
    granted: bool
    why: str | None = None


class ValueRecorded(Event, tag="value.recorded", frozen=True, kw_only=True):
    """A value from outside (clock, id, seed, environment …) that a replay is served."""

    event_class: ClassVar[EventClass] = EventClass.VALUE
    name: str
    value: Any = None


# -- observed --------------------------------------------------------------------------------------


class ExchangeRecorded(Event, tag="exchange.recorded", frozen=True, kw_only=True):
    """One HTTP exchange, as bytes behind a blob or as JSON."""

    event_class: ClassVar[EventClass] = EventClass.OBSERVED
    request: Any = None
    response: Any = None


class NoteAdded(Event, tag="note.added", frozen=True, kw_only=True):
    """A remark for people (or an importer's raw line that no event stands for)."""

    event_class: ClassVar[EventClass] = EventClass.OBSERVED
    text: str = ""
    data: Any = None


class StreamChunked(Event, tag="stream.chunked", frozen=True, kw_only=True):
    """Coalesced frames of a reply that is still arriving.

    Kept in a sibling stream of the session, read only if its request has no outcome.
    """

    event_class: ClassVar[EventClass] = EventClass.OBSERVED
    frames: tuple[Any, ...] = ()


class UnknownEvent(Verbatim):
    """An event this version does not understand.

    Its tag is unknown, or known but said with words that this version cannot do without.
    """

    __slots__ = ("tag",)
    tag: str

    def __init__(self, tag: str, raw: bytes) -> None:
        super().__init__(raw)
        object.__setattr__(self, "tag", tag)

    def __reduce__(self) -> tuple[type[UnknownEvent], tuple[object, ...]]:
        return type(self), (self.tag, self.raw)


AnyEvent: TypeAlias = (
    SessionOpened
    | SessionClosed
    | RunStarted
    | RunEnded
    | TurnStarted
    | RequestSent
    | ReplyReceived
    | ReplyInterrupted
    | RequestFailed
    | RequestRetried
    | PromptAppended
    | PromptEdited
    | HistoryRewound
    | HistoryCompacted
    | ToolCalled
    | ToolReturned
    | EffectCalled
    | EffectReturned
    | ApprovalAsked
    | ApprovalGiven
    | ValueRecorded
    | ExchangeRecorded
    | NoteAdded
    | StreamChunked
)
"""Any event this version knows."""

EVENTS: dict[str, type[Event]] = {str(cls.__struct_config__.tag): cls for cls in get_args(AnyEvent)}
"""Every event by its tag."""

TAGS: dict[type[Event], str] = {cls: tag for tag, cls in EVENTS.items()}
"""Every event's tag by its class."""


def tag_of(event: Event | UnknownEvent) -> str:
    """The tag of an event."""
    return event.tag if isinstance(event, UnknownEvent) else TAGS[type(event)]


def class_of(event: Event | UnknownEvent) -> EventClass:
    """The class of an event; one of a tag this version does not know counts as observed."""
    if not isinstance(event, UnknownEvent):
        return event.event_class
    known = EVENTS.get(event.tag)
    return known.event_class if known is not None else EventClass.OBSERVED
