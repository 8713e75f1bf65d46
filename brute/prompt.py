"""Prompt mutators: five ways to change what is said, without an id or a timestamp to fake.

A hook is a plain function that gets a `Prompt` and calls them; each change is one event, with the
hook's name as its author and a lifetime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from brute.events.entries import Entry
from brute.events.errors import UsageError
from brute.events.events import Event, Lifetime, PromptAppended, PromptEdited
from brute.events.messages import AnyPart, Message, Role, as_parts

Target: TypeAlias = Literal["last-user", "last-assistant"] | int | Entry
"""Which message: by role, or by the position of (or the) entry behind it."""

Operation: TypeAlias = Literal["prepend", "append_to", "insert_before", "insert_after"]

_ROLES: dict[str, Role] = {"last-user": "user", "last-assistant": "assistant"}


class Place(Protocol):
    """What a prompt needs of the turn or session it edits."""

    @property
    def messages(self) -> list[Message]:
        """The message list now."""
        ...

    @property
    def positions(self) -> list[int]:
        """The positions behind the messages."""
        ...

    def say(self, event: Event) -> Entry:
        """Append one event of the prompt."""
        ...


class Prompt:
    """Edits the prompt of one turn or session, as one author.

    lifetime: `turn` (this request only), `task` (until a reply leaves no open call) or `session`
    (for good). Each mutator returns the entry it appended.
    """

    def __init__(self, place: Place, author: str, lifetime: Lifetime) -> None:
        self._place = place
        self.author = author
        self.lifetime: Lifetime = lifetime

    @property
    def messages(self) -> list[Message]:
        """The message list as this prompt now stands."""
        return self._place.messages

    def append(
        self, role: Role | Message, *parts: str | AnyPart, lifetime: Lifetime | None = None
    ) -> Entry:
        """Add a message at the end."""
        return self._place.say(
            PromptAppended(
                message=_message(role, parts),
                author=self.author,
                synthetic=self._synthetic,
                lifetime=lifetime or self.lifetime,
            )
        )

    def prepend(
        self, role: Role | Message, *parts: str | AnyPart, lifetime: Lifetime | None = None
    ) -> Entry:
        """Add a message at the front (after the system messages that stand there)."""
        return self._edit("prepend", _message(role, parts), None, lifetime)

    def append_to(
        self, target: Target, *parts: str | AnyPart, lifetime: Lifetime | None = None
    ) -> Entry:
        """Add parts at the end of a message that is there.

        Raises `UsageError` when there is no such message.
        """
        index = self._index(target)
        role = self._place.messages[index].role
        if not parts:
            raise UsageError("append_to adds nothing; give at least one text or part")
        return self._edit(
            "append_to", Message(role=role, parts=as_parts(parts)), self._anchor(index), lifetime
        )

    def insert_before(
        self,
        target: Target,
        role: Role | Message,
        *parts: str | AnyPart,
        lifetime: Lifetime | None = None,
    ) -> Entry:
        """Add a message before one that is there.

        Raises `UsageError` when there is no such message.
        """
        anchor = self._anchor(self._index(target))
        return self._edit("insert_before", _message(role, parts), anchor, lifetime)

    def insert_after(
        self,
        target: Target,
        role: Role | Message,
        *parts: str | AnyPart,
        lifetime: Lifetime | None = None,
    ) -> Entry:
        """Add a message after one that is there.

        Raises `UsageError` when there is no such message.
        """
        anchor = self._anchor(self._index(target))
        return self._edit("insert_after", _message(role, parts), anchor, lifetime)

    @property
    def _synthetic(self) -> bool:
        return self.author != "person"

    def _edit(
        self, op: Operation, message: Message, anchor: int | None, lifetime: Lifetime | None
    ) -> Entry:
        return self._place.say(
            PromptEdited(
                op=op,
                message=message,
                anchor=anchor,
                author=self.author,
                synthetic=self._synthetic,
                lifetime=lifetime or self.lifetime,
            )
        )

    def _anchor(self, index: int) -> int:
        return self._place.positions[index]

    def _index(self, target: Target) -> int:
        if isinstance(target, str):
            role = _ROLES.get(target)
            if role is None:
                words = ", ".join(repr(word) for word in _ROLES)
                raise UsageError(f"{target!r} names no message; give {words} or a position")
            messages = self._place.messages
            for index in range(len(messages) - 1, -1, -1):
                if messages[index].role == role:
                    return index
            raise UsageError(f"there is no {role} message yet to be the {target}")
        position = target.position if isinstance(target, Entry) else target
        try:
            return self._place.positions.index(position)
        except ValueError:
            raise UsageError(
                f"no message stands behind position {position}; session.positions lists them"
            ) from None


def _message(role: Role | Message, parts: tuple[str | AnyPart, ...]) -> Message:
    if isinstance(role, Message):
        if parts:
            raise UsageError("give a Message, or a role and its parts, not both")
        return role
    if not parts:
        raise UsageError(f"a {role} message says nothing; give at least one text or part")
    return Message(role=role, parts=as_parts(parts))


Hook: TypeAlias = Callable[[Prompt], object]
"""A named function that edits the prompt of a turn before it is sent."""
