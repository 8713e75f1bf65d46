"""Ids of calls on the wire: changed only where the target's pattern demands it, never two alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from brute.events.messages import Message, ToolCall
from brute.transports.rules import Rules

Calls: TypeAlias = list[tuple[ToolCall, str | None]]
"""Calls with their ids on the wire."""


class Ids:
    """The ids of one request.

    An id on the wire is a function of the id alone; where that id is on the wire already, of how
    often. Both halves of a pair get the same.
    """

    def __init__(self, messages: Sequence[Message], rules: Rules, made: set[str]) -> None:
        self._messages, self._rules = messages, rules
        self._in_request = rules.ids_unique == "request"
        self._used: set[str] = set()
        self._made = made
        self._said: set[str] = set()
        self._said_up_to = 0

    def are_new(self, calls: Calls, own: bool) -> bool:
        """Whether the ids of a message's calls are new where they must be; they are then known."""
        if len(calls) == 1 and not self._in_request:
            return True
        ids = {wire_id or "" for _, wire_id in calls}
        if len(ids) < len(calls):
            return False
        if self._in_request:
            if not own and not self._used.isdisjoint(ids):
                return False
            self._used |= ids
        return True

    def wire_id(self, call: ToolCall, own: bool, mine: set[str], at: int) -> str | None:
        """The id of a call on the wire; `mine` are those of its message so far, which grow."""
        rules, word = self._rules, call.id or ""
        if own and not word and not self._in_request and word not in mine:
            mine.add(word)
            return call.id  # a gateway that gives no ids
        fits = (rules.ids if own else rules.own_ids).fits(word)
        if fits and word not in mine and (own or not self._is_taken(word)):
            mine.add(word)
            return word
        said = self._said_so_far(at)
        occurrence = 1 if fits else 0
        while (made := rules.own_ids.rename(word, occurrence)) in said or self._is_taken(made):
            occurrence += 1
        mine.add(made)
        self._made.add(made)
        return made

    def know(self, mine: set[str]) -> None:
        """The ids of a message are on the wire."""
        if self._in_request:
            self._used |= mine

    def _is_taken(self, word: str) -> bool:
        return word in self._used or word in self._made

    def _said_so_far(self, at: int) -> set[str]:
        """The ids of all calls up to here, as they stand in the messages."""
        for message in self._messages[self._said_up_to : at + 1]:
            self._said.update(p.id for p in message.parts if type(p) is ToolCall and p.id)
        self._said_up_to = max(self._said_up_to, at + 1)
        return self._said
