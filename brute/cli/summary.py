"""What `ls` and `stats` say of a session, without decoding most of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from brute.events import codec
from brute.events.entries import Entry
from brute.events.events import EVENTS, ReplyInterrupted, ReplyReceived, RequestFailed, RunEnded
from brute.projections import usage
from brute.projections.usage import UsageTotals

if TYPE_CHECKING:
    from brute.events.log import EventLog
    from brute.events.store.base import SessionInfo

_COUNTED: Final = frozenset(tag for tag, kind in EVENTS.items() if kind in UsageTotals.steps)
"""The tags of the events that the usage of a session comes from."""

_LOOK_BACK: Final = 200
"""Entries that are read to see how a session stands."""


class Summary(msgspec.Struct, kw_only=True):
    """One session's own entries, added up. What a fork shares is its parent's."""

    events: int = 0
    bytes: int = 0
    """Of the stored states; large media are counted once for all sessions, not here."""
    usage: UsageTotals


def summarize(events: EventLog, info: SessionInfo) -> Summary:
    """Add up a session's own entries."""
    summary = Summary(usage=usage.initial())
    for stream, position, topic, state in events.states(info.id, after=info.start - 1):
        summary.events += 1
        summary.bytes += len(state)
        if topic in _COUNTED:
            record, _ = codec.decode(topic, state, f"{events.where}: {stream}@{position}")
            usage.apply(summary.usage, Entry(info.id, position, record))
    return summary


def trouble(events: EventLog, info: SessionInfo) -> str | None:
    """How the newest run or request went wrong, or None: `failed @6998 RateLimitError`."""
    for number, entry in enumerate(events.read_back(info.id)):
        event = entry.event
        if isinstance(event, RunEnded | ReplyReceived) or number == _LOOK_BACK:
            error = event.error if isinstance(event, RunEnded) else None
            return f"failed @{entry.position} {error.kind}" if error is not None else None
        if isinstance(event, RequestFailed):
            return f"failed @{entry.position} {event.error.kind}"
        if isinstance(event, ReplyInterrupted):
            return f"cut @{entry.position}"
    return None


def models(summary: Summary) -> list[str]:
    """The models that replied, in their order, as they were asked for."""
    named = (row.asked or row.model for row in summary.usage.models)
    return list(dict.fromkeys(name for name in named if name is not None))
