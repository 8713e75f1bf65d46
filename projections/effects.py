"""Effects and approvals that began: which of them have an outcome, and which must not be redone.

An effect whose writer is gone is *unknown*: it may have happened. Only an idempotent one may
simply be run again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from brute.events.entries import Entry, Record
from brute.events.events import ApprovalAsked, ApprovalGiven, EffectCalled, EffectReturned
from brute.events.jsontypes import JSON


class Effect(msgspec.Struct, kw_only=True):
    """One effect, as far as it has come."""

    position: int
    name: str
    args: JSON = None
    idempotent: bool = False
    run: str | None = None
    lane: str = "/"
    outcome: Literal["ok", "error", "unknown"] | None = None
    result: int | None = None
    """Position of its outcome."""


class Approval(msgspec.Struct, kw_only=True):
    """One question to a person."""

    position: int
    about: str
    reply: int | None = None
    part: int | None = None
    granted: bool | None = None
    result: int | None = None
    """Position of the answer."""


class Effects:
    """All effects and approvals of a session, in the order in which they began."""

    __slots__ = ("_approvals", "_asked", "_effects", "_open")

    def __init__(self) -> None:
        self._effects: dict[int, Effect] = {}
        self._open: dict[int, Effect] = {}
        self._approvals: dict[int, Approval] = {}
        self._asked: dict[int, Approval] = {}

    @property
    def effects(self) -> list[Effect]:
        """All effects."""
        return list(self._effects.values())

    @property
    def approvals(self) -> list[Approval]:
        """All approvals."""
        return list(self._approvals.values())

    @property
    def open(self) -> list[Effect]:
        """Effects without an outcome."""
        return list(self._open.values())

    @property
    def asked(self) -> list[Approval]:
        """Approvals that wait for their answer."""
        return list(self._asked.values())

    def unknown(self, *live: str | None) -> list[Effect]:
        """Effects whose outcome nobody will write: begun by none of the runs `live`."""
        return [e for e in self._open.values() if e.run not in live]

    def get(self, position: int) -> Effect | None:
        """The effect that was called at `position`, or None."""
        return self._effects.get(position)

    def __repr__(self) -> str:
        return f"Effects(open={self.open!r}, asked={self.asked!r})"

    # -- folding ---------------------------------------------------------------------------

    def _effect_called(self, position: int, record: Record, event: EffectCalled) -> None:
        self._effects[position] = self._open[position] = Effect(
            position=position,
            name=event.name,
            args=event.args,
            idempotent=event.idempotent,
            run=record.run,
            lane=record.lane,
        )

    def _effect_returned(self, position: int, record: Record, event: EffectReturned) -> None:
        effect = self._open.pop(record.cause, None) if record.cause is not None else None
        if effect is not None:
            effect.result = position
            failed = event.outcome == "ok" and event.error is not None
            effect.outcome = "error" if failed else event.outcome

    def _approval_asked(self, position: int, record: Record, event: ApprovalAsked) -> None:
        self._approvals[position] = self._asked[position] = Approval(
            position=position, about=event.about, reply=event.reply, part=event.part
        )

    def _approval_given(self, position: int, record: Record, event: ApprovalGiven) -> None:
        approval = self._asked.pop(record.cause, None) if record.cause is not None else None
        if approval is not None:
            approval.granted, approval.result = event.granted, position

    steps: ClassVar[dict[type[object], Step]] = {
        EffectCalled: _effect_called,
        EffectReturned: _effect_returned,
        ApprovalAsked: _approval_asked,
        ApprovalGiven: _approval_given,
    }
    """What each event does; every other event does nothing."""


Step: TypeAlias = Callable[[Effects, int, Record, Any], None]

_STEPS = Effects.steps


def initial() -> Effects:
    """Nothing has begun."""
    return Effects()


def apply(state: Effects, entry: Entry) -> Effects:
    """The effects after one more entry of the lineage; `state` is changed and returned."""
    record = entry.record
    step = _STEPS.get(type(record.event))
    if step is not None:
        step(state, entry.position, record, record.event)
    return state
