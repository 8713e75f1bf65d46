"""What a target carries of planned messages: the list that comes back when it is loaded again."""

from __future__ import annotations

from collections.abc import Sequence

from brute.events.messages import Message
from brute.transports.rules import Aim


def normal(planned: Sequence[Message], aim: Aim) -> list[Message]:
    """The planned messages as they would be loaded again."""
    return list(planned)
