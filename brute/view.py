"""A session as it stood at a position: everything that can be read from its entries."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from brute.events.entries import Entry
from brute.events.events import HistoryRewound, SessionOpened, Settings
from brute.events.messages import Message
from brute.projections import calls, messages, requests, timeline, turns, usage
from brute.projections.calls import Call, Calls
from brute.projections.fold import last_rewind, lineage
from brute.projections.messages import MessageList
from brute.projections.requests import Requests
from brute.projections.timeline import Timeline
from brute.projections.turns import Turn as PastTurn
from brute.projections.usage import UsageTotals


class _Fold(Struct):
    source: list[Entry]
    seen: int
    state: Any


class View:
    """Reads one session at one position. Each projection is folded on first use, then kept."""

    def __init__(self, id: str, entries: list[Entry]) -> None:
        self._id = id
        self._own_entries = entries
        self._folds: dict[str, _Fold] = {}
        self._folding = threading.RLock()  # tools run in threads, and may read the session

    @property
    def id(self) -> str:
        """The id of the session, 32 hex characters unless you chose one."""
        return self._id

    @property
    def entries(self) -> Sequence[Entry]:
        """The entries up to here, a fork's shared prefix included."""
        return self._entries()

    def _entries(self) -> list[Entry]:
        return self._own_entries

    @property
    def position(self) -> int:
        """The position of the last entry; -1 before the first."""
        entries = self._entries()
        return entries[-1].position if entries else -1

    # -- projections ---------------------------------------------------------------------------

    def _said(self, name: str, projection: Any) -> Any:
        """The state of a projection that does not see what was rewound away."""
        with self._folding:
            entries = self._entries()
            kept = self._folds.get(name)
            if kept is not None and kept.source is entries:
                new = entries[kept.seen :] if kept.seen < len(entries) else ()
                if not any(type(entry.event) is HistoryRewound for entry in new):
                    return self._advance(kept, projection, new)
            return self._refold(name, projection, entries, lineage(entries))

    def _logged(self, name: str, projection: Any, *, own: bool = False) -> Any:
        """The state of a projection that sees everything logged (`own`: in this session)."""
        with self._folding:
            entries = self._entries()
            kept = self._folds.get(name)
            if kept is not None and kept.source is entries:
                return self._advance(kept, projection, entries[kept.seen :])
            return self._refold(name, projection, entries, own_entries(entries) if own else entries)

    @staticmethod
    def _advance(kept: _Fold, projection: Any, new: Sequence[Entry]) -> Any:
        for entry in new:
            kept.state = projection.apply(kept.state, entry)
        kept.seen += len(new)
        return kept.state

    def _refold(
        self, name: str, projection: Any, source: list[Entry], seen: Sequence[Entry]
    ) -> Any:
        size = len(source)
        state = projection.initial()
        apply = projection.apply
        for entry in seen:
            state = apply(state, entry)
        self._folds[name] = _Fold(source, size, state)
        return state

    @property
    def _list(self) -> MessageList:
        state: MessageList = self._said("messages", messages)
        return state

    @property
    def messages(self) -> list[Message]:
        """The canonical message list as of here."""
        with self._folding:
            return list(self._list.messages)

    @property
    def positions(self) -> list[int]:
        """For each message of `messages`, the position of the entry behind it."""
        with self._folding:
            return list(self._list.positions)

    @property
    def calls(self) -> Calls:
        """The tool calls of the replies so far: `.open` are still to be run."""
        state: Calls = self._said("calls", calls)
        return state

    @property
    def changed_for_turn(self) -> bool:
        """Whether something that lasts for one turn only is among the messages now."""
        return self._list.changed_for_turn

    def unknown_calls(self, *live: str | None) -> list[Call]:
        """Started calls whose outcome nobody will write: run by none of the runs `live`."""
        rewound = last_rewind(self._entries())
        return self.calls.unknown(*live, before=rewound or 0)

    @property
    def turns(self) -> list[PastTurn]:
        """The turns so far, each with the settings it ran with."""
        return list(self._said("turns", turns).turns)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        state: Settings = self._said("turns", turns).settings
        return state

    @property
    def usage(self) -> UsageTotals:
        """Tokens spent in this session; a fork counts its own, rewinding saves nothing."""
        state: UsageTotals = self._logged("usage", usage, own=True)
        return state

    @property
    def requests(self) -> Requests:
        """The requests that were sent, with their outcomes."""
        state: Requests = self._logged("requests", requests)
        return state

    @property
    def timeline(self) -> Timeline:
        """One line for people for every entry."""
        state: Timeline = self._logged("timeline", timeline)
        return state

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._id}@{self.position}>"


def own_entries(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries since the fork that began the session; all of them where it is no fork."""
    for index in range(len(entries) - 1, -1, -1):
        event = entries[index].event
        link = event.link if isinstance(event, SessionOpened) else None
        if (
            link is not None
            and link.kind == "fork"
            and link.position == entries[index].position - 1
        ):
            return entries[index:]
    return entries
