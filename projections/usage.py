"""Tokens and money: what the replies of a session have used.

Fold it over everything that was logged, not over the lineage: money spent stays spent, whatever
was rewound since. A fork counts its own when it is folded over the fork's own entries alone
(`entry.session` says whose an entry is).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

import msgspec

from brute.events.entries import Entry, Record
from brute.events.events import (
    HistoryRewound,
    ReplyInterrupted,
    ReplyReceived,
    RequestFailed,
    RequestSent,
    TurnStarted,
)
from brute.events.messages import Message, Usage
from brute.projections.trail import Trail

UNNAMED = "(unnamed)"
"""Stands in `Cost.unpriced` for replies that named no model and were asked of none."""


class Price(msgspec.Struct, frozen=True):
    """What a model costs, in dollars per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    """For input that the provider had cached; None: as `input`."""
    cache_write: float | None = None
    """For input that it put into its cache; None: as `input`."""

    def of(self, usage: Usage) -> float:
        """Dollars for `usage`. Cached tokens are part of `usage.input` and are paid once."""
        fresh = max(0, usage.input - usage.cache_read - usage.cache_write)
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        tokens = (
            fresh * self.input
            + usage.cache_read * read
            + usage.cache_write * write
            + usage.output * self.output
        )
        return tokens / 1_000_000


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a session cost, as far as the prices are known."""

    dollars: float
    by_model: dict[str, float]
    """Dollars for each model that has a price."""
    unpriced: tuple[str, ...] = ()
    """Models that used tokens and have no price in the table; their cost is not in `dollars`."""


class ModelUsage(msgspec.Struct, kw_only=True):
    """What the replies of one model have used."""

    model: str | None
    """As the reply names it, often more exactly than it was asked for."""
    asked: str | None
    """As the settings named it."""
    usage: Usage = msgspec.field(default_factory=Usage)
    replies: int = 0

    @property
    def name(self) -> str:
        """The model's name, by the reply or else by the settings."""
        return self.model or self.asked or UNNAMED

    def price(self, prices: Mapping[str, Price]) -> Price | None:
        """Its price: by the reply's name of it, or else by the one it was asked for."""
        for name in (self.model, self.asked):
            if name is not None and name in prices:
                return prices[name]
        return None


class UsageTotals:
    """Tokens in total and by model, and how often the model was asked."""

    __slots__ = (
        "_answered",
        "_asked",
        "_models",
        "_trail",
        "failed",
        "interrupted",
        "replies",
        "requests",
        "total",
        "turns",
        "unmetered",
    )

    def __init__(self) -> None:
        self.total = Usage()
        """All tokens used, interrupted replies included where they were told."""
        self.turns = 0
        self.requests = 0
        self.replies = 0
        """Whole replies."""
        self.interrupted = 0
        """Replies that were cut."""
        self.failed = 0
        """Requests that brought no reply."""
        self.unmetered = 0
        """Replies, whole or cut, that came without a usage: they are not in the totals."""
        self._trail = Trail()
        self._asked: dict[int, str | None] = {}  # request without outcome -> model of its settings
        self._answered: set[int] = set()
        self._models: dict[tuple[str | None, str | None], ModelUsage] = {}

    @property
    def models(self) -> list[ModelUsage]:
        """Usage for each pair of the model that replied and the one that was asked."""
        return list(self._models.values())

    @property
    def by_model(self) -> dict[str, Usage]:
        """Usage by the name of the model that replied."""
        found: dict[str, Usage] = {}
        for row in self._models.values():
            found[row.name] = found.get(row.name, Usage()) + row.usage
        return found

    def cost(self, prices: Mapping[str, Price]) -> Cost:
        """What it cost by a table of prices, keyed by the model's name.

        A name must be there exactly, either as the reply says it or as it was asked for; a model
        without a price is reported, its price never guessed.
        """
        by_model: dict[str, float] = {}
        unpriced: dict[str, None] = {}
        for row in self._models.values():
            price = row.price(prices)
            if price is not None:
                by_model[row.name] = by_model.get(row.name, 0.0) + price.of(row.usage)
            elif row.usage != Usage():
                unpriced[row.name] = None
        return Cost(
            dollars=sum(by_model.values(), 0.0), by_model=by_model, unpriced=tuple(unpriced)
        )

    def __repr__(self) -> str:
        return f"UsageTotals({self.total!r}, turns={self.turns}, replies={self.replies})"

    # -- folding ---------------------------------------------------------------------------

    def _turn_started(self, position: int, record: Record, event: TurnStarted) -> None:
        self.turns += 1
        self._trail.turn_started(position, event)

    def _history_rewound(self, position: int, record: Record, event: HistoryRewound) -> None:
        self._trail.rewound(position, event)

    def _request_sent(self, position: int, record: Record, event: RequestSent) -> None:
        self.requests += 1
        self._asked[position] = self._model

    def _reply_received(self, position: int, record: Record, event: ReplyReceived) -> None:
        if self._first(record):
            self.replies += 1
            self._count(record, event.message, event.usage)

    def _reply_interrupted(self, position: int, record: Record, event: ReplyInterrupted) -> None:
        if self._first(record):
            self.interrupted += 1
            self._count(record, event.message, event.usage)

    def _request_failed(self, position: int, record: Record, event: RequestFailed) -> None:
        if self._first(record):
            self.failed += 1

    @property
    def _model(self) -> str | None:
        model = self._trail.now.model
        return model.id if model is not None else None

    def _first(self, record: Record) -> bool:
        """Whether this is the first outcome of its request; a second one never counts."""
        cause = record.cause
        if cause is None:
            return True
        if cause in self._answered:
            return False
        self._answered.add(cause)
        return True

    def _count(self, record: Record, message: Message | None, usage: Usage | None) -> None:
        cause = record.cause
        asked = self._asked.pop(cause, None) if cause is not None else self._model
        if usage is None:
            self.unmetered += 1
            usage = Usage()
        origin = message.origin if message is not None else None
        model = origin.model if origin is not None else None
        row = self._models.get((model, asked))
        if row is None:
            row = self._models[model, asked] = ModelUsage(model=model, asked=asked)
        row.replies += 1
        row.usage += usage
        self.total += usage

    steps: ClassVar[dict[type[object], Step]] = {
        TurnStarted: _turn_started,
        HistoryRewound: _history_rewound,
        RequestSent: _request_sent,
        ReplyReceived: _reply_received,
        ReplyInterrupted: _reply_interrupted,
        RequestFailed: _request_failed,
    }
    """What each event does; every other event does nothing."""


Step: TypeAlias = Callable[[UsageTotals, int, Record, Any], None]

_STEPS = UsageTotals.steps


def initial() -> UsageTotals:
    """Nothing has been used."""
    return UsageTotals()


def apply(state: UsageTotals, entry: Entry) -> UsageTotals:
    """The usage after one more entry, rewound or not; `state` is changed and returned."""
    record = entry.record
    step = _STEPS.get(type(record.event))
    if step is not None:
        step(state, entry.position, record, record.event)
    return state
