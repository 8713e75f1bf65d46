"""The newest part of a message list, cut where nothing is torn."""

from __future__ import annotations

from collections.abc import Sequence

from brute.events.errors import UsageError
from brute.events.messages import Message
from brute.projections.pairing import HEAD, pairs


def window(messages: Sequence[Message], limit: int) -> list[Message]:
    """The newest `limit` messages, and the system and developer messages that the list begins with.

    A call is never cut from its result, nor a result from its call: an exchange that does not fit
    whole is left out whole. The newest one is always kept, even where it alone is longer than
    `limit`. The head does not count towards `limit`; a limit of 0 leaves the head alone.

    Raises `UsageError` for a negative limit.
    """
    if limit < 0:
        raise UsageError(f"a window of {limit} messages; give 0 or more")
    head = _head(messages)
    newest = len(messages) - limit
    if newest <= head:
        return list(messages)
    if limit == 0:
        return list(messages[:head])
    start = _first_whole(messages, newest)
    return [*messages[:head], *messages[max(start, head) :]]


def _head(messages: Sequence[Message]) -> int:
    for index, message in enumerate(messages):
        if message.role not in HEAD:
            return index
    return len(messages)


def _first_whole(messages: Sequence[Message], newest: int) -> int:
    """The first place from `newest` on to cut at; the last one before it where there is none."""
    size = len(messages)
    until = list(range(size))  # for each message, the last that must not be cut from it
    for caller, answer in pairs(messages):
        until[caller] = max(until[caller], answer)
    reach, before = -1, 0
    for index in range(size):
        if reach < index:  # nothing before this message reaches over to it
            if index >= newest:
                return index
            before = index
        reach = max(reach, until[index])
    return before
